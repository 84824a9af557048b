//! Patches for ROMs: IPS, UPS and BPS.

mod bps;
mod ips;
mod reader;
mod ups;

use std::path::{Path, PathBuf};

use crate::MAX_ROM_SIZE;
use crate::error::Error;
use crate::state::read_limited;

/// The extensions of patches next to a ROM, in mGBA's order.
const ENDINGS: [&str; 3] = ["ups", "ips", "bps"];
/// The largest patch that is accepted, in bytes: a whole ROM, and the same amount for the overhead of a format.
const MAX_PATCH: usize = 2 * MAX_ROM_SIZE;

/// Which patch a ROM gets when it is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patching {
    /// No patch.
    #[default]
    Off,
    /// The patch next to the ROM, if there is one: a file with the ROM's name and the extension `.ups`, `.ips` or
    /// `.bps`.
    NextTo,
    /// This file. Games that are loaded later get the patch next to them.
    File(PathBuf),
}

impl Patching {
    /// The patch for the ROM at `path`.
    pub(crate) fn of(&self, path: &Path) -> Option<PathBuf> {
        match self {
            Patching::Off => None,
            Patching::NextTo => {
                ENDINGS.iter().map(|ending| path.with_extension(ending)).find(|patch| patch.is_file())
            }
            Patching::File(patch) => Some(patch.clone()),
        }
    }

    /// The setting for games that are loaded after the first one.
    pub(crate) fn of_later_games(self) -> Patching {
        match self {
            Patching::File(_) => Patching::NextTo,
            other => other,
        }
    }
}

/// What is wrong with a patch, and at which byte.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    at: usize,
    text: String,
}

impl Problem {
    fn new(at: usize, text: impl Into<String>) -> Problem {
        Problem { at, text: text.into() }
    }
}

/// Applies the patch in the file at `path` to a ROM. Returns the patched ROM.
///
/// # Errors
/// [`Error::Patch`] with the position in the patch and the reason, or [`Error::Io`] if the file cannot be read.
pub(crate) fn apply_file(path: &Path, rom: &[u8]) -> Result<Vec<u8>, Error> {
    let result = match read_limited(path, MAX_PATCH as u64)? {
        Some(patch) => apply(&patch, rom),
        None => Err(Problem::new(0, format!("the file is too large; a patch has at most {MAX_PATCH} bytes"))),
    };
    result.map_err(|Problem { at, text }| Error::Patch { path: path.to_owned(), at, problem: text })
}

fn apply(patch: &[u8], rom: &[u8]) -> Result<Vec<u8>, Problem> {
    match patch {
        [b'P', b'A', b'T', b'C', b'H', ..] => ips::apply(patch, rom),
        [b'U', b'P', b'S', b'1', ..] => ups::apply(patch, rom),
        [b'B', b'P', b'S', b'1', ..] => bps::apply(patch, rom),
        [] => Err(Problem::new(0, "the file is empty")),
        _ => Err(Problem::new(
            0,
            "it begins with none of PATCH (IPS), UPS1 and BPS1; other kinds of patches are not accepted",
        )),
    }
}
