//! Holds: keys that stay down for a number of frames. `lua/src/holds.lua` follows the same rules. The test vectors in
//! `crates/protocol/vectors/holds.tsv` check both.

use std::collections::{HashMap, VecDeque};

use framewire_protocol::Key;

use super::KeyChange;

/// The largest number of holds that wait for their keys.
pub const MAX_WAITING: usize = 65_536;

const KEYS: usize = Key::ALL.len();

/// All holds. Times are ticks: the number of frames that have run. (The core's own frame counter starts again on a
/// reset.) Each key has a queue of holds, and is up for at least one frame between two of them. So the game sees a
/// separate press for every hold. Timelines own keys in the same way as holds.
#[derive(Debug, Default)]
pub struct Holds {
    tick: u64,
    next_id: u64,
    waiting: HashMap<u64, Hold>,
    keys: [KeyState; KEYS],
}

#[derive(Debug, Clone, Copy)]
struct Hold {
    keys: u16,
    frames: u32,
}

/// The hold or timeline that controls a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A hold. The key is down.
    Hold(u64),
    /// A timeline. The key may be down or up.
    Timeline(u32),
}

#[derive(Debug, Default)]
struct KeyState {
    owner: Option<Owner>,
    /// The tick at which the owner ends, if it is a hold.
    stop: u64,
    /// The first tick at which a hold may press the key again.
    free: u64,
    /// The holds that wait for the key. A hold of several keys is in several queues.
    queue: VecDeque<u64>,
}

/// The numbers of the keys in a mask.
fn numbers(keys: u16) -> impl Iterator<Item = usize> {
    (0..KEYS).filter(move |key| keys & 1 << key != 0)
}

impl Holds {
    /// Holds `keys` for `frames` + 2 frames, as mGBA-http does: at once, or after the earlier holds and timelines of
    /// these keys. Returns `None` if too many holds already wait.
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
        for number in 0..KEYS {
            let key = &self.keys[number];
            if let Some(hold @ Owner::Hold(_)) = key.owner
                && key.stop == self.tick
            {
                change.clear |= self.finish(hold);
            }
        }
        for number in 0..KEYS {
            if let Some(&id) = self.keys[number].queue.front() {
                self.begin_if_next(id, &mut change);
            }
        }
        change
    }

    /// Removes the owners of these keys. Called when a request sets the keys directly, and when their owners end. `up`
    /// contains the keys that were down and that the request releases. Waiting holds continue to wait. A hold that
    /// waits for a key in `up`, or for a key that has just lost its owner, begins only after the next frame, so that
    /// the game sees the key up in between.
    pub fn release(&mut self, keys: u16, up: u16) {
        for (number, key) in self.keys.iter_mut().enumerate() {
            let owned = keys & 1 << number != 0 && key.owner.take().is_some();
            if owned || up & 1 << number != 0 {
                key.free = self.tick + 1;
            }
        }
    }

    /// The number of frames that have run.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// The keys that this hold or timeline owns.
    pub fn owned(&self, owner: Owner) -> u16 {
        self.owned_by(|of_key| of_key == owner)
    }

    /// The keys that any hold or timeline owns.
    pub fn all_owned(&self) -> u16 {
        self.owned_by(|_| true)
    }

    fn owned_by(&self, wanted: impl Fn(Owner) -> bool) -> u16 {
        let owned = self.keys.iter().enumerate().filter(|(_, key)| key.owner.is_some_and(&wanted));
        owned.fold(0, |keys, (number, _)| keys | 1 << number)
    }

    /// Makes a timeline the owner of keys, in place of running holds. Returns the keys that these holds kept down.
    pub fn take(&mut self, keys: u16, timeline: u32) -> u16 {
        numbers(keys).fold(0, |kept, number| {
            let before = self.keys[number].owner.replace(Owner::Timeline(timeline));
            kept | u16::from(before.is_some()) << number
        })
    }

    /// Ends a hold or timeline. Returns its keys, which the caller must release. Holds may press them again after the
    /// next frame.
    pub fn finish(&mut self, owner: Owner) -> u16 {
        let keys = self.owned(owner);
        self.release(keys, 0);
        keys
    }

    /// Ends all holds, including those that wait. Returns whether there was a hold, and the keys to release.
    pub fn cancel(&mut self) -> (bool, u16) {
        let waited = !self.waiting.is_empty();
        self.waiting.clear();
        let held = self.owned_by(|owner| matches!(owner, Owner::Hold(_)));
        self.keys.iter_mut().for_each(|key| key.queue.clear());
        self.release(held, 0);
        (waited || held != 0, held)
    }

    /// Begins a waiting hold, if all of its keys are free and no earlier hold waits for them.
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
            // As in mGBA-http, the keys are released after `frames` + 2 frames have run.
            key.stop = self.tick + u64::from(hold.frames) + 2;
        }
        change.add |= hold.keys;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_waiting_holds_is_limited() {
        let mut holds = Holds::default();
        holds.hold(1, 1);
        for _ in 0..MAX_WAITING {
            assert!(holds.hold(1, 1).is_some());
        }
        assert_eq!(holds.hold(1, 1), None);
    }
}
