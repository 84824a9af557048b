//! What a file is that holds no ROM which libmgba finds: an archive, perhaps a damaged one.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The longest end of a zip archive: its last record with the longest comment.
const ZIP_END: u64 = 22 + 0xFFFF;

/// What is wrong with the file at `path` if it is an archive, to follow its name, with what to do.
pub(crate) fn problem(path: &Path) -> Option<&'static str> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut head = Vec::new();
    (&mut file).take(6).read_to_end(&mut head).ok()?;
    let mut magic = [0; 6];
    magic[..head.len()].copy_from_slice(&head);
    Some(match magic {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => match zip_is_whole(&mut file, length) {
            Ok(true) => "is a zip archive, and no ROM can be read from it; open it and look what it holds",
            _ => "is a zip archive that is cut short: its list of files is missing; get the whole file",
        },
        [b'7', b'z', 0xBC, 0xAF, 0x27, 0x1C] => match seven_zip_is_whole(&mut file, length) {
            Ok(true) => "is a 7z archive, and no ROM can be read from it; open it and look what it holds",
            _ => "is a 7z archive that is cut short: its list of files is missing; get the whole file",
        },
        [0x1F, 0x8B, ..] => "is a gzip file, which libmgba does not open; unpack it with gunzip first",
        [b'R', b'a', b'r', b'!', ..] => "is a RAR archive, which libmgba does not open; unpack it first",
        [0xFD, b'7', b'z', b'X', b'Z', 0] => {
            "is an xz file, which libmgba does not open; unpack it with unxz first"
        }
        [b'B', b'Z', b'h', ..] => {
            "is a bzip2 file, which libmgba does not open; unpack it with bunzip2 first"
        }
        [0x28, 0xB5, 0x2F, 0xFD, ..] => {
            "is a zstd file, which libmgba does not open; unpack it with unzstd first"
        }
        _ => return None,
    })
}

/// Whether the record is there that ends every zip archive.
fn zip_is_whole(file: &mut File, length: u64) -> io::Result<bool> {
    file.seek(SeekFrom::Start(length.saturating_sub(ZIP_END)))?;
    let mut end = Vec::new();
    file.take(ZIP_END).read_to_end(&mut end)?;
    Ok(end.windows(4).any(|four| four == b"PK\x05\x06"))
}

/// Whether the list of files is there, whose place and size the header gives.
fn seven_zip_is_whole(file: &mut File, length: u64) -> io::Result<bool> {
    let mut head = [0; 32];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut head)?;
    let number =
        |at: usize| head[at..at + 8].iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    let end = number(12).saturating_add(number(20)).saturating_add(32);
    Ok(end <= length)
}
