//! Keys held for a number of frames. `lua/src/holds.lua` follows the same rules; the test vectors in
//! `crates/protocol/vectors/holds.tsv` check both.

use std::collections::{BTreeMap, HashMap, VecDeque};

use framewire_protocol::Key;

use super::KeyChange;

/// The largest number of holds that wait for an earlier one of the same key.
pub const MAX_WAITING: usize = 65_536;

const KEYS: usize = Key::ALL.len();

/// All holds. They count ticks, which are frames that were run, because the core's own counter starts again on a reset. Each
/// key has a queue, so the game sees a separate press for every hold. Timelines own keys in the same way as holds.
#[derive(Debug, Default)]
pub struct Holds {
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

/// The owner of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A hold, which keeps the key down.
    Hold(u64),
    /// A timeline, whether the key is down or not.
    Timeline(u32),
}

#[derive(Debug, Default)]
struct KeyState {
    owner: Option<Owner>,
    /// The first tick at which it may be pressed again.
    free: u64,
    /// The holds that wait for it. A hold of several keys is in several queues.
    queue: VecDeque<u64>,
}

/// The numbers of the keys in a mask.
fn numbers(keys: u16) -> impl Iterator<Item = usize> {
    (0..KEYS).filter(move |key| keys & 1 << key != 0)
}

impl Holds {
    /// Holds `keys` for `frames`, at once or when earlier holds of them have ended; `None` if too many wait already.
    pub fn hold(&mut self, keys: u16, frames: u32) -> Option<KeyChange> {
        if self.waiting.len() >= MAX_WAITING {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.waiting.insert(id, Hold { keys, frames });
        for key in numbers(keys) {
            self.keys[key].queue.push_back(id);
        }
        let mut change = KeyChange::default();
        self.begin_if_next(id, &mut change);
        Some(change)
    }

    /// Called after each frame.
    pub fn advance(&mut self) -> KeyChange {
        self.tick += 1;
        let mut change = KeyChange::default();
        for id in self.ends.remove(&self.tick).unwrap_or_default() {
            change.clear |= self.finish(Owner::Hold(id));
        }
        for number in 0..KEYS {
            if let Some(&id) = self.keys[number].queue.front() {
                self.begin_if_next(id, &mut change);
            }
        }
        change
    }

    /// Takes these keys away from the holds that are running, because a request sets them directly. Holds that wait keep
    /// waiting. The request releases the keys in `up`, which were down. If a hold waits for one of these, it begins only
    /// after the next frame, because the game must see that the keys were up.
    pub fn release(&mut self, keys: u16, up: u16) {
        for (number, key) in self.keys.iter_mut().enumerate() {
            let owned = keys & 1 << number != 0 && key.owner.take().is_some();
            if owned || up & 1 << number != 0 {
                key.free = self.tick + 1;
            }
        }
    }

    /// Frames run so far.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// The keys of this owner.
    pub fn owned(&self, owner: Owner) -> u16 {
        let owned = self.keys.iter().enumerate().filter(|(_, key)| key.owner == Some(owner));
        owned.fold(0, |keys, (number, _)| keys | 1 << number)
    }

    /// Gives keys to a timeline, and takes them away from the holds that are running. Returns the keys that these holds kept
    /// down.
    pub fn take(&mut self, keys: u16, timeline: u32) -> u16 {
        numbers(keys).fold(0, |kept, number| {
            let before = self.keys[number].owner.replace(Owner::Timeline(timeline));
            kept | u16::from(before.is_some()) << number
        })
    }

    /// Ends an owner. Returns its keys, which the caller releases. They are free from the next frame on.
    pub fn finish(&mut self, owner: Owner) -> u16 {
        let keys = self.owned(owner);
        self.release(keys, 0);
        keys
    }

    /// Ends all holds, including those that wait. Returns whether there was one, and the keys to release.
    pub fn cancel(&mut self) -> (bool, u16) {
        let waited = !self.waiting.is_empty();
        self.waiting.clear();
        self.ends.clear();
        let held = (0..KEYS)
            .filter(|number| matches!(self.keys[*number].owner, Some(Owner::Hold(_))))
            .fold(0, |keys, number| keys | 1 << number);
        self.keys.iter_mut().for_each(|key| key.queue.clear());
        self.release(held, 0);
        (waited || held != 0, held)
    }

    fn begin_if_next(&mut self, id: u64, change: &mut KeyChange) {
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
            key.owner = Some(Owner::Hold(id));
        }
        // mGBA-http holds the keys for one frame more than `frames`, and releases them in the frame after that.
        self.ends.entry(self.tick + u64::from(hold.frames) + 2).or_default().push(id);
        change.add |= hold.keys;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
