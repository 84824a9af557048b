//! Keys held for a number of frames. `lua/framewire.lua` has the same rules; `vectors/holds.tsv` holds both.

use std::collections::VecDeque;

use framewire_protocol::Key;

/// Most holds that wait for an earlier one of the same key.
pub(super) const MAX_QUEUED: usize = 65_536;

/// Holds by the count of frames that were run, which never goes back, unlike the core's own frame counter.
#[derive(Debug, Default)]
pub(super) struct Holds {
    /// Frames run so far.
    tick: u64,
    running: Vec<Running>,
    queued: VecDeque<Queued>,
    /// For each key the first tick at which a new hold of it may begin.
    free: [u64; Key::ALL.len()],
}

#[derive(Debug)]
struct Running {
    keys: u16,
    /// The tick at which the keys are let go.
    end: u64,
}

#[derive(Debug)]
struct Queued {
    keys: u16,
    start: u64,
    end: u64,
}

/// Keys to hold and keys to let go of, now.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub(super) struct Change {
    pub add: u16,
    pub clear: u16,
}

impl Holds {
    /// Holds `keys` for `frames`, at once or when each of them is free; `None` if too many wait already.
    pub fn hold(&mut self, keys: u16, frames: u32) -> Option<Change> {
        let of_keys = |free: &[u64; Key::ALL.len()]| {
            (0..free.len()).filter(|key| keys & (1 << key) != 0).map(|key| free[key]).max().unwrap_or(0)
        };
        let start = of_keys(&self.free).max(self.tick);
        // mGBA-http lets go in the first frame behind `duration` frames and one more.
        let end = start + u64::from(frames) + 2;
        if start > self.tick && self.queued.len() >= MAX_QUEUED {
            return None;
        }
        for key in (0..self.free.len()).filter(|key| keys & (1 << key) != 0) {
            self.free[key] = end + 1;
        }
        if start > self.tick {
            self.queued.push_back(Queued { keys, start, end });
            return Some(Change::default());
        }
        self.running.push(Running { keys, end });
        Some(Change { add: keys, clear: 0 })
    }

    /// A frame was run.
    pub fn advance(&mut self) -> Change {
        self.tick += 1;
        let mut change = Change::default();
        self.running.retain(|hold| {
            let over = hold.end <= self.tick;
            if over {
                change.clear |= hold.keys;
            }
            !over
        });
        // Each waits for its own keys, so a later one may begin before an earlier one.
        let tick = self.tick;
        let running = &mut self.running;
        self.queued.retain(|hold| {
            let begins = hold.start <= tick;
            if begins {
                change.add |= hold.keys;
                running.push(Running { keys: hold.keys, end: hold.end });
            }
            !begins
        });
        change
    }

    /// The keys were set or cleared by hand: holds of them that run have no more effect on them.
    pub fn release(&mut self, keys: u16) {
        self.running.retain_mut(|hold| {
            hold.keys &= !keys;
            hold.keys != 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mask after each of `frames` frames.
    fn play(holds: &mut Holds, mut mask: u16, frames: usize) -> Vec<u16> {
        (0..frames)
            .map(|_| {
                let change = holds.advance();
                mask = mask & !change.clear | change.add;
                mask
            })
            .collect()
    }

    #[test]
    fn a_hold_ends_as_in_mgba_http() {
        let mut holds = Holds::default();
        assert_eq!(holds.hold(1, 15), Some(Change { add: 1, clear: 0 }));
        let masks = play(&mut holds, 1, 20);
        assert_eq!(masks.iter().position(|mask| *mask == 0), Some(16), "still seen at frame +16: {masks:?}");
    }

    #[test]
    fn two_taps_of_one_key_are_two_presses() {
        let mut holds = Holds::default();
        holds.hold(1, 1);
        holds.hold(1, 1);
        let masks = play(&mut holds, 1, 10);
        let presses = masks.windows(2).filter(|pair| pair[0] == 0 && pair[1] == 1).count();
        assert_eq!(presses, 1, "one more rising edge behind the first: {masks:?}");
        assert_eq!(masks.last(), Some(&0));
    }

    #[test]
    fn a_hold_of_another_key_does_not_wait() {
        let mut holds = Holds::default();
        holds.hold(1, 15);
        assert_eq!(holds.hold(2, 15), Some(Change { add: 2, clear: 0 }));
    }

    #[test]
    fn a_key_cleared_by_hand_is_not_touched_at_the_end() {
        let mut holds = Holds::default();
        holds.hold(3, 1);
        holds.release(1);
        let clears: u16 = (0..5).map(|_| holds.advance().clear).sum();
        assert_eq!(clears, 2);
    }
}
