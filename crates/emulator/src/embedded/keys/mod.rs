//! Keys that the emulator presses and releases by counting frames.
//!
//! - `holds`: keys that are held for a number of frames; holds of the same key wait for each other;
//! - `timelines`: keys that are pressed and released in given frames, and how earlier timelines ended.

mod holds;
mod timelines;

use framewire_protocol::{KeyStep, OpError, Status, Value};

use holds::{Holds, MAX_WAITING};
use timelines::{EndedTimelines, Timelines};

/// Which keys to press now, and which to release.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub struct KeyChange {
    /// To press.
    pub add: u16,
    /// To release.
    pub clear: u16,
}

impl KeyChange {
    /// Adds another change after this one.
    fn then(&mut self, next: KeyChange) {
        self.add = self.add & !next.clear | next.add;
        self.clear = self.clear & !next.add | next.clear;
    }
}

/// All holds and timelines. Each call returns the changes to apply at once.
#[derive(Debug, Default)]
pub struct Keypad {
    holds: Holds,
    timelines: Timelines,
    ended: EndedTimelines,
}

impl Keypad {
    /// Holds `keys` for `frames`, at once or after the earlier holds and timelines that use these keys have ended.
    ///
    /// # Errors
    /// If too many holds wait.
    pub fn hold(&mut self, keys: u16, frames: u32) -> Result<KeyChange, OpError> {
        self.holds.hold(keys, frames).ok_or_else(|| {
            OpError::new(Status::Busy, format!("{MAX_WAITING} holds already wait for their keys"))
        })
    }

    /// Plays the steps of a timeline from the next frame on. Returns its id.
    ///
    /// # Errors
    /// If another timeline uses one of the keys.
    pub fn play(&mut self, steps: Vec<KeyStep>) -> Result<(u32, KeyChange), OpError> {
        self.timelines.play(steps, &mut self.holds)
    }

    /// Plays the steps of a timeline after all that are playing or waiting. Returns its id, and how many frames come before its
    /// first.
    ///
    /// # Errors
    /// If too many timelines wait.
    pub fn append(&mut self, steps: Vec<KeyStep>) -> Result<(u32, u64, KeyChange), OpError> {
        self.timelines.append(steps, &mut self.holds)
    }

    /// Ends a timeline; with 0, all timelines and all holds. Returns whether there was one.
    pub fn cancel(&mut self, id: u32) -> (bool, KeyChange) {
        let (mut any, mut clear) = self.timelines.cancel(id, &mut self.holds);
        if id == 0 {
            let (held, keys) = self.holds.cancel();
            any |= held;
            clear |= keys;
        }
        (any, KeyChange { add: 0, clear })
    }

    /// Takes these keys away from holds and timelines, because a request sets them directly. The request releases the keys
    /// in `up`, which were down. If a hold waits for one of these, it begins only after the next frame, because the game
    /// must see that the keys were up.
    pub fn release(&mut self, keys: u16, up: u16) {
        self.holds.release(keys, up);
        self.timelines.release(&self.holds);
    }

    /// Called after each frame.
    pub fn advance(&mut self) -> KeyChange {
        let mut change = self.holds.advance();
        change.then(self.timelines.advance(&mut self.holds));
        change
    }

    /// The timelines that ended since the last call, each with whether it was cancelled before its last step; `None` if no
    /// timeline ended. They are remembered as ended in `frame`.
    pub fn take_ended(&mut self, frame: u32) -> Option<Vec<(u32, bool)>> {
        let over = self.timelines.take_ended()?;
        for (id, cancelled) in &over {
            self.ended.remember(*id, frame, *cancelled);
        }
        Some(over)
    }

    /// A timeline that is playing or waiting, if there is one.
    pub fn timeline_under_way(&self) -> Option<u32> {
        self.timelines.first()
    }

    /// Whether a timeline is playing, or else how and in which frame it ended.
    ///
    /// # Errors
    /// If there is no such timeline, or it was forgotten.
    pub fn describe(&self, id: u32) -> Result<Value, OpError> {
        if self.timelines.plays(id) {
            return Ok(Value::List(vec![Value::Text("playing".to_owned())]));
        }
        self.ended.describe(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<KeyStep> {
        let step = |step: &str| {
            let (offset, keys) = step.split_once(':').expect("an offset and keys");
            KeyStep { offset: offset.parse().expect("an offset"), keys: keys.parse().expect("keys") }
        };
        text.split(',').map(step).collect()
    }

    /// The mask after each frame of a row's steps, as lengths of runs.
    fn play(row: &str) -> String {
        let mut keypad = Keypad::default();
        let mut mask = 0;
        let mut runs: Vec<(u16, u32)> = Vec::new();
        for step in row.split("; ") {
            let words: Vec<&str> = step.split(' ').collect();
            let number = |at: usize| words[at].parse::<u32>().expect("a number");
            let mut apply = |change: KeyChange| mask = mask & !change.clear | change.add;
            match words[0] {
                "hold" => apply(keypad.hold(number(1) as u16, number(2)).expect("room")),
                "play" => apply(keypad.play(steps(words[1])).expect("room").1),
                "append" => apply(keypad.append(steps(words[1])).expect("room").2),
                "cancel" => apply(keypad.cancel(number(1)).1),
                "press" => {
                    keypad.release(number(1) as u16, 0);
                    mask |= number(1) as u16;
                }
                "let_go" => {
                    keypad.release(number(1) as u16, mask & number(1) as u16);
                    mask &= !(number(1) as u16);
                }
                "run" => {
                    for _ in 0..number(1) {
                        let change = keypad.advance();
                        mask = mask & !change.clear | change.add;
                        match runs.last_mut() {
                            Some((last, length)) if *last == mask => *length += 1,
                            _ => runs.push((mask, 1)),
                        }
                    }
                }
                other => panic!("no step {other:?}"),
            }
        }
        runs.iter().map(|(mask, length)| format!("{mask}*{length}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_keypad_passes_the_test_vectors_of_the_script() {
        let holds = include_str!("../../../../protocol/vectors/holds.tsv");
        let timelines = include_str!("../../../../protocol/vectors/timelines.tsv");
        for row in [holds, timelines].into_iter().flat_map(str::lines).filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = row.split('\t').collect();
            let [name, steps, masks] = columns[..] else { panic!("{row:?} has three columns") };
            assert_eq!(play(steps), masks, "{name}");
        }
    }

    #[test]
    fn each_end_is_reported_once() {
        let mut keypad = Keypad::default();
        keypad.play(steps("0:1,1:0")).expect("room");
        keypad.play(steps("0:2,9:0")).expect("room");
        keypad.play(steps("0:4,9:0")).expect("room");
        assert_eq!(keypad.take_ended(9), None);
        keypad.advance();
        assert_eq!(keypad.take_ended(9), Some(vec![(1, false)]));
        assert!(keypad.cancel(2).0 && !keypad.cancel(2).0);
        keypad.release(4, 4);
        assert_eq!(keypad.take_ended(9), Some(vec![(2, true), (3, true)]));
        assert_eq!(keypad.take_ended(9), None);
    }

    #[test]
    fn a_key_is_in_one_timeline_at_a_time() {
        let mut keypad = Keypad::default();
        keypad.play(steps("0:3,9:0")).expect("free keys");
        let error = keypad.play(steps("0:6,1:0")).expect_err("B is taken");
        assert!(error.message.contains("timeline 1 plays B"), "{error}");
        keypad.release(3, 3);
        assert_eq!(keypad.play(steps("0:6,1:0")).expect("free keys").0, 2);
    }
}
