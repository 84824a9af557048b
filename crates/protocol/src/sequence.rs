//! Key sequences as people write them: `A:2 .:10 Up+B:30`.

use crate::key::{Key, Keys};

/// What a sequence consists of, for errors.
pub const PRESSES: &str = "presses such as \"A:2 .:10 Up+B:30\": keys joined by +, or . for no key; then a colon and the \
                           number of frames; 1 to 4294967295 frames for all presses together";

/// A word of a sequence that is not a press. A press has keys and a number of frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a press; use {presses}", presses = PRESSES)]
pub struct WrongPress(pub String);

/// Reads the keys of a press, such as `Up+B`. A `.` stands for no keys. Returns `None` if a name is not that of a key.
pub fn keys(text: &str) -> Option<Keys> {
    if text == "." {
        return Some(Keys::default());
    }
    text.split('+').map(|name| name.parse::<Key>().ok()).collect()
}

/// Reads the presses of a sequence. Each press has keys, and the number of frames for which they are held; a number
/// that is left out is 1. White space and commas separate presses.
///
/// # Errors
/// If a word is not a press, or if there are too many frames in all. The error names the first word at fault.
pub fn parse(text: &str) -> Result<Vec<(Keys, u32)>, WrongPress> {
    let mut all = 0u32;
    let mut presses = Vec::new();
    for word in text.split([' ', '\t', '\r', '\n', ',']).filter(|word| !word.is_empty()) {
        let wrong = || WrongPress(word.to_owned());
        let (names, frames) = word.split_once(':').unwrap_or((word, "1"));
        let frames = frames.parse().ok().filter(|frames: &u32| *frames > 0).ok_or_else(wrong)?;
        all = all.checked_add(frames).ok_or_else(wrong)?;
        presses.push((keys(names).ok_or_else(wrong)?, frames));
    }
    Ok(presses)
}
