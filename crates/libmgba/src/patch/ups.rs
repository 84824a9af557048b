//! Applies UPS patches. A patch has bytes that are combined with the ROM by exclusive or. It also has the sizes and
//! checksums of the original ROM and of the patched one.

use super::Problem;
use super::reader::Reader;

pub(super) fn apply(patch: &[u8], rom: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut reader = Reader::with_sums(patch, b"UPS1".len())?;
    let (before, after) = (reader.rom_size()?, reader.rom_size()?);
    reader.check_rom(rom, before)?;
    let mut patched = rom.to_vec();
    patched.resize(after, 0);
    let mut at = 0usize;
    while !reader.is_at_end() {
        let begin = reader.at();
        at = at.saturating_add(reader.number()?);
        loop {
            let change = reader.bytes(1)?[0];
            match patched.get_mut(at) {
                Some(byte) => *byte ^= change,
                // The byte is in the original ROM, but not in the patched ROM, which is smaller. Or it is in
                // neither, but does not change: it is the 0 at the end of a block.
                None if at < before.max(after) || change == 0 => {}
                None => {
                    let text = format!("the block there changes the byte {at} of a ROM of {after} bytes");
                    return Err(Problem { at: begin, text });
                }
            }
            at = at.saturating_add(1);
            if change == 0 {
                break;
            }
        }
    }
    reader.check_result(&patched)?;
    Ok(patched)
}
