//! Keys held for a number of frames. `lua/src/holds.lua` has the same rules; the vectors of
//! `crates/protocol/vectors/holds.tsv` hold both to them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use framewire_protocol::Key;

/// Most holds that wait for an earlier one of the same key.
pub(super) const MAX_WAITING: usize = 65_536;

const KEYS: usize = Key::ALL.len();

/// Holds by ticks, the frames that were run: the core's own counter goes back on a reset. As each key has a queue, the
/// game sees a press for every hold.
#[derive(Debug, Default)]
pub(super) struct Holds {
    tick: u64,
    next_id: u64,
    waiting: HashMap<u64, Hold>,
    keys: [KeyState; KEYS],
    /// The holds that end at a tick.
    ends: BTreeMap<u64, Vec<u64>>,
}

#[derive(Debug, Clone, Copy)]
struct Hold {
    keys: u16,
    frames: u32,
}

#[derive(Debug, Default)]
struct KeyState {
    /// The hold that keeps it down.
    owner: Option<u64>,
    /// The first tick at which it may be pressed anew.
    free: u64,
    /// The holds that wait for it. One of several keys is in several queues.
    queue: VecDeque<u64>,
}

/// Keys to hold and keys to let go of, now.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub(super) struct Change {
    pub add: u16,
    pub clear: u16,
}

/// The numbers of the keys in a mask.
fn numbers(keys: u16) -> impl Iterator<Item = usize> {
    (0..KEYS).filter(move |key| keys & 1 << key != 0)
}

impl Holds {
    /// Holds `keys` for `frames`, at once or when earlier holds of them have ended; `None` if too many wait already.
    pub fn hold(&mut self, keys: u16, frames: u32) -> Option<Change> {
        if self.waiting.len() >= MAX_WAITING {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.waiting.insert(id, Hold { keys, frames });
        for key in numbers(keys) {
            self.keys[key].queue.push_back(id);
        }
        let mut change = Change::default();
        self.begin_if_next(id, &mut change);
        Some(change)
    }

    /// A frame was run.
    pub fn advance(&mut self) -> Change {
        self.tick += 1;
        let mut change = Change::default();
        for id in self.ends.remove(&self.tick).unwrap_or_default() {
            for (number, key) in self.keys.iter_mut().enumerate().filter(|(_, key)| key.owner == Some(id)) {
                key.owner = None;
                key.free = self.tick + 1;
                change.clear |= 1 << number;
            }
        }
        for number in 0..KEYS {
            if let Some(&id) = self.keys[number].queue.front() {
                self.begin_if_next(id, &mut change);
            }
        }
        change
    }

    /// These keys are set by hand: a hold of them that runs has no say in them any more. Those that wait keep waiting. Of
    /// all keys, those in `up` were down and go up: pressed anew in the same frame, they would never have been up for
    /// the game.
    pub fn let_go(&mut self, keys: u16, up: u16) {
        for (number, key) in self.keys.iter_mut().enumerate() {
            let owned = keys & 1 << number != 0 && key.owner.take().is_some();
            if owned || up & 1 << number != 0 {
                key.free = self.tick + 1;
            }
        }
    }

    fn begin_if_next(&mut self, id: u64, change: &mut Change) {
        let Some(hold) = self.waiting.get(&id).copied() else { return };
        let is_next = numbers(hold.keys).all(|number| {
            let key = &self.keys[number];
            key.owner.is_none() && key.free <= self.tick && key.queue.front() == Some(&id)
        });
        if !is_next {
            return;
        }
        self.waiting.remove(&id);
        for number in numbers(hold.keys) {
            let key = &mut self.keys[number];
            key.queue.pop_front();
            key.owner = Some(id);
        }
        // mGBA-http lets go in the first frame behind `frames` and one more.
        self.ends.entry(self.tick + u64::from(hold.frames) + 2).or_default().push(id);
        change.add |= hold.keys;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mask after each frame of a row's steps, as lengths of runs.
    fn play(steps: &str) -> String {
        let mut holds = Holds::default();
        let mut mask = 0;
        let mut runs: Vec<(u16, u32)> = Vec::new();
        for step in steps.split("; ") {
            let words: Vec<&str> = step.split(' ').collect();
            let number = |at: usize| words[at].parse::<u32>().expect("a number");
            match words[0] {
                "hold" => mask |= holds.hold(number(1) as u16, number(2)).expect("room").add,
                "press" => {
                    holds.let_go(number(1) as u16, 0);
                    mask |= number(1) as u16;
                }
                "let_go" => {
                    holds.let_go(number(1) as u16, mask & number(1) as u16);
                    mask &= !(number(1) as u16);
                }
                "run" => {
                    for _ in 0..number(1) {
                        let change = holds.advance();
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
    fn the_vectors_that_the_script_keeps_too() {
        let text = include_str!("../../../protocol/vectors/holds.tsv");
        for row in text.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = row.split('\t').collect();
            let [name, steps, masks] = columns[..] else { panic!("{row:?} has three columns") };
            assert_eq!(play(steps), masks, "{name}");
        }
    }

    #[test]
    fn too_many_are_refused() {
        let mut holds = Holds::default();
        holds.hold(1, 1);
        for _ in 0..MAX_WAITING {
            assert!(holds.hold(1, 1).is_some());
        }
        assert_eq!(holds.hold(1, 1), None);
    }
}
