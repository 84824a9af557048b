use std::path::PathBuf;

use crate::state::MAX_STATE;
use crate::{About, Entry, Folder, FolderError, Name, Snapshot, StateError};

/// The largest number of snapshots in the folder.
const LIMIT: usize = 4096;

/// How many bytes at the beginning of a snapshot's file are read to find the [`About`].
const HEAD: usize = 16 * 1024;

/// A folder of snapshots.
#[derive(Debug)]
pub struct Snapshots(Folder);

/// A snapshot in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The file of the snapshot.
    pub entry: Entry,
    /// The game of the snapshot, when it was made, and its note.
    pub about: About,
}

impl Snapshots {
    /// The folder at `path`, which does not have to exist yet.
    pub fn new(path: PathBuf) -> Snapshots {
        Snapshots(Folder::new(path, "snapshot", "png", LIMIT, MAX_STATE as u64))
    }

    /// The folder with the snapshots' files.
    pub fn folder(&self) -> &Folder {
        &self.0
    }

    /// The snapshots, sorted by name. Files that are not snapshots or cannot be read are left out.
    ///
    /// # Errors
    /// [`FolderError::Io`].
    pub fn list(&self) -> Result<Vec<Listed>, FolderError> {
        let entries = self.0.list()?.into_iter();
        Ok(entries.filter_map(|entry| Some(Listed { about: self.about(&entry)?, entry })).collect())
    }

    fn about(&self, entry: &Entry) -> Option<About> {
        Snapshot::about_in(&self.0.head(entry, HEAD).ok()?).ok()
    }

    /// One snapshot, as in the [list](Self::list).
    ///
    /// # Errors
    /// [`FolderError::Missing`], [`FolderError::Damaged`], [`FolderError::Io`].
    pub fn listed(&self, name: &Name) -> Result<Listed, FolderError> {
        let entry = self.0.entry(name)?;
        let about = Snapshot::about_in(&self.0.head(&entry, HEAD)?).map_err(self.damaged(name))?;
        Ok(Listed { entry, about })
    }

    /// Reads a snapshot.
    ///
    /// # Errors
    /// [`FolderError::Missing`], [`FolderError::Damaged`], [`FolderError::TooLarge`], [`FolderError::Io`].
    pub fn read(&self, name: &Name) -> Result<Snapshot, FolderError> {
        Snapshot::read(self.0.read(name)?).map_err(self.damaged(name))
    }

    /// Writes a snapshot. Replaces an existing snapshot of this name only if `replace` is true.
    ///
    /// # Errors
    /// Those of [`Folder::write`].
    pub fn write(&self, name: &Name, snapshot: &Snapshot, replace: bool) -> Result<(), FolderError> {
        self.0.write(name, snapshot.file(), replace)
    }

    /// Gives a snapshot another name, another note or both. If this fails, the snapshot is unchanged, with the
    /// exception that [`Folder::rewrite`] describes.
    ///
    /// # Errors
    /// [`FolderError::Damaged`], and those of [`Folder::rename`] and [`Folder::rewrite`].
    pub fn change(&self, name: &Name, new: Option<&Name>, note: Option<String>) -> Result<(), FolderError> {
        let new = new.unwrap_or(name);
        match note {
            Some(note) => self.0.rewrite(name, new, |file| {
                let snapshot = Snapshot::read(file).and_then(|snapshot| snapshot.with_note(note));
                Ok(snapshot.map_err(self.damaged(name))?.into_file())
            }),
            None => self.0.rename(name, new),
        }
    }

    /// Checks that snapshots can be written, and removes the temporary files of processes that have ended.
    ///
    /// # Errors
    /// [`FolderError::Io`].
    pub fn prepare(&self) -> Result<(), FolderError> {
        self.0.check_writable()?;
        self.0.remove_abandoned().map(drop)
    }

    fn damaged(&self, name: &Name) -> impl FnOnce(StateError) -> FolderError {
        let (kind, name) = (self.0.kind(), name.clone());
        move |error| FolderError::Damaged { kind, name, reason: error.to_string() }
    }
}
