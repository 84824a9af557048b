//! Stores the outcomes of batches under their idempotency keys. If a batch is sent again with its key, it gets the
//! stored outcome and is not performed again.
//!
//! A key is kept for its full time: if there are too many keys, batches with new keys are refused. If the outcomes take
//! too much memory, the oldest are dropped, but their keys are kept. Then a repeated batch is refused, and still not
//! performed again. The script follows the same rules (docs/protocol.md).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use framewire_protocol::wire::Wire;
use framewire_protocol::{Batch, OpError, Outcome};

/// The largest number of keys at the same time.
const KEYS: usize = 131_072;
/// The largest total size of the outcomes, in bytes.
const BYTES: usize = 32 * 1024 * 1024;
/// How long a key is kept.
const LIFE: Duration = Duration::from_secs(600);

/// The outcomes of keyed batches that changed something.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    entries: HashMap<String, Entry>,
    /// The keys, each with the time of its batch, the oldest first.
    order: VecDeque<(Instant, String)>,
    /// The number of keys, from the oldest on, whose outcomes were dropped.
    dropped: usize,
    /// The total size of the outcomes, in bytes.
    bytes: usize,
    hashers: [RandomState; 2],
}

#[derive(Debug)]
struct Entry {
    batch: Digest,
    /// The outcome and its size; `None` after it was dropped.
    outcome: Option<(Outcome, usize)>,
}

/// Two hashes of a batch. They show whether a key is used again for the same batch.
type Digest = [u64; 2];

impl Outcomes {
    /// For a known key, returns the outcome of its batch, or the reason to refuse this batch. For a new key, returns
    /// `None`, or a refusal if there are too many keys.
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

    /// Stores the outcome of a batch under a new key.
    pub fn remember(&mut self, key: String, batch: &Batch, outcome: Outcome, now: Instant) {
        let size = outcome.to_bytes().len();
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

    /// Removes the keys whose time is over.
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
        let bytes = batch.to_bytes();
        self.hashers.each_ref().map(|hasher| hasher.hash_one(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use framewire_protocol::{Op, Value};

    use super::*;

    fn outcome(frame: u32) -> Outcome {
        Outcome { frame, results: vec![] }
    }

    #[test]
    fn a_key_is_kept_for_its_full_time_even_if_many_keys_follow() {
        let (mut outcomes, batch, begin) = (Outcomes::default(), Batch::from(Op::Reset {}), Instant::now());
        for number in 0..KEYS as u32 {
            assert_eq!(outcomes.recall(&number.to_string(), &batch, begin), None);
            outcomes.remember(number.to_string(), &batch, outcome(number), begin);
        }
        assert_eq!(outcomes.recall("new", &batch, begin), Some(Err(OpError::keys_full())));
        assert_eq!(outcomes.recall("0", &batch, begin + LIFE / 2), Some(Ok(outcome(0))));
        assert_eq!(outcomes.recall("new", &batch, begin + LIFE), None, "there is room again");
        assert_eq!((outcomes.entries.len(), outcomes.order.len(), outcomes.bytes), (0, 0, 0));
    }

    #[test]
    fn large_batches_do_not_displace_the_outcomes_of_other_keys() {
        let (mut outcomes, begin) = (Outcomes::default(), Instant::now());
        let reset = Batch::from(Op::Reset {});
        outcomes.remember("reset".to_owned(), &reset, outcome(1), begin);
        let write = Batch::from(Op::WriteRange { address: 0, data: vec![0; 200_000] });
        for number in 0..400 {
            outcomes.remember(number.to_string(), &write, outcome(2), begin);
        }
        assert_eq!(outcomes.recall("reset", &reset, begin), Some(Ok(outcome(1))));
    }

    #[test]
    fn a_batch_whose_outcome_was_dropped_is_refused_and_not_performed_again() {
        let (mut outcomes, begin) = (Outcomes::default(), Instant::now());
        let batch = Batch::from(Op::Reset {});
        let large = Outcome { frame: 1, results: vec![Ok(Value::Bytes(vec![0; BYTES / 2]))] };
        for key in ["a", "b", "c"] {
            outcomes.remember(key.to_owned(), &batch, large.clone(), begin);
        }
        assert_eq!(outcomes.recall("a", &batch, begin), Some(Err(OpError::outcome_dropped())));
        assert_eq!(outcomes.recall("c", &batch, begin), Some(Ok(large)));
        assert!(outcomes.bytes <= BYTES, "{}", outcomes.bytes);
        assert_eq!(outcomes.recall("a", &batch, begin + LIFE), None);
        assert_eq!((outcomes.bytes, outcomes.dropped), (0, 0));
    }

    #[test]
    fn a_key_that_was_used_for_another_batch_is_refused() {
        let (mut outcomes, begin) = (Outcomes::default(), Instant::now());
        outcomes.remember("used".to_owned(), &Batch::from(Op::Reset {}), outcome(1), begin);
        let other = outcomes.recall("used", &Batch::from(Op::Step {}), begin);
        assert_eq!(other, Some(Err(OpError::key_reused())));
    }
}
