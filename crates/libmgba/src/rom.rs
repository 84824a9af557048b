//! Reads ROM files, plain or in an archive.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use crate::MAX_ROM_SIZE;
use crate::archive::{self, Game};
use crate::core::c_path;
use crate::error::Error;
use crate::patch::{self, Patching};
use crate::sys::RomFile;

/// A ROM, and the files that it came from.
#[derive(Debug)]
pub(crate) struct Rom {
    /// An absolute path. Saves and state slots are in its folder and have its name. For a game that was named inside an
    /// archive, it consists of the archive's folder and the game's file name. No file needs to exist there.
    pub path: PathBuf,
    /// The file on the disk: the ROM or its archive.
    pub file: PathBuf,
    /// The game's name in the archive, if the path named one.
    pub inside: Option<String>,
    /// The patch that was applied.
    pub patch: Option<PathBuf>,
    pub bytes: Vec<u8>,
}

/// Reads the bytes of a ROM as [`Core::open_with`](crate::Core::open_with) does, from a plain file or an archive.
///
/// # Errors
/// As for [`Core::open_with`](crate::Core::open_with), if the file cannot be read, contains no game, or cannot be
/// patched. This does not check that the bytes are a ROM.
pub fn read_patched_rom(path: &Path, patching: &Patching) -> Result<Vec<u8>, Error> {
    Rom::read_patched(path, patching).map(|rom| rom.bytes)
}

impl Rom {
    /// Reads a ROM and applies its patch, if it has one.
    pub fn read_patched(path: &Path, patching: &Patching) -> Result<Rom, Error> {
        let mut rom = Rom::read(path)?;
        rom.patch = patching.of(&rom.path);
        if let Some(patch) = &rom.patch {
            rom.bytes = patch::apply_file(patch, &rom.bytes)?;
        }
        Ok(rom)
    }

    pub fn read(path: &Path) -> Result<Rom, Error> {
        // The path is absolute, so that saves stay in the same place if the process changes its directory.
        let path = std::path::absolute(path).map_err(|e| Error::read(path, e))?;
        let (file, inside) = locate(&path)?;
        let mut opened = File::open(&file).map_err(|e| Error::read(&file, e))?;
        let length = opened.metadata().map_err(|e| Error::read(&file, e))?.len();
        if length == 0 {
            return Err(Error::Empty { path });
        }
        let mut head = Vec::new();
        (&mut opened).take(6).read_to_end(&mut head).map_err(|e| Error::read(&file, e))?;
        opened.rewind().map_err(|e| Error::read(&file, e))?;
        if let Some(kind) = archive::kind(&head) {
            return match archive::unpack(kind, opened, inside.as_deref(), &file) {
                Ok(game) => Rom::from_archive(file, inside, game),
                Err(problem) => Err(Error::NotARomArchive { path: file, problem }),
            };
        }
        if inside.is_some() {
            return Err(Error::NotAnArchive { path, file });
        }
        if head.starts_with(b"\x7FELF") {
            return Err(Error::Elf { path });
        }
        if length > MAX_ROM_SIZE as u64 {
            return Err(Error::RomTooLarge { path });
        }
        let mut bytes = Vec::new();
        // A file can grow after its length was read.
        opened.take(MAX_ROM_SIZE as u64).read_to_end(&mut bytes).map_err(|e| Error::read(&file, e))?;
        Ok(Rom { path, file, inside, patch: None, bytes })
    }

    /// The ROM in the form that the shim needs.
    pub fn for_shim(&self) -> Result<RomFile<'_>, Error> {
        let not_a_file = |_| Error::NotAFile { path: self.path.clone() };
        Ok(RomFile {
            path: c_path(&self.path)?,
            file: c_path(&self.file)?,
            inside: self.inside.clone().map(CString::new).transpose().map_err(not_a_file)?,
            bytes: &self.bytes,
        })
    }

    fn from_archive(file: PathBuf, inside: Option<String>, game: Game) -> Result<Rom, Error> {
        let Game { name, bytes } = game;
        if bytes.is_empty() {
            let problem = format!("is an archive in which {name} is empty");
            return Err(Error::NotARomArchive { path: file, problem });
        }
        let path = match (&inside, Path::new(&name).file_name()) {
            (Some(_), Some(name)) => file.with_file_name(name),
            _ => file.clone(),
        };
        Ok(Rom { path, file, inside, patch: None, bytes })
    }
}

/// The file that a path leads to. If the path continues after the file, as in `pack.zip/game.gba`, also the rest of the
/// path.
fn locate(path: &Path) -> Result<(PathBuf, Option<String>), Error> {
    let error = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => return Ok((path.to_owned(), None)),
        Ok(_) => return Err(Error::NotAFile { path: path.to_owned() }),
        Err(error) => error,
    };
    for file in path.ancestors().skip(1) {
        let Ok(metadata) = fs::metadata(file) else { continue };
        if let Some(rest) = path.strip_prefix(file).ok().filter(|_| metadata.is_file()) {
            let names: Vec<_> = rest.iter().map(|name| name.to_string_lossy()).collect();
            return Ok((file.to_owned(), Some(names.join("/"))));
        }
        break;
    }
    Err(Error::read(path, error))
}
