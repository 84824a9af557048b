//! Keeps the outcomes of batches under their keys, so that a repeated batch gets its outcome and is not performed twice.
//!
//! A key is never forgotten early: when there are too many keys, batches with new keys are refused. When the outcomes take
//! too much memory, the oldest are dropped, but not their keys. So a repeated batch is refused, and never performed again.
//! The script has the same rules (docs/protocol.md).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use framewire_protocol::wire::Wire;
use framewire_protocol::{Batch, OpError, Outcome};

/// How many keys are remembered at once.
const KEYS: usize = 131_072;
/// Bytes of the outcomes that are kept.
const BYTES: usize = 32 * 1024 * 1024;
/// How long a key is remembered.
const LIFE: Duration = Duration::from_secs(600);

/// The outcomes of keyed batches that changed something.
#[derive(Debug, Default)]
pub(super) struct Memory {
    entries: HashMap<String, Entry>,
    /// The keys with the time of their batches, the oldest first.
    order: VecDeque<(Instant, String)>,
    /// How many of these no longer have their outcome.
    dropped: usize,
    /// Bytes of the outcomes that are kept.
    bytes: usize,
    hashers: [RandomState; 2],
}

#[derive(Debug)]
struct Entry {
    batch: Digest,
    /// With its size; `None` when it was dropped.
    outcome: Option<(Outcome, usize)>,
}

/// The part of a batch that is compared.
type Digest = [u64; 2];

impl Memory {
    /// What happened to the batch of this key: its outcome, or why it cannot be done under this key. `None` if the key is new.
    pub fn recall(&mut self, key: &str, batch: &Batch, now: Instant) -> Option<Result<Outcome, OpError>> {
        self.expire(now);
        let Some(entry) = self.entries.get(key) else {
            return if self.entries.len() >= KEYS { Some(Err(OpError::keys_full())) } else { None };
        };
        if entry.batch != self.digest(batch) {
            return Some(Err(OpError::key_reused()));
        }
        let outcome = entry.outcome.as_ref().map(|(outcome, _)| outcome.clone());
        Some(outcome.ok_or_else(OpError::outcome_dropped))
    }

    /// Keeps the outcome of the batch of a new key.
    pub fn remember(&mut self, key: String, batch: &Batch, outcome: Outcome, now: Instant) {
        let size = encoded(&outcome).len();
        self.bytes += size;
        self.order.push_back((now, key.clone()));
        self.entries.insert(key, Entry { batch: self.digest(batch), outcome: Some((outcome, size)) });
        while self.bytes > BYTES {
            let Some((_, oldest)) = self.order.get(self.dropped) else { break };
            let outcome = self.entries.get_mut(oldest).and_then(|entry| entry.outcome.take());
            self.bytes -= outcome.map_or(0, |(_, size)| size);
            self.dropped += 1;
        }
    }

    /// Forgets the keys whose time is over.
    fn expire(&mut self, now: Instant) {
        while let Some((done, _)) = self.order.front()
            && now.duration_since(*done) >= LIFE
        {
            let Some((_, key)) = self.order.pop_front() else { return };
            let outcome = self.entries.remove(&key).and_then(|entry| entry.outcome);
            self.bytes -= outcome.map_or(0, |(_, size)| size);
            self.dropped = self.dropped.saturating_sub(1);
        }
    }

    fn digest(&self, batch: &Batch) -> Digest {
        let bytes = encoded(batch);
        self.hashers.each_ref().map(|hasher| hasher.hash_one(&bytes))
    }
}

fn encoded(value: &impl Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use framewire_protocol::{Op, Value};

    use super::*;

    fn outcome(frame: u32) -> Outcome {
        Outcome { frame, results: vec![] }
    }

    #[test]
    fn a_key_is_not_forgotten_before_its_time_however_many_come_after_it() {
        let (mut memory, batch, begin) = (Memory::default(), Batch::from(Op::Reset {}), Instant::now());
        for number in 0..KEYS as u32 {
            assert_eq!(memory.recall(&number.to_string(), &batch, begin), None);
            memory.remember(number.to_string(), &batch, outcome(number), begin);
        }
        assert_eq!(memory.recall("new", &batch, begin), Some(Err(OpError::keys_full())));
        assert_eq!(memory.recall("0", &batch, begin + LIFE / 2), Some(Ok(outcome(0))));
        assert_eq!(memory.recall("new", &batch, begin + LIFE), None, "there is room again");
        assert_eq!((memory.entries.len(), memory.order.len(), memory.bytes), (0, 0, 0));
    }

    #[test]
    fn large_writes_take_no_room_from_other_keys() {
        let (mut memory, begin) = (Memory::default(), Instant::now());
        let tap = Batch::from(Op::Reset {});
        memory.remember("tap".to_owned(), &tap, outcome(1), begin);
        let write = Batch::from(Op::WriteRange { address: 0, data: vec![0; 200_000] });
        for number in 0..400 {
            memory.remember(number.to_string(), &write, outcome(2), begin);
        }
        assert_eq!(memory.recall("tap", &tap, begin), Some(Ok(outcome(1))));
    }

    #[test]
    fn a_batch_whose_large_outcome_was_dropped_is_refused_and_not_done_again() {
        let (mut memory, begin) = (Memory::default(), Instant::now());
        let batch = Batch::from(Op::Reset {});
        let large = Outcome { frame: 1, results: vec![Ok(Value::Bytes(vec![0; BYTES / 2]))] };
        for key in ["a", "b", "c"] {
            memory.remember(key.to_owned(), &batch, large.clone(), begin);
        }
        assert_eq!(memory.recall("a", &batch, begin), Some(Err(OpError::outcome_dropped())));
        assert_eq!(memory.recall("c", &batch, begin), Some(Ok(large)));
        assert!(memory.bytes <= BYTES, "{}", memory.bytes);
        assert_eq!(memory.recall("a", &batch, begin + LIFE), None);
        assert_eq!((memory.bytes, memory.dropped), (0, 0));
    }

    #[test]
    fn a_key_used_for_another_batch_is_recognised() {
        let (mut memory, begin) = (Memory::default(), Instant::now());
        memory.remember("used".to_owned(), &Batch::from(Op::Reset {}), outcome(1), begin);
        let other = memory.recall("used", &Batch::from(Op::Step {}), begin);
        assert_eq!(other, Some(Err(OpError::key_reused())));
    }
}
