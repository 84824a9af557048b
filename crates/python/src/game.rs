//! The files that a game file names, for programs that copy them to other machines.

use std::path::{Path, PathBuf};

use framewire_game::NamedFiles;
use pyo3::prelude::*;

use crate::errors::GameFileError;

/// The offset in bytes at which a path begins in the text of a game file, the offset at which it ends, and the path.
/// The quotation marks are between the offsets.
type NamedFile = (usize, usize, PathBuf);

/// The files that a game file with this text names: the ROM, and the symbol files and start states.
#[pyfunction]
pub(crate) fn named_files(
    game: &str,
    text: &str,
    scenario: Option<&str>,
) -> PyResult<(Option<PathBuf>, Vec<NamedFile>)> {
    let files = NamedFiles::parse(Path::new(game), text, scenario)
        .map_err(|error| GameFileError::new_err(error.to_string()))?;
    let others = files.others.into_iter().map(|(span, path)| (span.start, span.end, path));
    Ok((files.rom, others.collect()))
}
