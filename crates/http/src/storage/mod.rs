//! What the server keeps beyond a request: snapshots and recordings on disk, searches and replays in memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use framewire_recording::{FormatError, RecordError, Recordings, Recovered};
use framewire_states::search::Searches;
use framewire_states::{FolderError, NameError, Snapshots, StateError};
use tracing::{info, warn};

use crate::access::caller::Owner;
use crate::problem::Problem;
use crate::v1::recordings::replays::Replays;

/// Searches that are kept at once. Each takes up to 10 MiB.
pub(crate) const SEARCHES: usize = 8;
/// How long a search is kept that nobody asks for.
const IDLE: Duration = Duration::from_secs(10 * 60);

pub(crate) struct Kept {
    /// `None` where there is no folder for them.
    files: Option<Files>,
    pub(crate) searches: Searches<SearchOf>,
    pub(crate) replays: Replays,
}

/// What a search belongs to.
#[derive(Debug, Clone)]
pub(crate) struct SearchOf {
    /// The name of its emulator.
    pub(crate) emulator: String,
    pub(crate) owner: Owner,
}

struct Files {
    snapshots: Arc<Snapshots>,
    recordings: Arc<Recordings>,
}

impl Kept {
    /// Keeps files in subfolders of `data`.
    pub(crate) fn new(data: Option<&Path>) -> Kept {
        let files = data.map(Files::new);
        if let Some(files) = &files {
            recover(&files.recordings);
        }
        Kept { files, searches: Searches::new(SEARCHES, IDLE), replays: Replays::default() }
    }

    pub(crate) fn snapshots(&self) -> Result<Arc<Snapshots>, Problem> {
        Ok(self.files()?.snapshots.clone())
    }

    pub(crate) fn recordings(&self) -> Result<Arc<Recordings>, Problem> {
        Ok(self.files()?.recordings.clone())
    }

    fn files(&self) -> Result<&Files, Problem> {
        self.files.as_ref().ok_or_else(|| {
            Problem::unsupported("this server keeps no snapshots and recordings; start it with --data DIR")
        })
    }

    /// Ends what is under way, in good order.
    pub(crate) async fn close(&self) {
        self.replays.close().await;
        if let Some(files) = &self.files {
            files.recordings.close().await;
        }
    }
}

impl Files {
    fn new(data: &Path) -> Files {
        Files {
            snapshots: Arc::new(Snapshots::new(data.join("snapshots"))),
            recordings: Arc::new(Recordings::new(data.join("recordings"))),
        }
    }
}

/// Completes the recordings that an earlier server was making when it was ended, and says so in the log.
fn recover(recordings: &Recordings) {
    for Recovered { wanted, outcome } in recordings.recover() {
        match outcome {
            Ok((name, frames)) if name == wanted => info!("recording {name}: recovered {frames} frames"),
            Ok((name, frames)) => {
                info!(
                    "recording {wanted}: recovered {frames} frames as {name}, as another one is called {wanted}"
                );
            }
            Err(error) => warn!("recording {wanted}: it could not be recovered: {error}"),
        }
    }
}

/// Checks that snapshots and recordings can be written below `data`, and removes what dead servers left unfinished of
/// snapshots.
///
/// # Errors
///
/// If they cannot be written.
pub fn check_data(data: &Path) -> Result<(), FolderError> {
    let files = Files::new(data);
    files.snapshots.prepare()?;
    files.recordings.folder().check_writable()
}

/// Does what waits for a disk, without holding up others.
pub(crate) async fn aside<T: Send + 'static, E: Into<Problem> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(Into::into),
        Err(error) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

impl From<&FolderError> for Problem {
    fn from(error: &FolderError) -> Problem {
        let status = match error {
            FolderError::Missing { .. } => StatusCode::NOT_FOUND,
            FolderError::Taken { .. } | FolderError::Full { .. } => StatusCode::CONFLICT,
            FolderError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            FolderError::Damaged { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            FolderError::Io { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, error.to_string())
    }
}

impl From<FolderError> for Problem {
    fn from(error: FolderError) -> Problem {
        (&error).into()
    }
}

/// The problem with a file that could not be written; `how` says how one that is there is replaced.
pub(crate) fn unwritten(error: FolderError, how: &str) -> Problem {
    match &error {
        FolderError::Taken { .. } => {
            Problem::new(StatusCode::CONFLICT, format!("{error}, or replace it with {how}"))
        }
        _ => error.into(),
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Problem {
        Problem::in_body("name", &error.to_string())
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
            RecordError::Unfinished(ref cause) => {
                Problem::new(Problem::from(cause.as_ref()).status(), error.to_string())
            }
            RecordError::Recording(..) => Problem::new(StatusCode::CONFLICT, error.to_string()),
            RecordError::NotRecording(_) => Problem::not_found(error.to_string()),
        }
    }
}
