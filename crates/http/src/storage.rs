//! What the server keeps between requests: snapshots, recordings and uploaded games on disk, searches in memory.

use std::any::Any;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use framewire_recording::{FormatError, Head, RecordError, Recordings, Recovered};
use framewire_states::search::Searches;
use framewire_states::{Folder, FolderError, Name, NameError, Snapshots, StateError};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tracing::{info, warn};

use crate::access::caller::Owner;
use crate::access::permit::{Files, UPLOADS};
use crate::operations::Operations;
use crate::operations::budget::BudgetShare;
use crate::problem::Problem;

/// The largest number of searches at a time. Each takes up to 10 MiB.
pub(crate) const SEARCHES: usize = 8;
/// How long a search is kept after the last request for it.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// Searches in memory.
pub(crate) type SearchTable = Searches<SearchSubject>;

/// The emulator, the game and the owner of a search.
#[derive(Debug, Clone)]
pub(crate) struct SearchSubject {
    /// The name of the emulator.
    pub(crate) emulator: String,
    /// The checksum of the game, if the emulator gave it.
    pub(crate) game: Option<u32>,
    pub(crate) owner: Owner,
}

pub(crate) fn searches() -> SearchTable {
    Searches::new(SEARCHES, IDLE)
}

/// The files of one kind, if the server has a folder for them.
pub(crate) struct Storage<T>(Option<Arc<T>>);

impl<T> Clone for Storage<T> {
    fn clone(&self) -> Storage<T> {
        Storage(self.0.clone())
    }
}

impl<T> Storage<T> {
    /// The files, or the problem that the server has no folder for them.
    pub(crate) fn get(&self) -> Result<Arc<T>, Problem> {
        self.0.clone().ok_or_else(|| {
            Problem::unsupported("this server has no folder to keep this in; start it with --data DIR")
        })
    }
}

/// The games that clients sent.
pub(crate) struct Uploads {
    /// The folder in which they are kept.
    pub(crate) folder: PathBuf,
    /// The locks of [`turn`](Uploads::turn), by name.
    turns: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

impl Uploads {
    /// Waits until no other upload uses this name, and locks it. A lock is held from before a game is written until the
    /// emulator has loaded or refused it, or the client has left. Otherwise, another upload could replace the file in
    /// the meantime. Letter case does not count, because some file systems ignore it.
    pub(crate) async fn turn(&self, name: &Name) -> OwnedMutexGuard<()> {
        let lock = {
            let mut turns = self.turns.lock();
            turns.retain(|_, lock| Arc::strong_count(lock) > 1);
            turns.entry(name.as_str().to_lowercase()).or_default().clone()
        };
        lock.lock_owned().await
    }
}

impl Storage<Uploads> {
    /// Games in a subfolder of the folder for files. If there is no such folder, in a subfolder of `data`.
    pub(crate) fn uploads(files: Option<&Files>, data: Option<&Path>) -> Storage<Uploads> {
        let folder = files.map(Files::uploads).or_else(|| Some(data?.join(UPLOADS)));
        Storage(folder.map(|folder| Arc::new(Uploads { folder, turns: Mutex::default() })))
    }
}

impl Storage<Snapshots> {
    /// Snapshots in a subfolder of `data`.
    pub(crate) fn snapshots(data: Option<&Path>) -> Storage<Snapshots> {
        Storage(data.map(|data| Arc::new(snapshots_in(data))))
    }
}

impl Storage<Recordings> {
    /// Recordings in a subfolder of `data`. This also completes recordings that an earlier server left unfinished.
    pub(crate) fn recordings(data: Option<&Path>) -> Storage<Recordings> {
        let recordings = data.map(recordings_in);
        if let Some(recordings) = &recordings {
            recover(recordings);
        }
        Storage(recordings.map(Arc::new))
    }

    /// Ends the recordings under way, and completes their files.
    pub(crate) async fn close(&self) {
        if let Some(recordings) = &self.0 {
            recordings.close().await;
        }
    }
}

fn snapshots_in(data: &Path) -> Snapshots {
    Snapshots::new(data.join("snapshots"))
}

fn recordings_in(data: &Path) -> Recordings {
    Recordings::new(data.join("recordings"))
}

fn recover(recordings: &Recordings) {
    for Recovered { wanted, outcome } in recordings.recover() {
        match outcome {
            Ok((name, frames)) if name == wanted => info!("recording {name}: recovered {frames} frames"),
            Ok((name, frames)) => {
                info!(
                    "recording {wanted}: recovered {frames} frames as {name}, because another recording is called {wanted}"
                );
            }
            Err(error) => warn!("recording {wanted}: it could not be recovered: {error}"),
        }
    }
}

/// Checks that snapshots and recordings can be written below `data`, and removes unfinished snapshots of earlier
/// servers.
///
/// # Errors
/// If they cannot be written.
pub fn check_data(data: &Path) -> Result<(), FolderError> {
    snapshots_in(data).prepare()?;
    recordings_in(data).folder().check_writable()
}

/// The files of one kind, in one folder.
pub(crate) trait StoredFiles: Send + Sync + 'static {
    fn folder(&self) -> &Folder;

    /// Refuses to use a file that is still being written.
    fn check_complete(&self, name: &Name) -> impl Future<Output = Result<(), Problem>> + Send;
}

impl StoredFiles for Snapshots {
    fn folder(&self) -> &Folder {
        Snapshots::folder(self)
    }

    async fn check_complete(&self, _: &Name) -> Result<(), Problem> {
        Ok(())
    }
}

impl StoredFiles for Recordings {
    fn folder(&self) -> &Folder {
        Recordings::folder(self)
    }

    async fn check_complete(&self, name: &Name) -> Result<(), Problem> {
        let Some(emulator) = self.emulator_recorded_as(name).await else { return Ok(()) };
        let detail = format!(
            "the recording {name} is being made; DELETE /v1/recording?emulator={emulator} completes it, and GET says how \
             far it is"
        );
        Err(Problem::conflict(detail))
    }
}

/// A file that a request names.
pub(crate) struct StoredFile<T> {
    pub(crate) files: Arc<T>,
    pub(crate) name: Name,
}

impl<T: StoredFiles> StoredFile<T> {
    /// The file of this name, which does not have to exist.
    pub(crate) async fn find(storage: &Storage<T>, name: &str) -> Result<StoredFile<T>, Problem> {
        let (files, name) = (storage.get()?, name.parse::<Name>()?);
        files.check_complete(&name).await?;
        Ok(StoredFile { files, name })
    }

    /// Reserves memory for the content of the file.
    pub(crate) async fn share(&self, operations: &Operations) -> Result<BudgetShare, Problem> {
        let (files, name) = (self.files.clone(), self.name.clone());
        let size = blocking(move || files.folder().size(&name)).await?;
        Ok(operations.replies.share_bytes(size as usize)?)
    }

    /// Performs `work` with the file on another thread, because the work waits for a disk.
    pub(crate) async fn with<R: Send + 'static, E: Into<Problem> + Send + 'static>(
        self,
        work: impl FnOnce(&T, &Name) -> Result<R, E> + Send + 'static,
    ) -> Result<R, Problem> {
        blocking(move || work(&self.files, &self.name)).await
    }

    pub(crate) async fn remove(self) -> Result<StatusCode, Problem> {
        self.with(|files, name| files.folder().remove(name)).await?;
        Ok(StatusCode::NO_CONTENT)
    }
}

/// Checks the length of a note. The limit is the same for snapshots and recordings.
pub(crate) fn checked_note(note: String) -> Result<String, Problem> {
    const MOST: usize = Head::MAX_NOTE;
    if note.len() <= MOST {
        return Ok(note);
    }
    let problem = format!("has {} bytes", note.len());
    Err(Problem::parameter("note", &problem, format!("a text of at most {MOST} bytes")))
}

/// Performs `work` on another thread, because it waits for a disk.
pub(crate) async fn blocking<T: Send + 'static, E: Into<Problem> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Problem> {
    // All work has the same boxed type. Otherwise the compiler would generate tokio's task code again for each type.
    let work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(move || Box::new(work()));
    let failed = |error: String| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    let done = tokio::task::spawn_blocking(work).await.map_err(|error| failed(error.to_string()))?;
    match done.downcast::<Result<T, E>>() {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err(failed("a file operation returned a value of the wrong type".to_owned())),
    }
}

fn status_of(error: &FolderError) -> StatusCode {
    match error {
        FolderError::Missing { .. } => StatusCode::NOT_FOUND,
        FolderError::Taken { .. } | FolderError::Full { .. } => StatusCode::CONFLICT,
        FolderError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        FolderError::Damaged { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        FolderError::Io { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<FolderError> for Problem {
    fn from(error: FolderError) -> Problem {
        Problem::new(status_of(&error), error.to_string())
    }
}

/// The problem with a file that could not be written. `how` says how to replace an existing one.
pub(crate) fn unwritten(error: FolderError, how: &str) -> Problem {
    match &error {
        FolderError::Taken { .. } => Problem::conflict(format!("{error}, or replace it with {how}")),
        _ => error.into(),
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Problem {
        Problem::at("name", &error.to_string())
    }
}

impl From<StateError> for Problem {
    fn from(error: StateError) -> Problem {
        let status = match error {
            StateError::Format(_) => StatusCode::UNPROCESSABLE_ENTITY,
            StateError::OtherConsole { .. } => StatusCode::CONFLICT,
        };
        Problem::new(status, error.to_string())
    }
}

impl From<FormatError> for Problem {
    fn from(error: FormatError) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
    }
}

impl From<RecordError> for Problem {
    fn from(error: RecordError) -> Problem {
        match error {
            RecordError::Emulator(error) => error.into(),
            RecordError::Folder(error) => error.into(),
            RecordError::Unfinished(ref cause) => Problem::new(status_of(cause), error.to_string()),
            RecordError::Recording(..) => Problem::conflict(error.to_string()),
            RecordError::NotRecording(_) => Problem::not_found(error.to_string()),
        }
    }
}
