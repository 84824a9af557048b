//! Compares the memory of two savestates. Returns the ranges that differ, with their old and new bytes.

use crate::{Console, OnBus, Region, State};

/// A range of bytes that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference<'a> {
    /// The memory domain.
    pub domain: &'static str,
    /// The first byte's offset in the domain.
    pub offset: u32,
    /// The first byte's bank and address on the bus; `None` if the bus does not show the domain. The other bytes follow
    /// it in the same bank.
    pub on_bus: Option<OnBus>,
    /// The old bytes.
    pub old: &'a [u8],
    /// The new bytes.
    pub new: &'a [u8],
}

/// The largest length of a range in bytes. A longer difference is split.
const LONGEST: usize = 4096;

/// The ranges in which the memory of two states of the same console differs, domain by domain. Differences with at most
/// `join` equal bytes between them are joined into one range. A domain that only one of the states contains is skipped.
pub fn differences<'a>(
    old: &'a State<'_>,
    new: &'a State<'_>,
    join: usize,
) -> impl Iterator<Item = Difference<'a>> {
    let console = old.console();
    old.memory().flat_map(move |old| {
        let new = new.memory().find(|new| new.domain == old.domain);
        new.into_iter().flat_map(move |new| in_region(console, old, new, join))
    })
}

fn in_region<'a>(
    console: Console,
    old: Region<'a>,
    new: Region<'a>,
    join: usize,
) -> impl Iterator<Item = Difference<'a>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let bank_end = |offset| console.bank_end(old.domain, offset as u32).map(|end| end as usize);
        let range = next_range(old.bytes, new.bytes, at, join, bank_end)?;
        at = range.end;
        let offset = range.start as u32;
        Some(Difference {
            domain: old.domain,
            offset,
            on_bus: console.on_bus(old.domain, offset),
            old: &old.bytes[range.clone()],
            new: &new.bytes[range],
        })
    })
}

/// The first differing range at or after the offset `from`, within one bank. If `old` and `new` have different lengths,
/// only the bytes that both have are compared.
fn next_range(
    old: &[u8],
    new: &[u8],
    from: usize,
    join: usize,
    bank_end: impl Fn(usize) -> Option<usize>,
) -> Option<std::ops::Range<usize>> {
    let length = old.len().min(new.len());
    let differs = |at: &usize| old[*at] != new[*at];
    let start = (from..length).find(differs)?;
    let limit = length.min(start + LONGEST).min(bank_end(start).unwrap_or(length));
    let mut end = start + 1;
    // Extend the range while the next difference is near enough to join.
    while let Some(next) = (end..limit.min(end.saturating_add(join).saturating_add(1))).find(differs) {
        end = next + 1;
    }
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(old: &[u8], new: &[u8], join: usize) -> Vec<(u32, Vec<u8>, Vec<u8>)> {
        let region = |bytes| Region { domain: "wram", bytes };
        let all = in_region(Console::Gba, region(old), region(new), join);
        all.map(|difference| {
            let address = difference.on_bus.map(|place| place.address);
            assert_eq!(address, Some(0x0200_0000 + difference.offset));
            (difference.offset, difference.old.to_vec(), difference.new.to_vec())
        })
        .collect()
    }

    #[test]
    fn ranges_contain_the_bytes_that_differ() {
        assert_eq!(ranges(b"same", b"same", 0), []);
        assert_eq!(
            ranges(b"abcdef", b"XbcYZf", 0),
            [(0, b"a".to_vec(), b"X".to_vec()), (3, b"de".to_vec(), b"YZ".to_vec())]
        );
        assert_eq!(ranges(b"abcdef", b"XbcYZf", 2), [(0, b"abcde".to_vec(), b"XbcYZ".to_vec())]);
        assert_eq!(ranges(b"abcdef", b"XbcYZf", 1).len(), 2);
        assert_eq!(ranges(b"ab", b"abc", 9), []);
    }

    #[test]
    fn ranges_of_banked_memory_end_with_their_bank() {
        let (old, new) = (vec![0; 0x4000], vec![1; 0x4000]);
        let region = |bytes| Region { domain: "wram", bytes };
        let all = in_region(Console::Gb, region(&old), region(&new), 0);
        let places: Vec<_> = all
            .map(|found| (found.new.len(), found.on_bus.unwrap().bank, found.on_bus.unwrap().address))
            .collect();
        let bank = |number, address| (0x1000, Some(number), address);
        assert_eq!(places, [bank(0, 0xC000), bank(1, 0xD000), bank(2, 0xD000), bank(3, 0xD000)]);
    }

    #[test]
    fn long_ranges_are_split() {
        let (old, new) = (vec![0; 3 * LONGEST - 1], vec![1; 3 * LONGEST - 1]);
        let lengths: Vec<usize> =
            ranges(&old, &new, usize::MAX).iter().map(|(_, old, _)| old.len()).collect();
        assert_eq!(lengths, [LONGEST, LONGEST, LONGEST - 1]);
    }

    /// Applying the ranges to the old memory gives the new memory, for every value of `join`.
    #[test]
    fn ranges_rebuild_the_new_memory() {
        let mut seed = 7u32;
        let mut random = move || {
            seed ^= seed << 13;
            seed ^= seed >> 17;
            seed ^= seed << 5;
            seed
        };
        let old: Vec<u8> = (0..20_000).map(|_| random() as u8).collect();
        let mut new = old.clone();
        for _ in 0..3000 {
            new[random() as usize % 20_000] = random() as u8;
        }
        for join in [0, 1, 7, 100, 30_000] {
            let mut built = old.clone();
            for (offset, before, after) in ranges(&old, &new, join) {
                let range = offset as usize..offset as usize + after.len();
                assert_eq!(&built[range.clone()], before);
                assert!(before[0] != after[0] && before.last() != after.last());
                built[range].copy_from_slice(&after);
            }
            assert_eq!(built, new, "join {join}");
        }
    }
}
