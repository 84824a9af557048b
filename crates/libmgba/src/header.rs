//! Checks a ROM against its header.

use crate::core::Core;
use crate::platform::Platform;

/// The address of the title. The part of a Game Boy's header that the checksum covers begins there.
const GB_HEADER: u32 = 0x134;
/// The length of this part, including the checksum.
const GB_HEADER_LENGTH: usize = 0x14E - GB_HEADER as usize;

impl Core {
    /// Compares the running ROM with its header. Returns the problems as sentences. A truncated or damaged ROM runs,
    /// but does not behave like the game. For a GBA ROM, nothing is reported: its header has no size, and many homebrew
    /// games leave out the checksum.
    pub fn rom_problems(&mut self) -> Vec<String> {
        let header = match self.domain_index("cart0") {
            Some(cart) if self.platform() == Platform::Gb => {
                self.domain_read_range(cart, GB_HEADER, GB_HEADER_LENGTH).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let [fields @ .., checksum] = &header[..] else { return Vec::new() };
        let mut problems = Vec::new();
        let size = self.rom_size();
        if let Some(whole) = gb_size(header[0x148 - GB_HEADER as usize])
            && size < whole
        {
            problems
                .push(format!("the ROM has {size} bytes and its header says {whole}: the file is cut short"));
        }
        let sum = fields.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte).wrapping_sub(1));
        if sum != *checksum {
            problems.push(format!(
                "the checksum of the ROM's header is 0x{checksum:02x} and should be 0x{sum:02x}: the ROM is damaged, or was \
                 not finished with rgbfix; a real console does not start it"
            ));
        }
        problems
    }
}

/// The size in bytes of a Game Boy ROM whose header has this size code.
fn gb_size(code: u8) -> Option<usize> {
    const BANK: usize = 16 << 10;
    match code {
        0..=8 => Some((2 * BANK) << code),
        0x52 => Some(72 * BANK),
        0x53 => Some(80 * BANK),
        0x54 => Some(96 * BANK),
        _ => None,
    }
}
