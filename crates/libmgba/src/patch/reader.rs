//! Reads a patch from beginning to end.

use super::Problem;
use crate::MAX_ROM_SIZE;

/// The size in bytes of the three checksums at the end of UPS and BPS patches: of the ROM, of the patched ROM, and of
/// the patch.
const SUMS: usize = 12;

/// A patch and a position in it.
pub(super) struct Reader<'a> {
    patch: &'a [u8],
    at: usize,
    /// The end of the part that is read.
    end: usize,
}

impl<'a> Reader<'a> {
    /// Begins to read after the first `at` bytes.
    pub fn new(patch: &'a [u8], at: usize) -> Reader<'a> {
        Reader { patch, at, end: patch.len() }
    }

    /// Like `new`, for a patch that ends with checksums. Checks the checksum of the patch itself.
    pub fn with_sums(patch: &'a [u8], at: usize) -> Result<Reader<'a>, Problem> {
        let mut reader = Reader::new(patch, at);
        let Some(end) = patch.len().checked_sub(SUMS).filter(|end| *end >= at) else {
            return Err(reader.cut_short());
        };
        reader.end = end;
        let (expected, actual) = (reader.sum(2), crc32fast::hash(&patch[..patch.len() - 4]));
        if expected != actual {
            let text = format!(
                "the checksum of the patch should be {expected:08x}, but is {actual:08x}: the file is damaged or cut short"
            );
            return Err(Problem { at: patch.len() - 4, text });
        }
        Ok(reader)
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.end
    }

    /// The bytes that have not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        &self.patch[self.at..self.end]
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Problem> {
        let bytes = self.rest().get(..count).ok_or_else(|| self.cut_short())?;
        self.at += count;
        Ok(bytes)
    }

    /// Reads a number of `count` bytes, the most significant first.
    pub fn big_endian(&mut self, count: usize) -> Result<usize, Problem> {
        Ok(self.bytes(count)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// Reads a number in the format of UPS and BPS: seven bits in each byte, the least significant first. The last byte
    /// has its top bit set. Every byte after the first adds one more than the value of its bits, so each number has
    /// only one form.
    pub fn number(&mut self) -> Result<usize, Problem> {
        let begin = self.at;
        let (mut number, mut unit) = (0usize, 1usize);
        loop {
            let byte = self.bytes(1)?[0];
            let next = usize::from(byte & 0x7F).checked_mul(unit).and_then(|part| number.checked_add(part));
            let (Some(sum), Some(next_unit)) = (next, unit.checked_mul(128)) else {
                return Err(Problem::new(begin, "the number there is larger than any ROM"));
            };
            number = sum;
            if byte & 0x80 != 0 {
                return Ok(number);
            }
            unit = next_unit;
            number = number.saturating_add(unit);
        }
    }

    /// Reads the size of a ROM.
    pub fn rom_size(&mut self) -> Result<usize, Problem> {
        let begin = self.at;
        let size = self.number()?;
        if size > MAX_ROM_SIZE {
            let text = format!("the size of the ROM there is {size} bytes; a ROM has at most {MAX_ROM_SIZE}");
            return Err(Problem { at: begin, text });
        }
        Ok(size)
    }

    /// The checksum with this index at the end of the patch.
    pub fn sum(&self, index: usize) -> u32 {
        let at = self.patch.len() - SUMS + 4 * index;
        self.patch[at..at + 4].iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
    }

    /// Checks that the patch is for this ROM.
    pub fn check_rom(&self, rom: &[u8], size: usize) -> Result<(), Problem> {
        let (sum, expected) = (crc32fast::hash(rom), self.sum(0));
        if rom.len() == size && sum == expected {
            return Ok(());
        }
        let text = if sum == self.sum(1) {
            "the ROM has this patch already; use the original ROM, or no patch".to_owned()
        } else {
            format!(
                "the patch is for a ROM of {size} bytes with the CRC-32 {expected:08x}; this one has {} bytes and {sum:08x}: it \
                 is another game or version, or begins with the extra header of a copying device",
                rom.len()
            )
        };
        Err(Problem { at: self.patch.len() - SUMS, text })
    }

    /// Checks the patched ROM.
    pub fn check_result(&self, patched: &[u8]) -> Result<(), Problem> {
        let (sum, expected) = (crc32fast::hash(patched), self.sum(1));
        if sum == expected {
            return Ok(());
        }
        let text = format!(
            "the patched ROM has the CRC-32 {sum:08x} in place of {expected:08x}: the patch is damaged"
        );
        Err(Problem { at: self.patch.len() - SUMS + 4, text })
    }

    fn cut_short(&self) -> Problem {
        let end = self.end;
        let text =
            format!("the part that begins there is not complete: the patch is cut short at byte {end}");
        Problem { at: self.at, text }
    }
}
