//! Runs: the arguments and the results of [`Op::Run`](crate::Op::Run) and of [`Op::Evaluate`](crate::Op::Evaluate).
//!
//! In this crate, conditions are only bytes. `framewire-expression` encodes and evaluates them.

use std::fmt::Display;

use crate::error::OpError;
use crate::key::Keys;
use crate::timeline::{self, KeyStep, MAX_STEPS};
use crate::wire::{DecodeError, Reader, Wire};

/// The largest number of steps of a run.
pub const MAX_RUN_STEPS: usize = 1024;
/// The largest number of frames that all steps of a run have together: an hour of the game.
pub const MAX_RUN_FRAMES: u32 = 216_000;
/// The largest number of conditions of a step, and of conditions that end the whole run.
pub const MAX_CONDITIONS: usize = 16;
/// The largest number of expressions that are evaluated at once.
pub const MAX_EXPRESSIONS: usize = 256;

/// Flag of a step: the run continues with the next step if no condition holds within its frames.
const GOES_ON: u8 = 1;

/// The message of the error with which a run ends if another game is loaded.
pub const OTHER_GAME: &str =
    "another game was loaded during the run, and in it the same keys and addresses mean something else";

/// An expression that an emulator evaluates, encoded as bytes.
pub type Condition = Vec<u8>;

/// Steps that an emulator runs one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunSteps {
    /// The whole run ends when any of these conditions holds.
    pub stop: Vec<Condition>,
    /// The steps, at least one.
    pub steps: Vec<RunStep>,
}

/// A part of a run. It ends when a condition holds, or when its frames have passed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunStep {
    /// The largest number of frames, 1 or more.
    pub frames: u32,
    /// The keys that the step holds, as a timeline; empty if there are no keys. They are released at the end of the
    /// step.
    pub keys: Vec<KeyStep>,
    /// The step ends when any of these conditions holds.
    pub until: Vec<Condition>,
    /// Whether the run continues if the step has conditions and none of them holds within its frames. If this is false,
    /// the run ends there.
    pub goes_on: bool,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepEnd {
    /// Why it ended.
    pub why: EndReason,
    /// How many frames it took.
    pub frames: u32,
    /// The frame counter at its end.
    pub frame: u32,
}

/// Why a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// It has no conditions, and its frames have passed.
    Frames,
    /// The condition with this index holds.
    Condition(u8),
    /// None of its conditions held within its frames.
    TimedOut,
    /// The condition with this index in [`RunSteps::stop`] holds, so the whole run ends.
    Stop(u8),
}

impl RunSteps {
    /// The largest number of frames that the run takes.
    pub fn frames(&self) -> u32 {
        self.steps.iter().fold(0, |all, step| all.saturating_add(step.frames))
    }

    /// Decodes a run, and checks that an emulator can perform it.
    ///
    /// # Errors
    /// If the bytes are not a valid run. The error says which rule they break.
    pub fn decode_checked(bytes: &[u8]) -> Result<RunSteps, OpError> {
        let malformed = |error| OpError::bad_argument(format!("steps: {error}"));
        let mut reader = Reader::new(bytes);
        let run: RunSteps = reader.get().map_err(malformed)?;
        reader.finish().map_err(malformed)?;
        run.check().map_err(OpError::bad_argument)?;
        Ok(run)
    }

    /// Checks the limits and the keys.
    ///
    /// # Errors
    /// If the run is not valid. The error says which rule it breaks.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=MAX_RUN_STEPS).contains(&self.steps.len()) {
            return Err(format!("steps: {} of them; use 1 to {MAX_RUN_STEPS}", self.steps.len()));
        }
        check_conditions(&self.stop, "stop")?;
        for (index, step) in self.steps.iter().enumerate() {
            let place = format!("steps[{index}]");
            check_conditions(&step.until, format_args!("{place}.until"))?;
            if step.frames == 0 {
                return Err(format!("{place}.frames is 0; use 1 to {MAX_RUN_FRAMES}"));
            }
            if step.keys.len() > MAX_STEPS {
                let count = step.keys.len();
                return Err(format!("{place}: keys change {count} times; at most {MAX_STEPS} are accepted"));
            }
            if !step.keys.is_empty() {
                timeline::check(&step.keys).map_err(|problem| format!("{place}: {problem}"))?;
            }
        }
        if self.frames() > MAX_RUN_FRAMES {
            let frames = self.frames();
            return Err(format!(
                "the steps take up to {frames} frames; at most {MAX_RUN_FRAMES} are accepted"
            ));
        }
        Ok(())
    }
}

fn check_conditions(conditions: &[Condition], place: impl Display) -> Result<(), String> {
    match conditions.len() {
        0..=MAX_CONDITIONS => Ok(()),
        count => Err(format!("{place}: {count} conditions; at most {MAX_CONDITIONS} are accepted")),
    }
}

/// The steps of a timeline that holds these keys for this number of frames, 1 or more; empty if there are no keys.
pub fn holding(keys: Keys, frames: u32) -> Vec<KeyStep> {
    if keys == Keys::default() {
        return Vec::new();
    }
    vec![KeyStep { offset: 0, keys: keys.mask() }, KeyStep { offset: frames, keys: 0 }]
}

/// Appends a condition: its length in 16 bits, and its bytes. `framewire_expression::Code::parse` does not return an
/// expression that is too long for this.
fn put_condition(condition: &[u8], out: &mut Vec<u8>) {
    (condition.len() as u16).encode(out);
    out.extend_from_slice(condition);
}

fn get_condition(reader: &mut Reader<'_>) -> Result<Condition, DecodeError> {
    let length = usize::from(reader.get::<u16>()?);
    Ok(reader.take(length, "condition")?.to_vec())
}

fn put_conditions(conditions: &[Condition], out: &mut Vec<u8>) {
    (conditions.len() as u8).encode(out);
    conditions.iter().for_each(|condition| put_condition(condition, out));
}

fn get_conditions(reader: &mut Reader<'_>) -> Result<Vec<Condition>, DecodeError> {
    let count = reader.get::<u8>()?;
    (0..count).map(|_| get_condition(reader)).collect()
}

impl Wire for RunSteps {
    fn encode(&self, out: &mut Vec<u8>) {
        put_conditions(&self.stop, out);
        (self.steps.len() as u16).encode(out);
        self.steps.iter().for_each(|step| step.encode(out));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let stop = get_conditions(reader)?;
        let count = usize::from(reader.get::<u16>()?);
        if count > MAX_RUN_STEPS {
            return Err(DecodeError::TooLarge { what: "run", limit: MAX_RUN_STEPS });
        }
        let steps = (0..count).map(|_| reader.get()).collect::<Result<_, _>>()?;
        Ok(RunSteps { stop, steps })
    }
}

impl Wire for RunStep {
    fn encode(&self, out: &mut Vec<u8>) {
        self.frames.encode(out);
        out.push(if self.goes_on { GOES_ON } else { 0 });
        timeline::encode(&self.keys).encode(out);
        put_conditions(&self.until, out);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let frames = reader.get()?;
        let goes_on = match reader.get::<u8>()? {
            0 => false,
            GOES_ON => true,
            value => return Err(DecodeError::Unknown { what: "flags of a step", value }),
        };
        let length = reader.get::<u32>()? as usize;
        let keys = Reader::new(reader.take(length, "keys")?).get_all()?;
        Ok(RunStep { frames, goes_on, keys, until: get_conditions(reader)? })
    }
}

impl Wire for StepEnd {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(match self.why {
            EndReason::Frames => [0, 0],
            EndReason::Condition(index) => [1, index],
            EndReason::TimedOut => [2, 0],
            EndReason::Stop(index) => [3, index],
        });
        self.frames.encode(out);
        self.frame.encode(out);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let why = match (reader.get::<u8>()?, reader.get::<u8>()?) {
            (0, 0) => EndReason::Frames,
            (1, index) => EndReason::Condition(index),
            (2, 0) => EndReason::TimedOut,
            (3, index) => EndReason::Stop(index),
            (value, _) => return Err(DecodeError::Unknown { what: "end of a step", value }),
        };
        Ok(StepEnd { why, frames: reader.get()?, frame: reader.get()? })
    }
}

/// Encodes how the steps of a run ended. These bytes are the result of [`Op::Run`](crate::Op::Run).
pub fn encode_ends(ends: &[StepEnd]) -> Vec<u8> {
    ends.iter().flat_map(StepEnd::to_bytes).collect()
}

/// Decodes the result of [`Op::Run`](crate::Op::Run): how the steps of the run ended.
///
/// # Errors
/// If the bytes are not such a result.
pub fn decode_ends(bytes: &[u8]) -> Result<Vec<StepEnd>, DecodeError> {
    Reader::new(bytes).get_all()
}

/// Encodes the argument of [`Op::Evaluate`](crate::Op::Evaluate).
pub fn encode_expressions(expressions: &[Condition]) -> Vec<u8> {
    let mut bytes = Vec::new();
    expressions.iter().for_each(|expression| put_condition(expression, &mut bytes));
    bytes
}

/// Decodes the argument of [`Op::Evaluate`](crate::Op::Evaluate).
///
/// # Errors
/// If there are more than [`MAX_EXPRESSIONS`] expressions, or the bytes are not such an argument.
pub fn decode_expressions(bytes: &[u8]) -> Result<Vec<Condition>, OpError> {
    let mut reader = Reader::new(bytes);
    let mut expressions = Vec::new();
    while reader.remaining() > 0 {
        if expressions.len() == MAX_EXPRESSIONS {
            let message = format!("expressions: more than {MAX_EXPRESSIONS}; evaluate fewer at a time");
            return Err(OpError::bad_argument(message));
        }
        let problem = |error| OpError::bad_argument(format!("expressions: {error}"));
        expressions.push(get_condition(&mut reader).map_err(problem)?);
    }
    Ok(expressions)
}

/// Encodes the result of [`Op::Evaluate`](crate::Op::Evaluate).
pub fn encode_values(values: &[Option<i64>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        value.is_some().encode(&mut bytes);
        value.unwrap_or_default().encode(&mut bytes);
    }
    bytes
}

/// Decodes the result of [`Op::Evaluate`](crate::Op::Evaluate).
///
/// # Errors
/// If the bytes are not such a result.
pub fn decode_values(bytes: &[u8]) -> Result<Vec<Option<i64>>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let mut values = Vec::new();
    while reader.remaining() > 0 {
        let (is_there, value): (bool, i64) = (reader.get()?, reader.get()?);
        values.push(if is_there { Some(value) } else { None });
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn runs_and_results_are_decoded_as_they_were_encoded() {
        let step = RunStep {
            frames: 30,
            keys: holding(Key::A.into(), 30),
            until: vec![vec![1], vec![0; 9]],
            goes_on: true,
        };
        let run = RunSteps {
            stop: vec![vec![1, 2]],
            steps: vec![step, RunStep { frames: 1, ..Default::default() }],
        };
        let bytes = run.to_bytes();
        assert_eq!(RunSteps::decode_checked(&bytes), Ok(run.clone()));
        assert_eq!(run.frames(), 31);
        for length in 0..bytes.len() {
            assert!(RunSteps::decode_checked(&bytes[..length]).is_err(), "{length}");
        }
        let why = [EndReason::Frames, EndReason::Condition(3), EndReason::TimedOut, EndReason::Stop(1)];
        let ends = why.map(|why| StepEnd { why, frames: 7, frame: 9 });
        assert_eq!(decode_ends(&encode_ends(&ends)), Ok(ends.to_vec()));
        let values = [Some(-1), None, Some(i64::MAX)];
        assert_eq!(decode_values(&encode_values(&values)), Ok(values.to_vec()));
    }

    #[test]
    fn an_invalid_run_is_refused_and_the_error_names_the_problem() {
        let step = |frames| RunStep { frames, ..RunStep::default() };
        let run = |steps: Vec<RunStep>| RunSteps { stop: vec![], steps };
        let many = RunStep { until: vec![vec![1]; MAX_CONDITIONS + 1], ..step(1) };
        for (wrong, says) in [
            (run(vec![]), "0 of them"),
            (run(vec![step(1), step(0)]), "steps[1].frames is 0"),
            (run(vec![step(MAX_RUN_FRAMES), step(1)]), "216001 frames"),
            (run(vec![many]), "steps[0].until: 17"),
            (RunSteps { stop: vec![vec![1]; 17], steps: vec![step(1)] }, "stop: 17"),
        ] {
            let error = RunSteps::decode_checked(&wrong.to_bytes()).expect_err(says);
            assert!(error.message.contains(says), "{error}");
        }
    }

    #[test]
    fn the_number_of_expressions_is_limited() {
        let some = vec![vec![1, 2, 3], vec![]];
        assert_eq!(decode_expressions(&encode_expressions(&some)), Ok(some.clone()));
        assert!(decode_expressions(&encode_expressions(&vec![vec![1]; 257])).is_err());
        assert!(decode_expressions(&[3, 0, 1]).is_err());
    }
}
