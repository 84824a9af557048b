//! Applies IPS patches. A patch consists of records. Each record has an offset, and either bytes or one byte to repeat.

use super::Problem;
use super::reader::Reader;

const MAGIC: usize = b"PATCH".len();
const END: &[u8] = b"EOF";

pub(super) fn apply(patch: &[u8], rom: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut reader = Reader::new(patch, MAGIC);
    let mut patched = rom.to_vec();
    loop {
        let begin = reader.at();
        let rest = reader.rest();
        // The end mark can be followed by 3 bytes with the size to which the ROM is cut. If any other number of bytes
        // is left, the letters EOF are the offset of a record.
        if rest.starts_with(END) && matches!(rest.len(), 3 | 6) {
            break;
        }
        if rest.is_empty() {
            return Err(Problem::new(begin, "the end mark EOF is missing: the patch is cut short"));
        }
        let offset = reader.big_endian(3)?;
        let (count, repeated) = match reader.big_endian(2)? {
            0 => (reader.big_endian(2)?, true),
            count => (count, false),
        };
        if count == 0 {
            return Err(Problem::new(begin, "the record there repeats a byte 0 times"));
        }
        let end = offset + count;
        if patched.len() < end {
            patched.resize(end, 0);
        }
        if repeated {
            let byte = reader.bytes(1)?[0];
            patched[offset..end].fill(byte);
        } else {
            patched[offset..end].copy_from_slice(reader.bytes(count)?);
        }
    }
    let begin = reader.at();
    reader.bytes(END.len())?;
    if !reader.is_at_end() {
        let size = reader.big_endian(3)?;
        if size == 0 || size > patched.len() {
            let text = format!("it cuts the ROM to {size} bytes, but the ROM has {}", patched.len());
            return Err(Problem { at: begin + END.len(), text });
        }
        patched.truncate(size);
    }
    Ok(patched)
}
