//! The folder of snapshots and recordings, as the class `Store` of the native module.

use std::path::PathBuf;
use std::time::SystemTime;

use framewire_recording::{Ending, Head, MAX_FILE, Recording};
use framewire_states::{About, Folder, FolderError, Listed, Name, Snapshot, Snapshots, time};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{self, Kind, argument, exception};

/// The largest number of recordings in a folder.
const MAX_RECORDINGS: usize = 4096;

/// Snapshots and recordings in a folder. A server has the same files in its folder `--data`.
#[pyclass(frozen, module = "framewire._native")]
pub(crate) struct Store {
    snapshots: Snapshots,
    recordings: Folder,
}

/// Name, title, frame, time, note and size of a snapshot.
type SnapshotRow = (String, String, u32, String, String, u64);

#[pymethods]
impl Store {
    #[new]
    fn new(folder: PathBuf) -> Store {
        Store {
            snapshots: Snapshots::new(folder.join("snapshots")),
            recordings: Folder::new(folder.join("recordings"), "recording", "fwr", MAX_RECORDINGS, MAX_FILE),
        }
    }

    fn snapshots(&self, py: Python<'_>) -> PyResult<Vec<SnapshotRow>> {
        let listed = self.snapshots.list().map_err(|error| of_folder(py, &error))?;
        Ok(listed.into_iter().map(row).collect())
    }

    /// Saves a state, which must contain a picture, under a name.
    // Python passes these arguments by name.
    #[allow(clippy::too_many_arguments)]
    fn save_snapshot(
        &self,
        py: Python<'_>,
        name: &str,
        state: &[u8],
        title: String,
        code: String,
        checksum: u32,
        frame: u32,
        note: String,
        replace: bool,
    ) -> PyResult<SnapshotRow> {
        let name = parsed(py, name)?;
        check_note(py, &note)?;
        let about = About { title, code, checksum, frame, time: time::millis(SystemTime::now()), note };
        let snapshot =
            Snapshot::new(state, about).map_err(|error| exception(py, Kind::State, &error.to_string()))?;
        self.snapshots.write(&name, &snapshot, replace).map_err(|error| of_write(py, &error))?;
        self.snapshot(py, &name)
    }

    /// The file of a snapshot, which is both a state and a PNG.
    fn snapshot_file<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let snapshot = self.snapshots.read(&parsed(py, name)?).map_err(|error| of_folder(py, &error))?;
        Ok(PyBytes::new(py, snapshot.file()))
    }

    /// Changes the name or the note of a snapshot.
    fn change_snapshot(
        &self,
        py: Python<'_>,
        name: &str,
        new_name: Option<&str>,
        note: Option<String>,
    ) -> PyResult<SnapshotRow> {
        let name = parsed(py, name)?;
        let new = new_name.map(|new| parsed(py, new)).transpose()?;
        if let Some(note) = &note {
            check_note(py, note)?;
        }
        self.snapshots.change(&name, new.as_ref(), note).map_err(|error| of_folder(py, &error))?;
        self.snapshot(py, new.as_ref().unwrap_or(&name))
    }

    fn delete_snapshot(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.snapshots.folder().remove(&parsed(py, name)?).map_err(|error| of_folder(py, &error))
    }

    fn recordings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let listed = self.recordings.list().map_err(|error| of_folder(py, &error))?;
        Ok(listed.into_iter().map(|entry| entry.name.to_string()).collect())
    }

    /// Fails if no recording with this name can be added.
    fn check_recording(&self, py: Python<'_>, name: &str, replace: bool) -> PyResult<()> {
        self.recordings.check_free(&parsed(py, name)?, replace).map_err(|error| of_write(py, &error))
    }

    fn recording_file<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let file = self.recordings.read(&parsed(py, name)?).map_err(|error| of_folder(py, &error))?;
        Ok(PyBytes::new(py, &file))
    }

    /// The number of frames of a recording, why it ended, and its size in bytes. If the file is damaged, the damage is
    /// returned as the reason.
    fn recording(&self, py: Python<'_>, name: &str) -> PyResult<(u64, String, usize)> {
        let file = self.recordings.read(&parsed(py, name)?).map_err(|error| of_folder(py, &error))?;
        let recording = read_recording(py, &file)?;
        let ended = match recording.ending() {
            Ending::Whole(reason) => reason.clone(),
            Ending::Damaged(damage) => damage.to_string(),
        };
        Ok((recording.frames(), ended, file.len()))
    }

    fn add_recording(&self, py: Python<'_>, name: &str, data: &[u8], replace: bool) -> PyResult<()> {
        let name = parsed(py, name)?;
        read_recording(py, data)?;
        self.recordings.write(&name, data, replace).map_err(|error| of_write(py, &error))
    }

    fn delete_recording(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.recordings.remove(&parsed(py, name)?).map_err(|error| of_folder(py, &error))
    }
}

impl Store {
    fn snapshot(&self, py: Python<'_>, name: &Name) -> PyResult<SnapshotRow> {
        self.snapshots.listed(name).map(row).map_err(|error| of_folder(py, &error))
    }
}

fn row(Listed { entry, about }: Listed) -> SnapshotRow {
    (entry.name.to_string(), about.title, about.frame, about.time, about.note, entry.size)
}

/// Reads the file of a recording.
pub(crate) fn read_recording(py: Python<'_>, file: &[u8]) -> PyResult<Recording> {
    Recording::read(file).map_err(|error| exception(py, Kind::State, &errors::with_sources(&error)))
}

/// Returns an error if the note is too long.
pub(crate) fn check_note(py: Python<'_>, note: &str) -> PyResult<()> {
    if note.len() <= Head::MAX_NOTE {
        return Ok(());
    }
    let message = format!("note has {} bytes; use a text of at most {}", note.len(), Head::MAX_NOTE);
    Err(argument(py, message))
}

fn parsed(py: Python<'_>, name: &str) -> PyResult<Name> {
    name.parse().map_err(|error: framewire_states::NameError| argument(py, error.to_string()))
}

/// The exception for an error of a folder.
fn of_folder(py: Python<'_>, error: &FolderError) -> PyErr {
    let kind = match error {
        FolderError::Missing { .. } => Kind::NotFound,
        FolderError::Taken { .. } | FolderError::Full { .. } => Kind::Conflict,
        FolderError::TooLarge { .. } => Kind::TooLarge,
        FolderError::Damaged { .. } => Kind::State,
        FolderError::Io { .. } => return PyOSError::new_err(error.to_string()),
    };
    exception(py, kind, &error.to_string())
}

/// The exception for an error when a file is written to a folder.
fn of_write(py: Python<'_>, error: &FolderError) -> PyErr {
    match error {
        FolderError::Taken { .. } => {
            exception(py, Kind::Conflict, &format!("{error}, or replace it with replace=True"))
        }
        _ => of_folder(py, error),
    }
}
