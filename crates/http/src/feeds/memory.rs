//! The memory of a watch as it is known, and the values that come from it.

use framewire_emulator::Change;
use serde_json::Value as Json;

use super::definition::{Subjects, Watched};
use crate::reading::fields::Encoding;

/// The bytes of each range of [`Subjects`].
#[derive(Debug)]
pub(crate) struct WatchedMemory {
    pub(crate) subjects: Subjects,
    ranges: Vec<Vec<u8>>,
}

impl WatchedMemory {
    /// The ranges' bytes, joined; what is missing counts as 0.
    pub(crate) fn new(subjects: Subjects, mut joined: &[u8]) -> WatchedMemory {
        let ranges = subjects.ranges.iter().map(|range| {
            let mut bytes = vec![0; range.length.into()];
            let (own, rest) = joined.split_at(bytes.len().min(joined.len()));
            bytes[..own.len()].copy_from_slice(own);
            joined = rest;
            bytes
        });
        WatchedMemory { ranges: ranges.collect(), subjects }
    }

    /// Takes what changed.
    pub(crate) fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            if let Some(range) = self.ranges.get_mut(change.range) {
                *range = change.new;
            }
        }
    }

    /// The number that the subject of this index is in this frame, if it is one and has a value.
    pub(crate) fn number(&self, index: usize, frame: u32) -> Option<i64> {
        match self.subjects.all.get(index)? {
            Watched::Number(expression, ranges) => {
                let kinds = expression.places().iter().map(|place| place.kind);
                let values: Vec<i64> =
                    kinds.zip(ranges).map(|(kind, range)| kind.read(&self.ranges[*range])).collect();
                expression.value(frame, &values)
            }
            Watched::Bytes(_) => None,
        }
    }

    /// What the subjects are in this frame.
    pub(crate) fn values(&self, frame: u32, encoding: Encoding) -> Vec<Json> {
        let value = |(index, subject): (usize, &Watched)| match subject {
            Watched::Bytes(range) => encoding.text(&self.ranges[*range]).into(),
            Watched::Number(expression, _) => match self.number(index, frame) {
                Some(number) if expression.is_condition() => (number != 0).into(),
                Some(number) => number.into(),
                None => Json::Null,
            },
        };
        self.subjects.all.iter().enumerate().map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::feeds::definition::Definition;

    #[test]
    fn values_follow_what_changes() {
        let watch = [
            "u16[0x10] + u16[0x10] * 2",
            "u16[0x10] > 5",
            "bytes[0x10, 2]",
            "i8[wram:3] / u16[0x10]",
            "frame",
        ];
        let definition = Definition { watch: watch.map(str::to_owned).to_vec(), ..Definition::default() };
        let subjects = definition.compile(&framewire_symbols::Symbols::default()).unwrap();
        assert_eq!(subjects.ranges.len(), 2, "each range once");
        assert!(subjects.uses_frame);
        let mut memory = WatchedMemory::new(subjects, &[0, 0, 0xfe]);
        let expected = vec![json!(0), json!(false), json!("0000"), json!(null), json!(9)];
        assert_eq!(memory.values(9, Encoding::Hex), expected);
        memory.apply(vec![Change { range: 0, old: vec![], new: vec![2, 1] }]);
        let expected = vec![json!(0x306), json!(true), json!("0201"), json!(0), json!(10)];
        assert_eq!(memory.values(10, Encoding::Hex), expected);
        memory.apply(vec![Change { range: 0, old: vec![], new: vec![1] }]);
        assert_eq!(memory.number(0, 10), Some(3), "a range cut short does not panic");
    }
}
