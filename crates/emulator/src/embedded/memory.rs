//! Outcomes by key, so that a repeated batch is answered instead of being done twice.

use std::collections::{HashMap, VecDeque};

use framewire_protocol::wire::Wire;
use framewire_protocol::{Batch, Outcome};

/// Outcomes kept; the oldest is forgotten first. The script keeps as many (docs/protocol.md).
const KEPT: usize = 16_384;
/// Bytes kept, of batches and outcomes together.
const KEPT_BYTES: usize = 32 * 1024 * 1024;

/// The outcomes of keyed batches that changed something.
#[derive(Debug, Default)]
pub(super) struct Memory {
    entries: HashMap<String, Entry>,
    order: VecDeque<String>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// The batch, encoded.
    batch: Vec<u8>,
    outcome: Outcome,
    bytes: usize,
}

/// What is known under a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recalled<'a> {
    Nothing,
    Outcome(&'a Outcome),
    /// The outcome of another batch.
    Another,
}

impl Memory {
    /// What became of the batch of this key.
    pub fn recall(&self, key: &str, batch: &Batch) -> Recalled<'_> {
        match self.entries.get(key) {
            None => Recalled::Nothing,
            Some(entry) if entry.batch == encoded(batch) => Recalled::Outcome(&entry.outcome),
            Some(_) => Recalled::Another,
        }
    }

    /// Keeps what became of the batch of a key that was not kept yet.
    pub fn remember(&mut self, key: String, batch: &Batch, outcome: Outcome) {
        let batch = encoded(batch);
        let bytes = batch.len() + encoded(&outcome).len();
        self.bytes += bytes;
        self.order.push_back(key.clone());
        self.entries.insert(key, Entry { batch, outcome, bytes });
        while self.order.len() > KEPT || self.bytes > KEPT_BYTES && self.order.len() > 1 {
            let oldest = self.order.pop_front().and_then(|key| self.entries.remove(&key));
            self.bytes -= oldest.map_or(0, |entry| entry.bytes);
        }
    }
}

fn encoded(value: &impl Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use framewire_protocol::Op;

    use super::*;

    fn outcome(frame: u32) -> Outcome {
        Outcome { frame, results: vec![] }
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut memory = Memory::default();
        let batch = Batch::from(Op::Reset {});
        for number in 0..=KEPT as u32 {
            memory.remember(number.to_string(), &batch, outcome(number));
        }
        assert_eq!(memory.recall("0", &batch), Recalled::Nothing);
        assert_eq!(memory.recall("1", &batch), Recalled::Outcome(&outcome(1)));
        assert_eq!(memory.entries.len(), KEPT);
    }

    #[test]
    fn large_ones_push_others_out() {
        let mut memory = Memory::default();
        let batch = Batch::from(Op::WriteRange { address: 0, data: vec![0; KEPT_BYTES / 2] });
        for key in ["a", "b", "c"] {
            memory.remember(key.to_owned(), &batch, outcome(1));
        }
        assert_eq!(memory.recall("b", &batch), Recalled::Nothing);
        assert_eq!(memory.recall("c", &batch), Recalled::Outcome(&outcome(1)));
    }

    #[test]
    fn a_key_used_for_another_batch_is_told_apart() {
        let mut memory = Memory::default();
        memory.remember("used".to_owned(), &Batch::from(Op::Reset {}), outcome(1));
        assert_eq!(memory.recall("used", &Batch::from(Op::Step {})), Recalled::Another);
    }
}
