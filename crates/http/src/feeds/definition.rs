//! The definition of a watch: its subjects, which are expressions over memory; the memory that they need; and the
//! values that are computed from this memory.

use std::sync::Arc;

use framewire_emulator::{Change, MemoryRange};
use framewire_expression::{Code, Expression, Range, Subject};
use framewire_protocol::watch::{MAX_RANGES, MAX_WATCHED};
use framewire_protocol::{OpError, run};
use framewire_symbols::{Symbols, TextTable, decode_text};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use utoipa::ToSchema;

use crate::problem::Problem;
use crate::reading::fields::{Encoding, name_problem};

/// The largest number of subjects of a watch.
const MAX_SUBJECTS: usize = 64;
/// How many events are kept by default: 17 s with one event in each frame.
pub(crate) const BUFFER: usize = 1024;
/// The largest number of events that a client may choose.
const MAX_BUFFER: usize = 16_384;

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    /// Expressions over memory, such as `score`, `u16[0x02000038] > 100`, `bytes[ball_x, 8]` or `text[name, 10]`.
    /// docs/watches.md describes them.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub(crate) watch: Vec<String>,
    /// Whether the events of GET /v1/events are reported too, such as resets, loaded states and pauses.
    #[serde(default)]
    pub(crate) events: bool,
    /// How the bytes of `bytes[…]` are written.
    #[serde(default)]
    pub(crate) encoding: Encoding,
    /// How many events are kept, up to 1 MiB in all, for readers that are slow or come back.
    #[serde(default = "default_buffer")]
    #[schema(minimum = 1, maximum = 16_384)]
    pub(crate) buffer: usize,
}

fn default_buffer() -> usize {
    BUFFER
}

impl Default for Definition {
    fn default() -> Definition {
        Definition { watch: Vec::new(), events: false, encoding: Encoding::default(), buffer: BUFFER }
    }
}

impl Definition {
    /// The definition of `GET /v1/events`: events, and no memory.
    pub(crate) fn only_events() -> Definition {
        Definition { events: true, ..Definition::default() }
    }

    /// Compiles the expressions. A problem names the field and, in an expression, the column.
    pub(crate) fn compile(&self, symbols: &Symbols) -> Result<Subjects, Problem> {
        if self.watch.is_empty() && !self.events {
            let accepts =
                "an expression such as score, u16[0x02000000] or bytes[0x02000000, 16]; or events=true";
            return Err(Problem::parameter("watch", "is missing", accepts));
        }
        if self.watch.len() > MAX_SUBJECTS {
            let problem = format!("holds {} expressions", self.watch.len());
            return Err(Problem::parameter("watch", &problem, format!("at most {MAX_SUBJECTS} of them")));
        }
        if !(1..=MAX_BUFFER).contains(&self.buffer) {
            let accepts = format!("a number of events from 1 to {MAX_BUFFER}");
            return Err(Problem::parameter("buffer", &format!("is {}", self.buffer), accepts));
        }
        let mut subjects = Subjects::default();
        for (index, text) in self.watch.iter().enumerate() {
            let place = format!("watch[{index}]");
            if self.watch[..index].contains(text) {
                return Err(Problem::parameter(place, &format!("is {text:?} again"), "each expression once"));
            }
            subjects.add_text(text, symbols, &place)?;
        }
        subjects.check()?;
        if subjects.all.iter().any(|subject| matches!(subject, Watched::Text(_))) {
            subjects.characters = symbols.text().cloned();
        }
        Ok(subjects)
    }
}

/// The subjects of a watch, and the memory that they need.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Subjects {
    pub(crate) all: Vec<Watched>,
    /// The ranges of memory that the subjects use, each once.
    pub(crate) ranges: Vec<MemoryRange>,
    /// The game's character table, if a subject is a `text[…]`.
    characters: Option<Arc<TextTable>>,
    /// Whether any [`Watched::Number`] depends on the frame counter. This ignores [`Watched::Computed`], because the
    /// emulator computes its value.
    pub(crate) uses_frame: bool,
    /// The parameter that contains the expression, if that is not `watch`.
    parameter: Option<&'static str>,
}

/// A subject, with the indices of its memory in [`Subjects::ranges`].
#[derive(Debug, PartialEq)]
pub(crate) enum Watched {
    Number(Expression, Vec<usize>),
    /// An expression that follows pointers. The emulator computes its value.
    Computed(Code, usize),
    Bytes(usize),
    Text(usize),
}

impl Subjects {
    /// A condition as the only subject. `parameter` is the request's parameter that contains it. A problem names the
    /// column.
    pub(crate) fn only(text: &str, symbols: &Symbols, parameter: &'static str) -> Result<Subjects, Problem> {
        let mut subjects = Subjects { parameter: Some(parameter), ..Subjects::default() };
        subjects.add_text(text, symbols, parameter)?;
        if matches!(subjects.all[..], [Watched::Bytes(_) | Watched::Text(_)]) {
            let problem = format!("is {text:?}, which is not a number");
            let accepts = "a condition such as score > 10 or bytes[0x02000000, 2] == \"0aff\"";
            return Err(Problem::parameter(parameter, &problem, accepts));
        }
        Ok(subjects)
    }

    /// Adds the expression at `place` of a request.
    fn add_text(&mut self, text: &str, symbols: &Symbols, place: &str) -> Result<(), Problem> {
        let error = match Subject::parse(text, symbols) {
            Ok(subject) => {
                self.add(subject);
                return Ok(());
            }
            Err(error) => error,
        };
        let error = match Code::parse(text, symbols) {
            Ok(code) if code.follows_pointers() => {
                let range = self.memory(MemoryRange::of_expression(code.encode()));
                self.all.push(Watched::Computed(code, range));
                return Ok(());
            }
            Ok(_) => error,
            // The first parser may have failed only because of pointers, so the second error is more useful.
            Err(error) => error,
        };
        Err(name_problem(symbols, Problem::at(place, &error.to_string())))
    }

    fn add(&mut self, subject: Subject) {
        let watched = match subject {
            Subject::Expression(expression) => {
                self.uses_frame |= expression.uses_frame();
                let ranges = expression.places().iter().map(|place| self.range(place.range())).collect();
                Watched::Number(expression, ranges)
            }
            Subject::Range(range) => Watched::Bytes(self.range(range)),
            Subject::Text(range) => Watched::Text(self.range(range)),
        };
        self.all.push(watched);
    }

    /// The index of a range. Adds the range if it is new.
    fn range(&mut self, Range { domain, address, length }: Range) -> usize {
        self.memory(MemoryRange::new(domain, address, length))
    }

    fn memory(&mut self, range: MemoryRange) -> usize {
        self.ranges.iter().position(|known| *known == range).unwrap_or_else(|| {
            self.ranges.push(range);
            self.ranges.len() - 1
        })
    }

    /// Changes an emulator's error about a range into an error about the expression that uses the range.
    pub(crate) fn refused(&self, error: OpError) -> Problem {
        let named = error.message.strip_prefix("ranges[").and_then(|rest| rest.split_once("]: "));
        let Some((number, problem)) = named else { return error.into() };
        let reads = |watched: &Watched| match watched {
            Watched::Number(_, ranges) => ranges.iter().any(|range| range.to_string() == number),
            Watched::Bytes(range) | Watched::Text(range) | Watched::Computed(_, range) => {
                range.to_string() == number
            }
        };
        let index = self.all.iter().position(reads).unwrap_or_default();
        let place = self.parameter.map_or_else(|| format!("watch[{index}]"), str::to_owned);
        Problem::at(&place, problem)
    }

    /// Whether the only subject is true and needs neither memory nor the frame counter.
    pub(crate) fn is_always_true(&self) -> bool {
        match &self.all[..] {
            [Watched::Number(expression, ranges)] if ranges.is_empty() && !expression.uses_frame() => {
                expression.value(0, &[]).is_some_and(|number| number != 0)
            }
            _ => false,
        }
    }

    fn check(&self) -> Result<(), Problem> {
        let bytes: usize = self.ranges.iter().map(|range| usize::from(range.length)).sum();
        if self.ranges.len() > MAX_RANGES {
            let problem = format!("reads {} places of memory", self.ranges.len());
            return Err(Problem::parameter("watch", &problem, format!("at most {MAX_RANGES} places")));
        }
        if bytes > MAX_WATCHED {
            let problem = format!("reads {bytes} bytes");
            return Err(Problem::parameter("watch", &problem, format!("at most {MAX_WATCHED} bytes")));
        }
        Ok(())
    }
}

/// The bytes of each range of [`Subjects`].
#[derive(Debug)]
pub(crate) struct WatchedMemory {
    pub(crate) subjects: Arc<Subjects>,
    ranges: Vec<Vec<u8>>,
}

impl WatchedMemory {
    /// Splits `joined`, the bytes of all ranges. Missing bytes count as 0.
    pub(crate) fn new(subjects: Arc<Subjects>, mut joined: &[u8]) -> WatchedMemory {
        let ranges = subjects.ranges.iter().map(|range| {
            let mut bytes = vec![0; range.length.into()];
            let (own, rest) = joined.split_at(bytes.len().min(joined.len()));
            bytes[..own.len()].copy_from_slice(own);
            joined = rest;
            bytes
        });
        WatchedMemory { ranges: ranges.collect(), subjects }
    }

    /// Replaces the bytes of the ranges that have changed.
    pub(crate) fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            if let Some(range) = self.ranges.get_mut(change.range) {
                *range = change.new;
            }
        }
    }

    /// The value of this subject in this frame, if it is a number.
    pub(crate) fn number(&self, index: usize, frame: u32) -> Option<i64> {
        match self.subjects.all.get(index)? {
            Watched::Number(expression, ranges) => {
                let kinds = expression.places().iter().map(|place| place.kind);
                let values: Vec<i64> =
                    kinds.zip(ranges).map(|(kind, range)| kind.read(&self.ranges[*range])).collect();
                expression.value(frame, &values)
            }
            Watched::Computed(_, range) => run::decode_values(&self.ranges[*range]).ok()?.first().copied()?,
            Watched::Bytes(_) | Watched::Text(_) => None,
        }
    }

    /// The values of the subjects in this frame.
    pub(crate) fn values(&self, frame: u32, encoding: Encoding) -> Vec<Json> {
        let value = |(index, subject): (usize, &Watched)| match subject {
            Watched::Bytes(range) => encoding.text(&self.ranges[*range]).into(),
            Watched::Text(range) => {
                decode_text(self.subjects.characters.as_deref(), &self.ranges[*range]).into()
            }
            Watched::Number(expression, _) => written(self.number(index, frame), expression.is_condition()),
            Watched::Computed(code, _) => written(self.number(index, frame), code.is_condition()),
        };
        self.subjects.all.iter().enumerate().map(value).collect()
    }
}

/// A value in JSON. The value of a condition is true or false.
fn written(value: Option<i64>, is_condition: bool) -> Json {
    match value {
        Some(number) if is_condition => (number != 0).into(),
        Some(number) => number.into(),
        None => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_follow_the_changes_of_memory() {
        let watch = [
            "u16[0x10] + u16[0x10] * 2",
            "u16[0x10] > 5",
            "bytes[0x10, 2]",
            "bytes[0x10, 2] != \"0201\"",
            "text[0x10, 2]",
            "i8[wram:3] / u16[0x10]",
            "frame",
        ];
        let definition = Definition { watch: watch.map(str::to_owned).to_vec(), ..Definition::default() };
        let subjects = definition.compile(&framewire_symbols::Symbols::default()).unwrap();
        assert_eq!(subjects.ranges.len(), 4, "each range once");
        assert!(subjects.uses_frame);
        let mut memory = WatchedMemory::new(subjects.into(), &[0, 0, 0, 0, 0xfe]);
        let expected =
            vec![json!(0), json!(false), json!("0000"), json!(true), json!(""), json!(null), json!(9)];
        assert_eq!(memory.values(9, Encoding::Hex), expected);
        memory.apply(vec![
            Change { range: 0, old: vec![], new: vec![2, 1] },
            Change { range: 1, old: vec![], new: vec![2] },
            Change { range: 2, old: vec![], new: vec![1] },
        ]);
        let text = json!("\u{2}\u{1}");
        let expected =
            vec![json!(0x306), json!(true), json!("0201"), json!(false), text, json!(0), json!(10)];
        assert_eq!(memory.values(10, Encoding::Hex), expected);
        memory.apply(vec![Change { range: 0, old: vec![], new: vec![1] }]);
        assert_eq!(memory.number(0, 10), Some(3), "a range cut short does not panic");
    }
}
