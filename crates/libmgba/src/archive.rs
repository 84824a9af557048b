//! Reads games from zip and 7z archives, and returns error messages for archives of other kinds.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use sevenz_rust2::{BlockDecoder, Password};
use zip::ZipArchive;
use zip::result::ZipError;

use crate::MAX_ROM_SIZE;

/// The file name extensions of games.
const ENDINGS: [&str; 10] = ["gba", "agb", "mb", "srl", "gb", "gbc", "cgb", "sgb", "bin", "rom"];
/// The largest size in bytes of the record at the end of a zip archive, with the longest comment.
const ZIP_END: u64 = 22 + 0xFFFF;
/// The largest number of bytes that are unpacked before a game in a 7z archive. Other files can be packed together with
/// the game, and those before it must be unpacked first.
const MAX_UNPACKED: u64 = 512 << 20;
/// The longest list of files in a 7z archive that is accepted, in bytes.
const MAX_LIST: u64 = 1 << 20;
/// How many names an error shows.
const SHOWN: usize = 8;

/// A kind of archive that is searched for games.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Zip,
    SevenZip,
}

/// A game from an archive.
#[derive(Debug)]
pub(crate) struct Game {
    /// The whole name in the archive.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The name and the size of a file in an archive.
struct Entry {
    name: String,
    size: u64,
}

/// The kind of archive that begins with `head`; `None` if it is a ROM or anything else.
pub(crate) fn kind(head: &[u8]) -> Option<Kind> {
    match head {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Kind::Zip),
        [b'7', b'z', 0xBC, 0xAF, 0x27, 0x1C, ..] => Some(Kind::SevenZip),
        _ => None,
    }
}

/// The error message for an archive of a kind that is not supported. It says what to do, and is shown after the file's
/// name. `None` for every other file.
pub(crate) fn problem(path: &Path) -> Option<&'static str> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(6).read_to_end(&mut head).ok()?;
    Some(match head.as_slice() {
        [0x1F, 0x8B, ..] => "is a gzip file, which is not supported; unpack it with gunzip first",
        [b'R', b'a', b'r', b'!', ..] => "is a RAR archive, which is not supported; unpack it first",
        [0xFD, b'7', b'z', b'X', b'Z', 0] => {
            "is an xz file, which is not supported; unpack it with unxz first"
        }
        [b'B', b'Z', b'h', ..] => "is a bzip2 file, which is not supported; unpack it with bunzip2 first",
        [0x28, 0xB5, 0x2F, 0xFD, ..] => "is a zstd file, which is not supported; unpack it with unzstd first",
        _ => return None,
    })
}

/// Unpacks the game with the name `inside`, or the only game in the archive. `shown` is the archive's name for
/// messages.
pub(crate) fn unpack(kind: Kind, mut file: File, inside: Option<&str>, shown: &Path) -> Result<Game, String> {
    match kind {
        Kind::Zip => {
            if !zip_is_whole(&mut file).unwrap_or(false) {
                return Err(cut_short("zip"));
            }
            unpack_zip(file, inside, shown)
        }
        Kind::SevenZip => {
            check_list(&mut file)?;
            // The library asserts properties of the list of files. A hostile list can make it panic.
            catch_unwind(AssertUnwindSafe(|| unpack_seven_zip(file, inside, shown)))
                .unwrap_or_else(|_| Err(damaged("7z", "its list of files makes no sense")))
        }
    }
}

fn unpack_zip(file: File, inside: Option<&str>, shown: &Path) -> Result<Game, String> {
    let failed = |error| match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => {
            "is a zip archive with a password; unpack it first".to_owned()
        }
        ZipError::CompressionMethodNotSupported(method) => format!(
            "is a zip archive with the compression method {method}; the methods 0 (stored) and 8 (deflate) are accepted: \
             pack it again, or unpack it first"
        ),
        error => damaged("zip", &error.to_string()),
    };
    let mut archive = ZipArchive::new(io::BufReader::new(file)).map_err(failed)?;
    let mut entries = Vec::new();
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(failed)?;
        let name = entry.name().map_err(failed)?.into_owned();
        entries.push(Entry { name, size: entry.size() });
    }
    let chosen = choose("zip", &entries, inside, shown)?;
    let entry = archive.by_index(chosen).map_err(failed)?;
    let bytes = read(entry).map_err(|error| damaged("zip", &error.to_string()))?;
    finish("zip", &entries[chosen], bytes)
}

fn unpack_seven_zip(mut file: File, inside: Option<&str>, shown: &Path) -> Result<Game, String> {
    let failed = |error: sevenz_rust2::Error| match error {
        sevenz_rust2::Error::UnsupportedCompressionMethod(method) if method.contains("AES") => {
            "is a 7z archive with a password; unpack it first".to_owned()
        }
        sevenz_rust2::Error::UnsupportedCompressionMethod(method) => format!(
            "is a 7z archive with the compression method {method}; LZMA and LZMA2 are accepted: pack it again, or unpack it \
             first"
        ),
        error => damaged("7z", &error.to_string()),
    };
    let password = Password::empty();
    let mut archive = sevenz_rust2::Archive::read(&mut file, &password).map_err(failed)?;
    let entries: Vec<_> = archive
        .files
        .iter()
        .map(|file| {
            // The name of a folder ends with a slash, as in zip archives.
            let name = if file.is_directory { format!("{}/", file.name) } else { file.name.clone() };
            Entry { name, size: file.size }
        })
        .collect();
    let chosen = choose("7z", &entries, inside, shown)?;
    let block = archive.stream_map.file_block_index[chosen].filter(|_| archive.files[chosen].has_stream);
    let Some(block) = block else { return finish("7z", &entries[chosen], Vec::new()) };
    // The files of a block are packed as one piece, so the files before the game must be unpacked too.
    let first = archive.stream_map.block_first_file_index[block];
    let before = entries.get(first..chosen).unwrap_or_default();
    if before.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.size)) > MAX_UNPACKED {
        return Err(format!(
            "is a 7z archive in which {} comes after more than {} MiB of other files that are packed together with it; \
             unpack it first",
            entries[chosen].name,
            MAX_UNPACKED >> 20
        ));
    }
    // The decoder counts folders and empty files as parts of the block, and would stop before the block's last files.
    // So they are removed from the list.
    let with_contents = |end: usize| archive.files[..end].iter().filter(|file| file.has_stream).count();
    let (first, place) = (with_contents(first), with_contents(chosen));
    archive.files.retain(|file| file.has_stream);
    archive.stream_map.block_first_file_index[block] = first;
    let mut bytes = Vec::new();
    let mut at = first;
    BlockDecoder::new(1, block, &archive, &password, &mut file)
        .for_each_entries(&mut |_, reader| {
            if at == place {
                bytes = read(reader)?;
                return Ok(false);
            }
            io::copy(reader, &mut io::sink())?;
            at += 1;
            Ok(true)
        })
        .map_err(failed)?;
    finish("7z", &entries[chosen], bytes)
}

/// The index of the file `inside`, or of the only game. Returns an error if this file is larger than any game can be.
fn choose(kind: &str, entries: &[Entry], inside: Option<&str>, shown: &Path) -> Result<usize, String> {
    let chosen = match inside {
        Some(wanted) => entries.iter().position(|entry| plain(&entry.name) == wanted).ok_or_else(|| {
            format!("is a {kind} archive without {wanted}; it holds {}", names(entries.iter()))
        })?,
        None => {
            let games: Vec<_> = (0..entries.len()).filter(|index| is_game(&entries[*index].name)).collect();
            match games.as_slice() {
                [game] => *game,
                [] => {
                    return Err(format!(
                        "is a {kind} archive without a game; it holds {}. The name of a game ends in .{}",
                        names(entries.iter()),
                        ENDINGS.join(", .")
                    ));
                }
                [first, ..] => {
                    return Err(format!(
                        "is a {kind} archive with {} games; name one of them after the archive's name, such as {}/{}: {}",
                        games.len(),
                        shown.display(),
                        plain(&entries[*first].name),
                        names(games.iter().map(|index| &entries[*index]))
                    ));
                }
            }
        }
    };
    let entry = &entries[chosen];
    if entry.size > MAX_ROM_SIZE as u64 {
        return Err(format!(
            "is a {kind} archive in which {} has {} bytes; no cartridge has more than {} MiB",
            entry.name,
            entry.size,
            MAX_ROM_SIZE >> 20
        ));
    }
    Ok(chosen)
}

/// Up to [`SHOWN`] names.
fn names<'a>(entries: impl Iterator<Item = &'a Entry>) -> String {
    let all: Vec<_> = entries.map(|entry| plain(&entry.name)).collect();
    let first = all.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len() {
        0 => "nothing".to_owned(),
        count if count > SHOWN => format!("{first} and {} more", count - SHOWN),
        _ => first,
    }
}

/// A name with slashes as separators. Some programs for Windows write backslashes.
fn plain(name: &str) -> String {
    name.replace('\\', "/")
}

fn is_game(name: &str) -> bool {
    let plain = plain(name);
    let ending = Path::new(&plain).extension().unwrap_or_default().to_string_lossy().to_lowercase();
    // macOS adds files such as `__MACOSX/._game.gba`, with attributes of the other files.
    !plain.starts_with("__MACOSX/") && !plain.ends_with('/') && ENDINGS.contains(&ending.as_str())
}

/// Reads at most one byte more than the largest ROM has, whatever size the archive states.
fn read(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_ROM_SIZE as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn finish(kind: &str, entry: &Entry, bytes: Vec<u8>) -> Result<Game, String> {
    if bytes.len() as u64 == entry.size {
        return Ok(Game { name: plain(&entry.name), bytes });
    }
    let sizes = format!("{} has {} bytes, not {}", entry.name, bytes.len(), entry.size);
    Err(damaged(kind, &sizes))
}

fn damaged(kind: &str, what: &str) -> String {
    format!("is a damaged {kind} archive ({what}); get the file again")
}

fn cut_short(kind: &str) -> String {
    format!("is a {kind} archive that is cut short: its list of files is missing; get the whole file")
}

/// Whether the file has the record that ends every zip archive.
fn zip_is_whole(file: &mut File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(ZIP_END)))?;
    let mut end = Vec::new();
    file.take(ZIP_END).read_to_end(&mut end)?;
    file.rewind()?;
    Ok(end.windows(4).any(|four| four == b"PK\x05\x06"))
}

/// Checks the position and the size of the list of files, before the library allocates memory for it.
fn check_list(file: &mut File) -> Result<(), String> {
    let mut head = [0; 32];
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    file.rewind()
        .and_then(|()| file.read_exact(&mut head))
        .and_then(|()| file.rewind())
        .map_err(|error| damaged("7z", &error.to_string()))?;
    let number =
        |at: usize| head[at..at + 8].iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    let (offset, size) = (number(12), number(20));
    let sum = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
    if crc32fast::hash(&head[12..32]) != sum {
        return Err(damaged("7z", "the checksum of its header is wrong"));
    }
    if size > MAX_LIST {
        return Err(format!(
            "is a 7z archive whose list of files has {size} bytes; at most {MAX_LIST} are accepted"
        ));
    }
    if offset.saturating_add(size).saturating_add(32) > length {
        return Err(cut_short("7z"));
    }
    if size == 0 {
        return Err("is a 7z archive without a game; it holds nothing".to_owned());
    }
    Ok(())
}
