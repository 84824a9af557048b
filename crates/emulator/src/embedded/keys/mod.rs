//! Keys that the emulator presses and releases at exact frames.
//!
//! - `holds`: keys that stay down for a number of frames; holds of the same key follow one another;
//! - `timelines`: plans of key presses, frame by frame; also how earlier timelines ended.

mod holds;
mod timelines;

use framewire_protocol::{KeyStep, OpError, Status, Value};

use holds::{Holds, MAX_WAITING};
use timelines::{EndedTimelines, Timelines};

/// The keys to press now, and the keys to release.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub struct KeyChange {
    /// The keys to press.
    pub add: u16,
    /// The keys to release.
    pub clear: u16,
}

impl KeyChange {
    /// Combines this change with a change that follows it.
    fn then(&mut self, next: KeyChange) {
        self.add = self.add & !next.clear | next.add;
        self.clear = self.clear & !next.add | next.clear;
    }
}

/// All holds and timelines. If a method returns a [`KeyChange`], the caller must apply it at once.
#[derive(Debug, Default)]
pub struct Keypad {
    holds: Holds,
    timelines: Timelines,
    ended: EndedTimelines,
}

impl Keypad {
    /// Holds `keys` for `frames` + 2 frames, as mGBA-http does, at once or after the earlier holds and timelines of
    /// these keys.
    ///
    /// # Errors
    /// If too many holds wait.
    pub fn hold(&mut self, keys: u16, frames: u32) -> Result<KeyChange, OpError> {
        self.holds.hold(keys, frames).ok_or_else(|| {
            let message = format!(
                "{MAX_WAITING} holds are already waiting for their keys, which is the limit; try again after one has \
                 begun"
            );
            OpError::new(Status::Busy, message)
        })
    }

    /// Plays the steps of a timeline from the next frame on. Returns its id.
    ///
    /// # Errors
    /// If another timeline uses one of the keys.
    pub fn play(&mut self, steps: Vec<KeyStep>) -> Result<(u32, KeyChange), OpError> {
        self.timelines.play(steps, &mut self.holds)
    }

    /// Plays the steps of a timeline after all other timelines that are playing or waiting. Returns its id, and how
    /// many frames run before its first frame.
    ///
    /// # Errors
    /// If too many timelines wait.
    pub fn append(&mut self, steps: Vec<KeyStep>) -> Result<(u32, u64, KeyChange), OpError> {
        self.timelines.append(steps, &mut self.holds)
    }

    /// Ends a timeline, or all timelines and holds if `id` is 0. Returns whether there was anything to end.
    pub fn cancel(&mut self, id: u32) -> (bool, KeyChange) {
        let (mut any, mut clear) = self.timelines.cancel(id, &mut self.holds);
        if id == 0 {
            let (held, keys) = self.holds.cancel();
            any |= held;
            clear |= keys;
        }
        (any, KeyChange { add: 0, clear })
    }

    /// Removes these keys from holds and timelines. Called when a request sets the keys directly. `up` contains the
    /// keys that were down and that the request releases. A hold that waits for a key in `up`, or for a key that a hold
    /// or timeline has just lost, begins only after the next frame, so that the game sees the key up in between.
    pub fn release(&mut self, keys: u16, up: u16) {
        self.holds.release(keys, up);
        self.timelines.release(&self.holds);
    }

    /// The keys that holds and timelines own.
    pub fn owned(&self) -> u16 {
        self.holds.all_owned()
    }

    /// Called after each frame.
    pub fn advance(&mut self) -> KeyChange {
        let mut change = self.holds.advance();
        change.then(self.timelines.advance(&mut self.holds));
        change
    }

    /// The timelines that have ended since the last call: their ids, and whether each was cancelled before its last
    /// step. `None` if no timeline has ended. `frame` is stored as the frame in which they ended.
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

    /// A list of texts: `playing` if the timeline `id` is playing or waiting. Otherwise `over` or `cancelled`, and the
    /// frame in which it ended.
    ///
    /// # Errors
    /// If there never was such a timeline, or it ended too long ago.
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

    /// Performs the steps of a row of the test vectors. Returns the key masks after each frame as
    /// `MASK*FRAMES MASK*FRAMES ...`.
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
                other => panic!("unknown step {other:?}"),
            }
        }
        runs.iter().map(|(mask, length)| format!("{mask}*{length}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_keypad_passes_the_same_test_vectors_as_the_script() {
        let holds = include_str!("../../../../protocol/vectors/holds.tsv");
        let timelines = include_str!("../../../../protocol/vectors/timelines.tsv");
        for row in [holds, timelines].into_iter().flat_map(str::lines).filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = row.split('\t').collect();
            let [name, steps, masks] = columns[..] else { panic!("not three columns: {row:?}") };
            assert_eq!(play(steps), masks, "{name}");
        }
    }

    #[test]
    fn the_end_of_each_timeline_is_reported_once() {
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
    fn a_key_belongs_to_one_timeline_at_a_time() {
        let mut keypad = Keypad::default();
        keypad.play(steps("0:3,9:0")).expect("free keys");
        let error = keypad.play(steps("0:6,1:0")).expect_err("B is taken");
        assert!(error.message.contains("timeline 1 plays B"), "{error}");
        keypad.release(3, 3);
        assert_eq!(keypad.play(steps("0:6,1:0")).expect("free keys").0, 2);
    }
}
