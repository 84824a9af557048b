//! Expressions that are evaluated once per frame and remember earlier frames.

use std::fmt;

use crate::node::{Binary, Node};
use crate::parse::Parser;
use crate::{Names, ParseError, Place};

/// A value of a formula.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A whole number. Memory and comparisons give these.
    Whole(i64),
    /// A number with a decimal point. It is always finite: an operator whose result would not be finite has no value.
    Real(f64),
}

impl Number {
    /// The number, rounded to 53 significant bits if it is whole and needs more.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Whole(number) => number as f64,
            Number::Real(number) => number,
        }
    }

    /// The number, if it is whole.
    pub(crate) fn whole(self) -> Option<i64> {
        match self {
            Number::Whole(number) => Some(number),
            Number::Real(_) => None,
        }
    }

    /// Whether it is not 0.
    pub fn is_true(self) -> bool {
        match self {
            Number::Whole(number) => number != 0,
            Number::Real(number) => number != 0.0,
        }
    }
}

/// A function that compares frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// `delta(x)`: x minus its value in the frame before; 0 in the first frame.
    Delta,
    /// `previous(x)`: the value of x in the frame before; in the first frame, its value in that frame.
    Previous,
    /// `max_so_far(x)`: the greatest value up to this frame.
    MaxSoFar,
    /// `min_so_far(x)`: the least value up to this frame.
    MinSoFar,
}

impl History {
    const ALL: [History; 4] = [History::Delta, History::Previous, History::MaxSoFar, History::MinSoFar];

    /// Its name, such as `delta`.
    pub fn name(self) -> &'static str {
        match self {
            History::Delta => "delta",
            History::Previous => "previous",
            History::MaxSoFar => "max_so_far",
            History::MinSoFar => "min_so_far",
        }
    }

    pub(crate) fn named(name: &str) -> Option<History> {
        History::ALL.into_iter().find(|history| history.name() == name)
    }
}

/// An expression that is evaluated once per frame, such as `delta(score) * 0.01`. See [`Memory`] for what it remembers.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    text: String,
    root: Node,
    /// Each function and its argument. An argument can use only the functions before it.
    functions: Vec<(History, Node)>,
    places: Vec<Place>,
}

/// What a formula remembers from frame to frame. Use a new or a cleared memory for each sequence of frames, such as an
/// episode of training.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// For each function, the value from earlier frames that it needs.
    earlier: Vec<Number>,
    /// The results of this frame.
    results: Vec<Number>,
}

impl Memory {
    /// Forgets all frames.
    pub fn clear(&mut self) {
        self.earlier.clear();
    }

    /// The values from earlier frames, for callers that save them elsewhere. Empty before the first frame.
    pub fn earlier(&self) -> &[Number] {
        &self.earlier
    }

    /// A memory with values that [`earlier`](Memory::earlier) returned.
    pub fn from_earlier(earlier: Vec<Number>) -> Memory {
        Memory { earlier, results: Vec::new() }
    }
}

impl Formula {
    /// Compiles `text`, looking up its names in `names`.
    ///
    /// # Errors
    /// [`ParseError`] says what is wrong, and in which column.
    pub fn parse(text: &str, names: &dyn Names) -> Result<Formula, ParseError> {
        let mut parser = Parser::new(text, names)?;
        parser.formula = Some(Vec::new());
        let root = parser.whole()?;
        let functions = parser.formula.unwrap_or_default();
        Ok(Formula { text: text.trim().to_owned(), root, functions, places: parser.places })
    }

    /// The places in memory that it reads, each once.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// How many [`History`] functions it calls, including calls inside arguments.
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// Evaluates one frame. `values` are the numbers in its [`places`](Formula::places), in their order. Call this
    /// exactly once for each frame; otherwise the functions compare the wrong frames.
    ///
    /// Returns `None` if the formula has no value in this frame, for example after a division by zero. Then the next
    /// call still compares with the last frame that had a value. The argument of each function is always computed, even
    /// on the right side of an `and` or `or` whose left side decides the result. If an argument has no value, the
    /// formula has no value.
    pub fn evaluate(&self, frame: u32, values: &[i64], memory: &mut Memory) -> Option<Number> {
        memory.results.clear();
        let is_first = memory.earlier.len() < self.functions.len();
        for (index, (history, of)) in self.functions.iter().enumerate() {
            let now = of.number(frame, values, &memory.results)?;
            let earlier = if is_first { now } else { memory.earlier[index] };
            let result = match history {
                History::Delta => Binary::Subtract.apply(now, earlier)?,
                History::MaxSoFar if now.as_f64() > earlier.as_f64() => now,
                History::MinSoFar if now.as_f64() < earlier.as_f64() => now,
                History::Previous | History::MaxSoFar | History::MinSoFar => earlier,
            };
            memory.results.push(result);
        }
        let value = self.root.number(frame, values, &memory.results)?;
        // The frame has a value, so the next call compares with this frame.
        memory.earlier.clear();
        for (index, (history, of)) in self.functions.iter().enumerate() {
            let now = match history {
                History::Delta | History::Previous => of.number(frame, values, &memory.results)?,
                History::MaxSoFar | History::MinSoFar => memory.results[index],
            };
            memory.earlier.push(now);
        }
        Some(value)
    }
}

/// The original text.
impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expression, NoNames};

    /// The values of a formula in consecutive frames. `frames` has the number in `u8[0]` for each frame.
    fn over(text: &str, frames: &[i64]) -> Vec<Option<f64>> {
        let formula = Formula::parse(text, &NoNames).unwrap();
        let mut memory = Memory::default();
        let values = frames.iter().map(|value| formula.evaluate(0, &[*value], &mut memory));
        values.map(|number| number.map(Number::as_f64)).collect()
    }

    #[test]
    fn functions_compare_frames() {
        for (text, expected) in [
            ("delta(u8[0])", [0.0, 2.0, -1.0, 4.0]),
            ("previous(u8[0])", [3.0, 3.0, 5.0, 4.0]),
            ("max_so_far(u8[0])", [3.0, 5.0, 5.0, 8.0]),
            ("min_so_far(u8[0])", [3.0, 3.0, 3.0, 3.0]),
            ("delta(max_so_far(u8[0])) * 0.5", [0.0, 1.0, 0.0, 1.5]),
            ("u8[0] > 4 and delta(u8[0]) > 0", [0.0, 1.0, 0.0, 1.0]),
        ] {
            assert_eq!(over(text, &[3, 5, 4, 8]), expected.map(Some), "{text}");
        }
    }

    #[test]
    fn whole_numbers_stay_whole_until_they_meet_a_decimal_point() {
        assert_eq!(over("u8[0] / 2", &[5]), [Some(2.0)]);
        assert_eq!(over("u8[0] / 2.0", &[5]), [Some(2.5)]);
        assert_eq!(over("0.5 & u8[0]", &[5]), [None]);
        assert_eq!(over("1.0 / u8[0]", &[0]), [None]);
        let huge = format!("1{}.0", "0".repeat(308));
        let text = format!("delta((u8[0] - 2) * {huge})");
        assert_eq!(over(&text, &[1, 3]), [Some(0.0), None], "the difference is infinite");
    }

    #[test]
    fn a_frame_without_a_value_changes_nothing() {
        assert_eq!(over("delta(6 / u8[0])", &[1, 0, 2]), [Some(0.0), None, Some(-3.0)]);
    }

    #[test]
    fn only_formulas_have_decimal_points_and_history_functions() {
        for (text, column) in [("u8[0] * 0.5", 9), ("delta(u8[0]) > 1", 1)] {
            let error = Expression::parse(text, &NoNames).unwrap_err();
            assert_eq!(error.column, column, "{error}");
            assert!(error.message.contains("game files"), "{error}");
        }
        for text in ["u8[delta(1)]", "u8[0.5]", "delta(1", "delta()"] {
            assert!(Formula::parse(text, &NoNames).is_err(), "{text}");
        }
    }
}
