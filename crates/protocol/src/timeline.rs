//! Timelines of keys: the argument of [`Op::PlayKeys`](crate::Op::PlayKeys).

use crate::error::OpError;
use crate::key::Keys;
use crate::wire::{DecodeError, Reader, Wire};

/// The largest number of steps in a timeline.
pub const MAX_STEPS: usize = 65_536;

/// The size of an encoded step in bytes.
const STEP: usize = 6;

/// A change of the held keys. From the frame at `offset` on, exactly `keys` are held, out of all keys that the timeline
/// uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyStep {
    /// The number of the frame; 0 is the next frame.
    pub offset: u32,
    /// The keys as a mask.
    pub keys: u16,
}

impl Wire for KeyStep {
    fn encode(&self, out: &mut Vec<u8>) {
        self.offset.encode(out);
        self.keys.encode(out);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(KeyStep { offset: reader.get()?, keys: reader.get()? })
    }
}

/// Encodes the steps of a timeline.
pub fn encode(steps: &[KeyStep]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(steps.len() * STEP);
    steps.iter().for_each(|step| step.encode(&mut bytes));
    bytes
}

/// Decodes the steps of a timeline.
///
/// # Errors
/// If the bytes are not a valid timeline. The error says which rule they break.
pub fn decode(bytes: &[u8]) -> Result<Vec<KeyStep>, OpError> {
    let wrong = |problem: String| OpError::bad_argument(format!("steps: {problem}"));
    if !bytes.len().is_multiple_of(STEP) {
        return Err(wrong(format!("{} bytes; a step has {STEP}", bytes.len())));
    }
    let count = bytes.len() / STEP;
    if count > MAX_STEPS {
        return Err(wrong(format!("{count} of them; at most {MAX_STEPS} are accepted")));
    }
    let steps: Vec<KeyStep> = Reader::new(bytes).get_all().map_err(|error| wrong(error.to_string()))?;
    check(&steps).map_err(wrong)?;
    Ok(steps)
}

/// Checks that these steps are a valid timeline. Does not check that there are at most [`MAX_STEPS`].
///
/// # Errors
/// If they are not valid. The error says which rule they break.
pub fn check(steps: &[KeyStep]) -> Result<(), String> {
    if let Some(step) = steps.iter().find(|step| Keys::from_mask(step.keys).is_none()) {
        return Err(format!(
            "keys {} at offset {}; a mask of 0 to {} is accepted",
            step.keys,
            step.offset,
            Keys::MASK
        ));
    }
    if let Some(pair) = steps.windows(2).find(|pair| pair[0].offset >= pair[1].offset) {
        return Err(format!("offset {} after {}; offsets must rise", pair[1].offset, pair[0].offset));
    }
    match steps.last() {
        None => Err("there are no steps".to_owned()),
        Some(last) if last.keys != 0 => Err("the last one must release all keys".to_owned()),
        Some(_) if union(steps) == 0 => Err("they name no key".to_owned()),
        Some(_) => Ok(()),
    }
}

/// Makes a timeline from presses that follow each other. Each press is a set of keys and a number of frames. A pause at
/// the end is part of the timeline.
///
/// # Errors
/// If no key is pressed, or there are too many steps. The error is a sentence without a subject: put the name of the
/// argument before it.
pub fn of_presses(presses: &[(Keys, u32)]) -> Result<Vec<KeyStep>, String> {
    let mut steps: Vec<KeyStep> = Vec::new();
    let mut offset = 0;
    for (keys, frames) in presses {
        if steps.last().map_or(0, |last| last.keys) != keys.mask() {
            steps.push(KeyStep { offset, keys: keys.mask() });
        }
        offset += frames;
    }
    if steps.last().is_some_and(|last| last.offset < offset) {
        steps.push(KeyStep { offset, keys: 0 });
    }
    match steps.len() {
        _ if union(&steps) == 0 => Err("presses nothing".to_owned()),
        count if count > MAX_STEPS => Err(format!("has {count} steps; at most {MAX_STEPS} are accepted")),
        _ => Ok(steps),
    }
}

/// All keys that a timeline uses, as a mask.
pub fn union(steps: &[KeyStep]) -> u16 {
    steps.iter().fold(0, |keys, step| keys | step.keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(steps: &[(u32, u16)]) -> Vec<KeyStep> {
        steps.iter().map(|&(offset, keys)| KeyStep { offset, keys }).collect()
    }

    #[test]
    fn a_timeline_is_decoded_as_it_was_encoded() {
        let steps = steps(&[(0, 1), (2, 3), (u32::MAX, 0)]);
        assert_eq!(decode(&encode(&steps)), Ok(steps));
    }

    #[test]
    fn the_error_for_an_invalid_timeline_names_the_problem() {
        let many: Vec<(u32, u16)> = (0..=MAX_STEPS as u32).map(|offset| (offset, 0)).collect();
        let cases: [(&[(u32, u16)], &str); 7] = [
            (&[], "no steps"),
            (&[(0, 1)], "last one"),
            (&[(0, 1), (0, 0)], "must rise"),
            (&[(3, 1), (2, 0)], "offset 2 after 3"),
            (&[(0, 1024), (1, 0)], "0 to 1023"),
            (&[(0, 0)], "no key"),
            (&many, "at most 65536"),
        ];
        for (wrong, says) in cases {
            let error = decode(&encode(&steps(wrong))).expect_err(says);
            assert!(error.message.contains(says), "{error}");
        }
        assert!(decode(&[0; 7]).is_err());
    }
}
