//! Watched memory: the arguments of [`Op::Watch`](crate::Op::Watch).

use crate::error::OpError;
use crate::wire::{DecodeError, Reader, Wire};

/// The largest number of ranges of a watch.
pub const MAX_RANGES: usize = 256;

/// The largest number of bytes of a range.
pub const MAX_LENGTH: u16 = 4096;

/// The largest number of bytes in all ranges of a watch. The script has the same limit for all watches of a connection
/// together.
pub const MAX_WATCHED: usize = 65_536;

/// Flag of a watch: report the keys held in each frame.
pub const FLAG_KEYS: u8 = 1;

/// Flag of a watch: report the hashes of the picture and of the work RAM in each of the regular events, which come at
/// the interval `every` of [`Op::Watch`](crate::Op::Watch). Embedded cores only.
pub const FLAG_HASHES: u8 = 2;

/// In an embedded core, a watch that reports keys and hashes sends at least one event in this many frames. So a
/// recording gets all keys within half a second at the console's speed.
pub const MAX_QUIET: u32 = 30;

/// Flag of a watch: the console's clock advances with the frames while the watch runs. Embedded cores only.
pub const FLAG_CLOCK: u8 = 4;

/// The size in bytes of an expression's value, which a watch reports in place of memory: 1 and the value as `i64`, or
/// only zeros if there is no value.
const VALUE: u16 = 9;

/// A range of memory, or an expression that reads memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MemoryRange {
    /// Name of the memory domain; `None` is the bus.
    pub domain: Option<String>,
    /// Address of the first byte on the bus, or its offset in the domain.
    pub address: u32,
    /// Number of bytes, 1 to [`MAX_LENGTH`].
    pub length: u16,
    /// An expression, encoded as bytes. If this is set, its value is watched in place of memory at a fixed address.
    pub expression: Option<Vec<u8>>,
}

impl MemoryRange {
    /// Memory at an address on the bus or, with a domain, at an offset in that domain.
    pub fn new(domain: Option<String>, address: u32, length: u16) -> MemoryRange {
        MemoryRange { domain, address, length, expression: None }
    }

    /// The value of an expression, as in the result of [`Op::Evaluate`](crate::Op::Evaluate).
    pub fn of_expression(expression: Vec<u8>) -> MemoryRange {
        MemoryRange { domain: None, address: 0, length: VALUE, expression: Some(expression) }
    }
}

impl Wire for MemoryRange {
    /// A name is cut after 255 bytes; no domain has a longer one. An expression has no name and the length 0. Its size
    /// is in place of the address, and its bytes follow.
    fn encode(&self, out: &mut Vec<u8>) {
        if let Some(expression) = &self.expression {
            out.push(0);
            (expression.len() as u32).encode(out);
            0u16.encode(out);
            out.extend_from_slice(expression);
            return;
        }
        let name = self.domain.as_deref().unwrap_or_default().as_bytes();
        let name = &name[..name.len().min(usize::from(u8::MAX))];
        out.push(name.len() as u8);
        out.extend_from_slice(name);
        self.address.encode(out);
        self.length.encode(out);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = usize::from(reader.get::<u8>()?);
        let name =
            String::from_utf8(reader.take(length, "name")?.to_vec()).map_err(|_| DecodeError::NotText)?;
        let domain = Some(name).filter(|name| !name.is_empty());
        let (address, length): (u32, u16) = (reader.get()?, reader.get()?);
        if length == 0 && domain.is_none() {
            let expression = reader.take(address as usize, "expression")?;
            return Ok(MemoryRange::of_expression(expression.to_vec()));
        }
        Ok(MemoryRange::new(domain, address, length))
    }
}

/// Encodes ranges.
pub fn encode(ranges: &[MemoryRange]) -> Vec<u8> {
    ranges.iter().flat_map(MemoryRange::to_bytes).collect()
}

/// Decodes ranges, and checks that a watch can have them.
///
/// # Errors
/// If there are too many ranges or bytes, or a range has a length that is not accepted.
pub fn decode(bytes: &[u8]) -> Result<Vec<MemoryRange>, OpError> {
    let wrong = |problem: String| OpError::bad_argument(format!("ranges: {problem}"));
    let mut reader = Reader::new(bytes);
    let mut ranges = Vec::new();
    while reader.remaining() > 0 {
        if ranges.len() == MAX_RANGES {
            let most =
                format!("more than {MAX_RANGES}; watch fewer, or longer ones of up to {MAX_LENGTH} bytes");
            return Err(wrong(most));
        }
        let range: MemoryRange = reader.get().map_err(|error| wrong(error.to_string()))?;
        if !(1..=MAX_LENGTH).contains(&range.length) {
            return Err(wrong(format!("length {}; 1 to {MAX_LENGTH} bytes are accepted", range.length)));
        }
        ranges.push(range);
    }
    match total(&ranges) {
        0..=MAX_WATCHED => Ok(ranges),
        total => Err(wrong(format!("{total} bytes in all; at most {MAX_WATCHED} are accepted"))),
    }
}

/// The number of bytes in all of these ranges.
pub fn total(ranges: &[MemoryRange]) -> usize {
    ranges.iter().map(|range| usize::from(range.length)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(domain: Option<&str>, length: u16) -> MemoryRange {
        MemoryRange::new(domain.map(str::to_owned), 0x0200_0000, length)
    }

    #[test]
    fn ranges_are_decoded_as_they_were_encoded() {
        let expression = MemoryRange::of_expression(vec![1]);
        let ranges = vec![range(None, 1), expression, range(Some("wram"), MAX_LENGTH)];
        assert_eq!(decode(&encode(&ranges)), Ok(ranges));
    }

    #[test]
    fn the_error_for_an_invalid_watch_names_the_problem() {
        let cases = [
            (vec![range(Some("wram"), 0)], "length 0"),
            (vec![range(None, MAX_LENGTH + 1)], "1 to 4096"),
            (vec![range(None, 1); MAX_RANGES + 1], "more than 256"),
            (vec![range(None, MAX_LENGTH); 17], "69632 bytes in all"),
        ];
        for (wrong, says) in cases {
            let error = decode(&encode(&wrong)).expect_err(says);
            assert!(error.message.contains(says), "{error}");
        }
        let cut = encode(&[range(Some("wram"), 2)]);
        assert!(decode(&cut[..cut.len() - 1]).is_err());
    }
}
