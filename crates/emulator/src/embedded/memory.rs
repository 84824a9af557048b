//! Outcomes by key, so that a repeated batch is answered instead of being done twice.

use std::collections::{HashMap, VecDeque};

use framewire_protocol::Outcome;

/// Outcomes kept; the oldest is forgotten first. The script keeps as many (docs/protocol.md).
const KEPT: usize = 16_384;

/// The outcomes of keyed batches that changed something.
#[derive(Debug, Default)]
pub(super) struct Memory {
    outcomes: HashMap<String, Outcome>,
    order: VecDeque<String>,
}

impl Memory {
    /// What became of the batch of this key.
    pub fn recall(&self, key: &str) -> Option<&Outcome> {
        self.outcomes.get(key)
    }

    /// Keeps what became of the batch of a key that was not kept yet.
    pub fn remember(&mut self, key: String, outcome: Outcome) {
        if self.order.len() == KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.outcomes.remove(&oldest);
        }
        self.order.push_back(key.clone());
        self.outcomes.insert(key, outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut memory = Memory::default();
        for number in 0..=KEPT {
            memory.remember(number.to_string(), Outcome { frame: number as u32, results: vec![] });
        }
        assert_eq!(memory.recall("0"), None);
        assert_eq!(memory.recall("1").map(|outcome| outcome.frame), Some(1));
        assert_eq!(memory.outcomes.len(), KEPT);
    }
}
