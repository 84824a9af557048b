//! The folder of snapshots and recordings, as the class `Store` of the native module.

use std::path::PathBuf;
use std::time::SystemTime;

use framewire_recording::{Ending, Head, MAX_FILE, Recording};
use framewire_states::{About, Folder, FolderError, Listed, Name, Snapshot, Snapshots, time};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{self, Conflict, InvalidData, NotFound, TooLarge, argument};

/// The largest number of recordings in a folder.
const MAX_RECORDINGS: usize = 4096;

/// Snapshots and recordings in a folder. A server stores them in the same way in its folder `--data`.
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

    fn snapshots(&self) -> PyResult<Vec<SnapshotRow>> {
        let listed = self.snapshots.list().map_err(of_folder)?;
        Ok(listed.into_iter().map(row).collect())
    }

    /// Saves a state, which must contain a picture, under a name.
    // Python passes these arguments by name.
    #[allow(clippy::too_many_arguments)]
    fn save_snapshot(
        &self,
        name: &str,
        state: &[u8],
        title: String,
        code: String,
        checksum: u32,
        frame: u32,
        note: String,
        replace: bool,
    ) -> PyResult<SnapshotRow> {
        let name = parsed(name)?;
        check_note(&note)?;
        let about = About { title, code, checksum, frame, time: time::millis(SystemTime::now()), note };
        let snapshot =
            Snapshot::new(state, about).map_err(|error| InvalidData::new_err(error.to_string()))?;
        self.snapshots.write(&name, &snapshot, replace).map_err(of_write)?;
        self.snapshot(&name)
    }

    /// The file of a snapshot, which is both a state and a PNG.
    fn snapshot_file<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let snapshot = self.snapshots.read(&parsed(name)?).map_err(of_folder)?;
        Ok(PyBytes::new(py, snapshot.file()))
    }

    /// Changes the name of a snapshot, its note, or both. `None` keeps the old value.
    fn change_snapshot(
        &self,
        name: &str,
        new_name: Option<&str>,
        note: Option<String>,
    ) -> PyResult<SnapshotRow> {
        let name = parsed(name)?;
        let new = new_name.map(parsed).transpose()?;
        if let Some(note) = &note {
            check_note(note)?;
        }
        self.snapshots.change(&name, new.as_ref(), note).map_err(of_folder)?;
        self.snapshot(new.as_ref().unwrap_or(&name))
    }

    fn delete_snapshot(&self, name: &str) -> PyResult<()> {
        self.snapshots.folder().remove(&parsed(name)?).map_err(of_folder)
    }

    fn recordings(&self) -> PyResult<Vec<String>> {
        let listed = self.recordings.list().map_err(of_folder)?;
        Ok(listed.into_iter().map(|entry| entry.name.to_string()).collect())
    }

    /// Fails if no recording with this name can be added.
    fn check_recording(&self, name: &str, replace: bool) -> PyResult<()> {
        self.recordings.check_free(&parsed(name)?, replace).map_err(of_write)
    }

    fn recording_file<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let file = self.recordings.read(&parsed(name)?).map_err(of_folder)?;
        Ok(PyBytes::new(py, &file))
    }

    /// The number of frames of a recording, why it ended, and its size in bytes. If the file is damaged, the damage is
    /// returned as the reason.
    fn recording(&self, name: &str) -> PyResult<(u64, String, usize)> {
        let file = self.recordings.read(&parsed(name)?).map_err(of_folder)?;
        let recording = read_recording(&file)?;
        let ended = match recording.ending() {
            Ending::Whole(reason) => reason.clone(),
            Ending::Damaged(damage) => damage.to_string(),
        };
        Ok((recording.frames(), ended, file.len()))
    }

    fn add_recording(&self, name: &str, data: &[u8], replace: bool) -> PyResult<()> {
        let name = parsed(name)?;
        read_recording(data)?;
        self.recordings.write(&name, data, replace).map_err(of_write)
    }

    fn delete_recording(&self, name: &str) -> PyResult<()> {
        self.recordings.remove(&parsed(name)?).map_err(of_folder)
    }
}

impl Store {
    fn snapshot(&self, name: &Name) -> PyResult<SnapshotRow> {
        self.snapshots.listed(name).map(row).map_err(of_folder)
    }
}

fn row(Listed { entry, about }: Listed) -> SnapshotRow {
    (entry.name.to_string(), about.title, about.frame, about.time, about.note, entry.size)
}

/// Reads the file of a recording.
pub(crate) fn read_recording(file: &[u8]) -> PyResult<Recording> {
    Recording::read(file).map_err(|error| InvalidData::new_err(errors::with_sources(&error)))
}

/// Returns an error if the note is too long.
pub(crate) fn check_note(note: &str) -> PyResult<()> {
    if note.len() <= Head::MAX_NOTE {
        return Ok(());
    }
    let message = format!("note has {} bytes; use a text of at most {}", note.len(), Head::MAX_NOTE);
    Err(argument(message))
}

fn parsed(name: &str) -> PyResult<Name> {
    name.parse().map_err(|error: framewire_states::NameError| argument(error.to_string()))
}

/// The exception for an error of a folder.
fn of_folder(error: FolderError) -> PyErr {
    let message = error.to_string();
    match error {
        FolderError::Missing { .. } => NotFound::new_err(message),
        FolderError::Taken { .. } | FolderError::Full { .. } => Conflict::new_err(message),
        FolderError::TooLarge { .. } => TooLarge::new_err(message),
        FolderError::Damaged { .. } => InvalidData::new_err(message),
        FolderError::Io { .. } => PyOSError::new_err(message),
    }
}

/// The exception for an error when a file is written to a folder.
fn of_write(error: FolderError) -> PyErr {
    match error {
        FolderError::Taken { .. } => Conflict::new_err(format!("{error}, or replace it with replace=True")),
        _ => of_folder(error),
    }
}
