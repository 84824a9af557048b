use std::io;
use std::path::PathBuf;

use crate::archive;
use crate::platform::Platform;
use crate::rom::Rom;
use crate::sys::Status;
use crate::{MAX_RANGE, MAX_ROM_SIZE, MAX_SAVE_SIZE, MAX_STATE_SIZE};

/// The errors of this crate. Unless a variant says otherwise, the core has not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused to read or write a file.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The action that failed: "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A folder or device in place of a file, or a path that libmgba cannot use.
    #[error("{} is not a file", path.display())]
    NotAFile {
        /// The path given.
        path: PathBuf,
    },
    /// A ROM file of 0 bytes.
    #[error("{} is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A ROM of more than [`MAX_ROM_SIZE`] bytes, which is larger than any cartridge.
    #[error("{} is larger than any cartridge ({} MiB)", path.display(), MAX_ROM_SIZE >> 20)]
    RomTooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A file without a valid ROM header, on disk or in an archive.
    #[error(
        "{} is not a Game Boy Advance, Game Boy or Game Boy Color ROM: its header is missing or broken",
        path.display()
    )]
    NotARom {
        /// The file.
        path: PathBuf,
    },
    /// An archive from which no ROM can be read, or a file in a packed format that is not supported.
    #[error("{} {problem}", path.display())]
    NotARomArchive {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// A path that continues after the name of a file, although the file is not an archive.
    #[error(
        "{} cannot be opened: {} is not a zip or 7z archive",
        path.display(),
        file.display()
    )]
    NotAnArchive {
        /// The path given.
        path: PathBuf,
        /// The file that the beginning of the path names.
        file: PathBuf,
    },
    /// A program in the linker's format, ELF.
    #[error(
        "{} is an ELF file; make a ROM of it first: arm-none-eabi-objcopy -O binary {} game.gba",
        path.display(),
        path.display()
    )]
    Elf {
        /// The file.
        path: PathBuf,
    },
    /// A ROM that ends inside its own header.
    #[error("{} is cut short: it ends inside the ROM header", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
    },
    /// A valid ROM, but for another kind of console than this core. Open it as a new [`Core`](crate::Core), and move
    /// the scripts to it with [`adopt_scripts`](crate::Core::adopt_scripts).
    #[error("{} is a {rom} ROM and this core is a {running}", path.display())]
    OtherPlatform {
        /// The file.
        path: PathBuf,
        /// The console of the ROM.
        rom: Platform,
        /// The console of this core.
        running: Platform,
    },
    /// libmgba refused a ROM that looked right. If a game was running in the core, it may be lost.
    #[error("libmgba could not load {}", path.display())]
    LoadFailed {
        /// The file.
        path: PathBuf,
    },
    /// An allocation inside libmgba failed. After [`load_state`](crate::Core::load_state), the core may have changed.
    #[error("out of memory in libmgba")]
    OutOfMemory,
    /// A range longer than [`MAX_RANGE`].
    #[error("a range of {len} bytes is too long; at most {MAX_RANGE} at once")]
    RangeTooLong {
        /// The requested length.
        len: usize,
    },
    /// There is no memory domain with this index; see [`Core::domains`](crate::Core::domains).
    #[error("there is no memory domain with the index {index}")]
    UnknownDomain {
        /// The requested index.
        index: usize,
    },
    /// libmgba could not write a savestate.
    #[error("libmgba could not save the state")]
    StateSave,
    /// Not a savestate, or a damaged one.
    #[error("this is not a savestate of mGBA, or it is damaged")]
    StateFormat,
    /// A savestate of more than [`MAX_STATE_SIZE`] bytes, which is larger than any real one.
    #[error("{len} bytes are too many for a savestate; at most {MAX_STATE_SIZE}")]
    StateTooLarge {
        /// Its length in bytes.
        len: u64,
    },
    /// A savestate of the other kind of console.
    #[error("this savestate is not from a {running} game")]
    StateOtherPlatform {
        /// The console of this core.
        running: Platform,
    },
    /// A savestate of another game, or one with impossible values in it.
    #[error("this savestate is of another game, or it is damaged")]
    StateOtherGame,
    /// A number that mGBA has no slot for.
    #[error("slot is {slot}; use a number from 0 to {}", i32::MAX)]
    SlotNumber {
        /// The number given.
        slot: u32,
    },
    /// No state is saved in this slot.
    #[error("nothing is saved in slot {slot} of this game: there is no {}", path.display())]
    EmptySlot {
        /// The slot's number.
        slot: u32,
        /// The slot's file.
        path: PathBuf,
    },
    /// Battery save data that is longer than [`MAX_SAVE_SIZE`].
    #[error("save data of {len} bytes is not accepted; use at most {MAX_SAVE_SIZE} bytes")]
    SaveSize {
        /// Its length in bytes.
        len: u64,
    },
    /// A cheat or a cheat file that cannot be used.
    #[error("{place}: {problem}")]
    Cheat {
        /// Where the problem is: a line, a cheat or a whole file. The file is named if there is one.
        place: String,
        /// What is wrong with it, and what is accepted.
        problem: String,
    },
    /// A file that is not a BIOS of this console.
    #[error("{} is not a BIOS of the console; that of a Game Boy Advance has 16384 bytes", path.display())]
    NotABios {
        /// The file.
        path: PathBuf,
    },
    /// A patch that cannot be applied to the ROM.
    #[error("cannot apply the patch {} (byte {at}): {problem}", path.display())]
    Patch {
        /// The patch.
        path: PathBuf,
        /// The position of the problem in the patch, in bytes.
        at: usize,
        /// What is wrong with it, and what is accepted.
        problem: String,
    },
    /// The picture could not be turned into a PNG.
    #[error("libmgba could not take the screenshot")]
    Screenshot,
    /// This libmgba was built without Lua.
    #[error("this libmgba was built without scripting; install one with Lua")]
    NoScripting,
    /// A script was run before [`attach_scripts`](crate::Core::attach_scripts) was called.
    #[error("no script context: call attach_scripts first")]
    ScriptsNotAttached,
    /// A script did not compile or ended with an error. Changes that it made before the error stay.
    #[error("{message}")]
    Script {
        /// Lua's message, which names the script and the line.
        message: String,
    },
}

impl Error {
    /// The error for a status of the shim that concerns a ROM file.
    pub(crate) fn of_rom(status: Status, rom: &Rom, running: Option<Platform>) -> Error {
        let path = rom.path.clone();
        match status {
            Status::NotARom => match archive::problem(&rom.file) {
                Some(problem) => Error::NotARomArchive { path, problem: problem.to_owned() },
                None => Error::NotARom { path },
            },
            Status::Truncated => Error::Truncated { path },
            Status::NoMemory => Error::OutOfMemory,
            Status::OtherPlatform => {
                let running = running.unwrap_or(Platform::Gba);
                Error::OtherPlatform { path, rom: running.other(), running }
            }
            _ => Error::LoadFailed { path },
        }
    }

    pub(crate) fn read(path: impl Into<PathBuf>, source: io::Error) -> Error {
        Error::Io { action: "read", path: path.into(), source }
    }

    pub(crate) fn write(path: impl Into<PathBuf>, source: io::Error) -> Error {
        Error::Io { action: "write", path: path.into(), source }
    }
}
