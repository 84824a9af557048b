//! Stores bytes as the difference from earlier bytes.

/// The size in bytes of the blocks that are compared as a whole, to find equal parts quickly.
const BLOCK: usize = 64;
/// The unit of a difference, in bytes.
const WORD: usize = 8;

/// Bytes, stored as the difference from other bytes. Each part that differs is stored as three fields: the number of
/// equal bytes before it, its length, and its bytes.
#[derive(Debug)]
pub(super) struct Packed {
    length: usize,
    parts: Box<[u8]>,
}

impl Packed {
    /// Packs `new` as its difference from `old`. If `old` is shorter, it is extended with zeros.
    pub fn new(old: &[u8], new: &[u8]) -> Packed {
        let padded;
        let old = if old.len() < new.len() {
            padded = [old, &vec![0; new.len() - old.len()]].concat();
            &padded[..]
        } else {
            &old[..new.len()]
        };
        let mut parts = Vec::new();
        let (mut at, mut written) = (0, 0);
        while let Some(start) = next(at, old, new, true) {
            let end = next(start, old, new, false).unwrap_or(new.len());
            put_number(&mut parts, start - written);
            put_number(&mut parts, end - start);
            parts.extend_from_slice(&new[start..end]);
            (at, written) = (end, end);
        }
        Packed { length: new.len(), parts: parts.into_boxed_slice() }
    }

    /// Turns the old bytes into the bytes that were packed.
    pub fn unpack(&self, bytes: &mut Vec<u8>) {
        bytes.resize(self.length, 0);
        let (mut parts, mut at) = (&self.parts[..], 0);
        while let (Some(skip), Some(length)) = (take_number(&mut parts), take_number(&mut parts)) {
            at += skip;
            let (part, rest) = parts.split_at(length);
            bytes[at..at + length].copy_from_slice(part);
            at += length;
            parts = rest;
        }
    }

    /// How much memory this takes, in bytes.
    pub fn size(&self) -> usize {
        size_of::<Packed>() + self.parts.len()
    }
}

/// The start of the first word from `at` on that differs or, if `differs` is false, that is equal.
fn next(mut at: usize, old: &[u8], new: &[u8], differs: bool) -> Option<usize> {
    while at < new.len() {
        // Most blocks are equal. Skipping a whole block is faster than comparing its words.
        if differs && at.is_multiple_of(BLOCK) {
            let end = (at + BLOCK).min(new.len());
            if old[at..end] == new[at..end] {
                at = end;
                continue;
            }
        }
        let end = (at + WORD).min(new.len());
        if (old[at..end] != new[at..end]) == differs {
            return Some(at);
        }
        at = end;
    }
    None
}

/// Appends a number with seven bits per byte, the lowest bits first. The top bit of a byte is set if another byte
/// follows.
fn put_number(bytes: &mut Vec<u8>, mut value: usize) {
    while value > 0x7F {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Reads a number that [`put_number`] has written, and removes its bytes. `None` if there are no more bytes.
fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes.split_off_first()?;
        value |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs and unpacks `new`, checks the result, and returns the packed size.
    fn check_round_trip(old: &[u8], new: &[u8]) -> usize {
        let packed = Packed::new(old, new);
        let mut bytes = old.to_vec();
        packed.unpack(&mut bytes);
        assert!(bytes == new, "{} bytes from {}", new.len(), old.len());
        packed.parts.len()
    }

    #[test]
    fn unpacked_bytes_equal_the_packed_bytes() {
        let mut random = fastrand::Rng::with_seed(17);
        for length in [0, 1, 7, 8, 63, 64, 65, 1000, 40_000] {
            let old: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
            assert_eq!(check_round_trip(&old, &old), 0);
            let mut new = old.clone();
            for _ in 0..length / 50 {
                new[random.usize(..length)] = random.u8(..);
            }
            let size = check_round_trip(&old, &new);
            assert!(size <= length / 50 * 12 + 12, "{size} bytes for {} changes", length / 50);
            check_round_trip(&[], &new);
            check_round_trip(&old, &new[..length / 2]);
            check_round_trip(&old[..length / 2], &new);
        }
    }
}
