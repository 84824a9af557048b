//! The payloads of requests. They are random, so that a reply that belongs to another request is detected. Only very
//! short payloads can be equal by chance.

use std::fmt;
use std::str::FromStr;

/// The kind of payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// A random UUID (version 4): 36 characters.
    Uuid,
    /// This number of random letters, digits, `-` and `_`. They need no escaping in URLs, and no protocol separates
    /// fields with them.
    Bytes(usize),
    /// Like `Bytes`, but each payload has a random size from the first number to the second.
    Between(usize, usize),
}

/// The largest payload, in bytes.
pub const LARGEST: usize = 16 * 1024 * 1024;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Payload {
    /// The length in bytes; the largest length if it varies.
    pub fn size(self) -> usize {
        match self {
            Payload::Uuid => 36,
            Payload::Bytes(size) | Payload::Between(_, size) => size,
        }
    }

    /// Replaces the content of `out` with a new payload.
    pub fn fill(self, random: &mut fastrand::Rng, out: &mut Vec<u8>) {
        out.clear();
        match self {
            Payload::Uuid => uuid(random, out),
            Payload::Bytes(size) => letters(size, random, out),
            Payload::Between(least, most) => letters(random.usize(least..=most), random, out),
        }
    }
}

fn letters(size: usize, random: &mut fastrand::Rng, out: &mut Vec<u8>) {
    while out.len() < size {
        let bits = random.u64(..);
        // A letter takes six bits, so 64 bits are enough for ten letters.
        let count = (size - out.len()).min(10);
        out.extend((0..count).map(|index| LETTERS[(bits >> (6 * index)) as usize & 63]));
    }
}

fn uuid(random: &mut fastrand::Rng, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bits = random.u128(..);
    // The version is 4.
    bits = bits & !(0xf << 76) | (4 << 76);
    // The variant is the one of RFC 9562.
    bits = bits & !(0b11 << 62) | (0b10 << 62);
    for index in 0..32 {
        if matches!(index, 8 | 12 | 16 | 20) {
            out.push(b'-');
        }
        out.push(DIGITS[(bits >> (124 - 4 * index)) as usize & 15]);
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Payload::Uuid => write!(f, "uuid"),
            Payload::Bytes(size) => write!(f, "{size}"),
            Payload::Between(least, most) => write!(f, "{least}..{most}"),
        }
    }
}

/// The error for a text that is not a payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a payload; use uuid, a number of bytes from 1 to {LARGEST}, or a range of such numbers, as in 1..5000"
)]
pub struct PayloadError(String);

impl FromStr for Payload {
    type Err = PayloadError;

    fn from_str(text: &str) -> Result<Self, PayloadError> {
        let size = |text: &str| text.parse().ok().filter(|size| (1..=LARGEST).contains(size));
        if text == "uuid" {
            return Ok(Payload::Uuid);
        }
        let payload = match text.split_once("..") {
            None => size(text).map(Payload::Bytes),
            Some((least, most)) => size(least)
                .zip(size(most))
                .filter(|(least, most)| least <= most)
                .map(|(least, most)| Payload::Between(least, most)),
        };
        payload.ok_or_else(|| PayloadError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_version_4_and_is_never_repeated() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut seen = std::collections::HashSet::new();
        let mut out = Vec::new();
        for _ in 0..1000 {
            Payload::Uuid.fill(&mut random, &mut out);
            let text = std::str::from_utf8(&out).unwrap();
            assert_eq!(text.len(), Payload::Uuid.size());
            let parts: Vec<_> = text.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{text}");
            assert_eq!(&text[14..15], "4", "{text}");
            assert!("89ab".contains(&text[19..20]), "{text}");
            assert!(seen.insert(out.clone()));
        }
    }

    #[test]
    fn payloads_have_the_requested_size() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut out = Vec::new();
        for size in [1, 9, 10, 11, 36, 5000] {
            Payload::Bytes(size).fill(&mut random, &mut out);
            assert_eq!(out.len(), size);
            assert!(out.iter().all(|byte| LETTERS.contains(byte)));
        }
        assert_eq!("5000".parse(), Ok(Payload::Bytes(5000)));
    }

    #[test]
    fn all_sizes_of_a_range_occur() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut out = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            Payload::Between(1, 5).fill(&mut random, &mut out);
            seen.insert(out.len());
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn payloads_are_read_and_shown() {
        for text in ["uuid", "5000", "1..5000", "7..7"] {
            assert_eq!(text.parse::<Payload>().unwrap().to_string(), text);
        }
        for text in ["0", "5k", "5..1", "0..5", "..5", "1..", "uuid..5"] {
            assert!(text.parse::<Payload>().is_err(), "{text}");
        }
    }
}
