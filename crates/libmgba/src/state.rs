use std::ffi::c_int;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::core::{Core, write_file};
use crate::error::Error;
use crate::sys::Status;
use crate::{MAX_SAVE_SIZE, MAX_STATE_SIZE, Platform};

/// The parts that a savestate can have in addition to the state of the console. These are
/// mGBA's numbers, as in Lua's `C.SAVESTATE`; combine them with `|`.
pub mod flags {
    /// The picture: the bytes are a PNG file that contains the state.
    pub const SCREENSHOT: u32 = 1;
    /// The battery save. Loading it changes the save in use.
    pub const SAVEDATA: u32 = 2;
    /// The cheats. This crate ignores the flag: it saves and loads states without cheats.
    pub const CHEATS: u32 = 4;
    /// The cartridge's clock.
    pub const RTC: u32 = 8;
    /// The time at which the state was made, and the program that made it.
    pub const METADATA: u32 = 16;
    /// All parts; mGBA's default for saving.
    pub const ALL: u32 = 31;
    /// All parts except the battery save; mGBA's default for loading.
    pub const LOAD: u32 = 29;
    /// mGBA does not have this flag. Together with [`SAVEDATA`], the save in a loaded state becomes the cartridge's
    /// save, even if the game uses the save of a state that was loaded earlier. Without this flag, the save in the
    /// loaded state then replaces only the save of the earlier state, which the game loses with a reset.
    pub const KEEP_SAVE: u32 = 0x100;
}

/// Savestates in mGBA's own format, so they can be exchanged with mGBA in both directions. For `flags` see [`flags`].
impl Core {
    /// The state of the console as bytes. With [`flags::SCREENSHOT`], this is a PNG file. Without it, this is the bare
    /// state (0x61000 bytes for a GBA), followed by the other parts in `flags`.
    ///
    /// # Errors
    /// [`Error::StateSave`].
    pub fn save_state(&mut self, flags: u32) -> Result<Vec<u8>, Error> {
        self.handle.save_state(flags as c_int).map_err(|_| Error::StateSave)
    }

    /// Loads a state in which these keys are held. The state already contains the keypad interrupt that they may have
    /// raised, so they raise no other. After an error, nothing has changed, except as for
    /// [`load_state`](Core::load_state).
    ///
    /// # Errors
    /// As for [`load_state`](Core::load_state).
    pub fn load_state_with_keys(&mut self, keys: u16, state: &[u8], flags: u32) -> Result<(), Error> {
        let held = self.keys();
        // Keys that change raise an interrupt, so they are set before the load.
        self.set_keys(keys);
        self.load_state(state, flags).inspect_err(|_| self.set_keys(held))
    }

    /// Loads a state. After an error, nothing has changed, except possibly after [`Error::OutOfMemory`].
    ///
    /// # Errors
    /// One of the variants of [`Error`] about states. As in mGBA, a state is accepted if the title and the code of its
    /// game match the running game. A bare state has no checksum: if only its body is damaged, it is usually accepted,
    /// and the console continues from the damaged state.
    pub fn load_state(&mut self, state: &[u8], flags: u32) -> Result<(), Error> {
        if state.len() > MAX_STATE_SIZE {
            return Err(Error::StateTooLarge { len: state.len() as u64 });
        }
        let running = self.platform();
        let is_usable = if state.starts_with(PNG_MAGIC) {
            is_intact_png(state)
        } else {
            // libmgba expects the parts after as many bytes as a bare state of the running console has.
            has_usable_parts(state, if running == Platform::Gba { 0x61000 } else { 0x11800 })
        };
        if !is_usable {
            return Err(Error::StateFormat);
        }
        self.handle.load_state(state, flags as c_int).map_err(|status| match status {
            Status::StateOtherPlatform => Error::StateOtherPlatform { running },
            Status::StateOtherGame => Error::StateOtherGame,
            Status::NoMemory => Error::OutOfMemory,
            _ => Error::StateFormat,
        })
    }

    /// [`save_state`](Core::save_state) to a file.
    ///
    /// # Errors
    /// As for [`save_state`](Core::save_state), [`Error::Io`], and [`Error::NotAFile`] for a pipe or a device.
    pub fn save_state_file(&mut self, path: &Path, flags: u32) -> Result<(), Error> {
        let state = self.save_state(flags)?;
        write_file(path, &state)
    }

    /// [`load_state`](Core::load_state) from a file.
    ///
    /// # Errors
    /// As for [`load_state`](Core::load_state), and [`Error::Io`] and [`Error::NotAFile`].
    pub fn load_state_file(&mut self, path: &Path, flags: u32) -> Result<(), Error> {
        let len = file_len(path)?;
        if len > MAX_STATE_SIZE as u64 {
            return Err(Error::StateTooLarge { len });
        }
        let state = framewire_files::read(path, MAX_STATE_SIZE as u64).map_err(|e| Error::read(path, e))?;
        self.load_state(&state, flags)
    }

    /// [`save_state`](Core::save_state) to a slot: the file with the ROM's name
    /// and the extension `.ssN` in the ROM's folder, where mGBA keeps it too.
    ///
    /// # Errors
    /// As for [`save_state_file`](Core::save_state_file), and [`Error::SlotNumber`].
    pub fn save_state_slot(&mut self, slot: u32, flags: u32) -> Result<(), Error> {
        let path = self.slot_path(slot)?;
        self.save_state_file(&path, flags)
    }

    /// [`load_state`](Core::load_state) from a slot.
    ///
    /// # Errors
    /// As for [`load_state_file`](Core::load_state_file), and [`Error::EmptySlot`] and [`Error::SlotNumber`].
    pub fn load_state_slot(&mut self, slot: u32, flags: u32) -> Result<(), Error> {
        let path = self.slot_path(slot)?;
        if !path.exists() {
            return Err(Error::EmptySlot { slot, path });
        }
        self.load_state_file(&path, flags)
    }

    fn slot_path(&self, slot: u32) -> Result<PathBuf, Error> {
        let number = i32::try_from(slot).map_err(|_| Error::SlotNumber { slot })?;
        Ok(self.next_to_rom(&format!(".ss{number}")))
    }
}

/// Battery saves: data that the cartridge keeps when the console is off.
impl Core {
    /// The file in the ROM's folder that has the ROM's name and this extension.
    fn next_to_rom(&self, ending: &str) -> PathBuf {
        let mut name = path_of(&self.handle.base_name()).into_os_string();
        name.push(ending);
        self.path().with_file_name(name)
    }

    /// The game's own save file: the ROM's name with `.sav`, in the ROM's folder.
    pub fn save_path(&self) -> PathBuf {
        self.next_to_rom(".sav")
    }

    /// Gives the game a save with these bytes, the contents of a save file. If `bytes` is empty, the save is new. The
    /// save is in use at once, but most games read it only when they start; call [`reset`](Core::reset) to start the
    /// game again. [`saves`](Core::saves) returns the save with the game's changes. This crate does not read or write
    /// the file; the caller must do that.
    ///
    /// # Errors
    /// [`Error::SaveSize`] and [`Error::OutOfMemory`].
    pub fn load_save(&mut self, bytes: &[u8]) -> Result<SaveId, Error> {
        self.put_save(bytes, false)
    }

    /// Gives the game a save that temporarily replaces its normal one, like mGBA's temporary saves. The game's changes
    /// to it are discarded.
    ///
    /// # Errors
    /// As for [`load_save`](Core::load_save).
    pub fn load_temporary_save(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.put_save(bytes, true).map(drop)
    }

    fn put_save(&mut self, bytes: &[u8], temporary: bool) -> Result<SaveId, Error> {
        if bytes.len() > MAX_SAVE_SIZE {
            return Err(Error::SaveSize { len: bytes.len() as u64 });
        }
        self.handle.load_save(bytes, temporary).map(SaveId).map_err(|_| Error::OutOfMemory)
    }

    /// The save in use, if there is one, and earlier saves that were removed, or replaced by another ROM or save.
    /// The newest save comes first. Earlier saves stay until [`forget_save`](Core::forget_save). Temporary saves are
    /// not included.
    pub fn saves(&self) -> impl Iterator<Item = Save<'_>> {
        (0..).map_while(|index| self.handle.save(index))
    }

    /// The save in use; `None` if there is none, or if a temporary save hides it. A save that the save of a loaded
    /// state hides is still in use: when the game changes the state's save, that becomes the content of the hidden
    /// save.
    pub fn save_in_use(&self) -> Option<SaveId> {
        Some(self.handle.save_in_use()).filter(|id| *id != 0).map(SaveId)
    }

    /// Drops a save that is no longer in use. Does nothing if the save is in use or does not exist.
    pub fn forget_save(&mut self, id: SaveId) {
        self.handle.forget_save(id.0);
    }

    /// A copy of the save data. Before a GBA game has used its save, the copy has the bytes of the loaded save, or is
    /// empty if no save was loaded.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn save_data(&mut self) -> Result<Vec<u8>, Error> {
        self.handle.save_data().map_err(|_| Error::OutOfMemory)
    }
}

/// Identifies a save of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SaveId(pub(crate) u64);

/// A battery save.
#[derive(Clone, Debug)]
pub struct Save<'a> {
    /// Identifies it among the core's saves.
    pub id: SaveId,
    /// The bytes for its file.
    pub bytes: &'a [u8],
    /// Whether the game can still change it.
    pub in_use: bool,
    /// The file that a script loaded it from (`emu:loadSaveFile`); `None` if no script did, or if the file is not
    /// known.
    pub loaded_from: Option<PathBuf>,
}

#[cfg(unix)]
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes).into()
}

#[cfg(not(unix))]
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

const PNG_MAGIC: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The largest width and height of the picture in a state. mGBA can draw a Game Boy Advance with up to 16 times its
/// resolution, and saves such a picture too: it has 3840 x 2560 pixels.
const MAX_SIDE: u32 = 4096;
/// The largest number of headers of extra parts that are followed. libmgba knows only a few kinds of parts.
const MAX_PARTS: usize = 1024;
/// libmgba ignores parts with this tag or a greater one (`EXTDATA_MAX`).
const TAG_END: u32 = 0x103;

/// Whether libmgba can safely read the extra parts after a bare state of `size` bytes: it would reach the end of the
/// parts, and would not reserve more memory than a state may have. This function follows the headers as libmgba does:
/// after a header without a length, the next header is at the offset in that header.
fn has_usable_parts(state: &[u8], size: usize) -> bool {
    let (mut at, mut total) = (size, 0);
    for _ in 0..MAX_PARTS {
        let Some(header) = state.get(at..).and_then(<[u8]>::first_chunk::<16>) else { return true };
        let (words, _) = header.as_chunks::<4>();
        let (tag, len) = (u32::from_le_bytes(words[0]), i32::from_le_bytes(words[1]));
        let offset = u64::from(u32::from_le_bytes(words[3])) << 32 | u64::from(u32::from_le_bytes(words[2]));
        at += header.len();
        if tag == 0 {
            return true;
        } else if tag < TAG_END && len <= 0 {
            at = usize::try_from(offset).unwrap_or(usize::MAX);
        } else if tag < TAG_END {
            total += i64::from(len);
        }
        if total > MAX_STATE_SIZE as i64 {
            return false;
        }
    }
    false
}

/// Whether the checksum of every chunk up to the end mark is right, and no size in the file is too large. libmgba would
/// find damage only while it reads the file, and would report it on stderr. And it reserves as much memory as the sizes
/// say.
fn is_intact_png(png: &[u8]) -> bool {
    let mut rest = &png[PNG_MAGIC.len()..];
    // How many bytes the extra parts of the state have when they are decompressed.
    let mut extra = 0;
    while let Some((len, after)) = rest.split_first_chunk::<4>() {
        let len = u32::from_be_bytes(*len) as usize;
        let Some((chunk, after)) = after.split_at_checked(len.saturating_add(4)) else {
            return false;
        };
        let Some((sum, after)) = after.split_first_chunk::<4>() else {
            return false;
        };
        if crc32fast::hash(chunk) != u32::from_be_bytes(*sum) {
            return false;
        }
        let word =
            |at: usize| chunk.get(at..).and_then(<[u8]>::first_chunk::<4>).copied().unwrap_or_default();
        if chunk.starts_with(b"IHDR")
            && [4, 8].map(|at| u32::from_be_bytes(word(at))).iter().any(|side| *side > MAX_SIDE)
        {
            return false;
        }
        if chunk.starts_with(b"gbAx") {
            extra += u64::from(u32::from_le_bytes(word(8)));
            if extra > MAX_STATE_SIZE as u64 {
                return false;
            }
        }
        if chunk.starts_with(b"IEND") {
            return true;
        }
        rest = after;
    }
    false
}

/// The length of a regular file.
pub(crate) fn file_len(path: &Path) -> Result<u64, Error> {
    let metadata = fs::metadata(path).map_err(|e| Error::read(path, e))?;
    if !metadata.is_file() {
        return Err(Error::NotAFile { path: path.to_owned() });
    }
    Ok(metadata.len())
}

/// Reads a file. Returns `None` if it has more than `limit` bytes.
pub(crate) fn read_limited(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    match framewire_files::read(path, limit) {
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Ok(None),
        read => read.map(Some).map_err(|error| Error::read(path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_the_highest_resolution_are_accepted() {
        let png = |width: u32| {
            let chunk = |body: &[u8]| {
                [&(body.len() as u32 - 4).to_be_bytes()[..], body, &crc32fast::hash(body).to_be_bytes()]
                    .concat()
            };
            let head =
                [&b"IHDR"[..], &width.to_be_bytes(), &2560_u32.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
            [PNG_MAGIC, &chunk(&head), &chunk(b"IEND")].concat()
        };
        assert!(is_intact_png(&png(3840)) && !is_intact_png(&png(MAX_SIDE + 1)));
    }
}
