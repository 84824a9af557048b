//! Applies BPS patches. A patch contains the size and the checksum of the original ROM and of the patched ROM. It also
//! contains actions that write the patched ROM from beginning to end.

use super::Problem;
use super::reader::Reader;

pub(super) fn apply(patch: &[u8], rom: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut reader = Reader::with_sums(patch, b"BPS1".len())?;
    let (before, after) = (reader.rom_size()?, reader.rom_size()?);
    let note_length = reader.number()?;
    reader.bytes(note_length)?;
    reader.check_rom(rom, before)?;
    let mut patched = Vec::with_capacity(after);
    let (mut from_rom, mut from_patched) = (0usize, 0usize);
    while !reader.is_at_end() {
        let begin = reader.at();
        let refused = |text: String| Problem::new(begin, text);
        let action = reader.number()?;
        let length = (action >> 2) + 1;
        if length > after - patched.len() {
            let written = patched.len();
            return Err(refused(format!(
                "the action there writes {length} bytes at byte {written}, and the patched ROM has {after}"
            )));
        }
        let outside = |what: &str, from: usize| {
            refused(format!(
                "the action there copies {length} bytes from byte {from} of the {what}, which ends too early"
            ))
        };
        match action & 3 {
            0 => {
                let from = patched.len();
                let bytes = rom.get(from..from + length).ok_or_else(|| outside("ROM", from))?;
                patched.extend_from_slice(bytes);
            }
            1 => patched.extend_from_slice(reader.bytes(length)?),
            2 => {
                from_rom = moved(&mut reader, from_rom)?;
                let end = from_rom.saturating_add(length);
                let bytes = rom.get(from_rom..end).ok_or_else(|| outside("ROM", from_rom))?;
                patched.extend_from_slice(bytes);
                from_rom = end;
            }
            _ => {
                from_patched = moved(&mut reader, from_patched)?;
                if from_patched >= patched.len() {
                    return Err(outside("unfinished patched ROM", from_patched));
                }
                // The bytes to copy may be bytes that this action has just written.
                for _ in 0..length {
                    patched.push(patched[from_patched]);
                    from_patched += 1;
                }
            }
        }
    }
    if patched.len() != after {
        let text = format!("the actions write {} bytes, and the patched ROM has {after}", patched.len());
        return Err(Problem { at: reader.at(), text });
    }
    reader.check_result(&patched)?;
    Ok(patched)
}

/// Reads a signed distance, whose lowest bit is the sign. Returns the position at that distance.
fn moved(reader: &mut Reader<'_>, position: usize) -> Result<usize, Problem> {
    let begin = reader.at();
    let number = reader.number()?;
    let distance = number >> 1;
    let target =
        if number & 1 == 0 { position.checked_add(distance) } else { position.checked_sub(distance) };
    target.ok_or_else(|| {
        Problem::new(begin, format!("the distance there leads {distance} bytes back from byte {position}"))
    })
}
