//! Records what an emulator does, in a background task.

mod start_state;
mod task;

use std::io;
use std::sync::Arc;

use framewire_emulator::Emulator;
use framewire_states::{Folder, FolderError, Name};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use crate::journal::Completed;
use crate::recordings::suffixed;
use crate::{RecordError, Start, journal};
use task::RecordTask;

/// How to record.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to start: at the current state, or with a reset.
    pub start: Start,
    /// The number of frames from one hash of the picture and of memory to the next, at least 1. If the emulator does
    /// not report hashes, the recording gets only hashes of memory, about as often.
    pub every: u32,
    /// A note of at most [`Head::MAX_NOTE`](crate::Head::MAX_NOTE) bytes.
    pub note: String,
    /// Whether to replace an existing recording with the same name.
    pub replace: bool,
}

/// The progress of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The number of recorded frames.
    pub frames: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
}

/// Describes a complete recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The name of the recording.
    pub name: Name,
    /// The number of recorded frames.
    pub frames: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// Why the recording ended.
    pub reason: String,
}

/// A recording in progress. Dropping it ends the recording as [`stop`](Recorder::stop) does, without waiting.
#[derive(Debug)]
pub struct Recorder {
    name: Name,
    progress: Arc<Mutex<Progress>>,
    stop: watch::Sender<bool>,
    /// Asks the task to handle all events that the emulator has reported so far, and then to answer.
    asks: mpsc::Sender<oneshot::Sender<()>>,
    end: watch::Receiver<Option<Result<Summary, Arc<FolderError>>>>,
}

impl Recorder {
    /// Starts to record what `emulator` does, as `name` in `folder`. A task records until it is stopped, or until
    /// something happens that a recording cannot contain, such as a reset. In that case, the recording ends before that
    /// event.
    ///
    /// # Errors
    /// If the name is taken, the emulator refuses an operation or does not answer, or the file cannot be written.
    pub async fn start(
        emulator: Arc<dyn Emulator>,
        folder: Arc<Folder>,
        name: Name,
        options: Options,
    ) -> Result<Recorder, RecordError> {
        folder.check_free(&name, options.replace)?;
        let file = journal::begin(&folder, &name)?;
        let task = RecordTask::begin(emulator, file, &options).await?;
        let progress = task.progress.clone();
        let (stop, stopped) = watch::channel(false);
        let (asks, asked) = mpsc::channel(16);
        let (done, end) = watch::channel(None);
        let wanted = name.clone();
        tokio::spawn(async move {
            let recorded = task.record(stopped, asked).await;
            let summary = tokio::task::spawn_blocking(move || {
                let failed =
                    |source| FolderError::Io { action: "write in", path: folder.path().to_owned(), source };
                let (file, completed) = recorded.finish().map_err(failed)?;
                let Completed { frames, bytes, reason } = completed;
                // Another file may have taken the name in the meantime. If so, the recording gets another name.
                let other = |number| suffixed(&wanted, number);
                let name = folder.finish_as(file, &wanted, options.replace, other)?;
                Ok(Summary { name, frames, bytes, reason })
            });
            let summary = summary.await.unwrap_or_else(|error| Err(unwritten_because(error)));
            done.send_replace(Some(summary.map_err(Arc::new)));
        });
        Ok(Recorder { name, progress, stop, asks, end })
    }

    /// The name with which the recording was started.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The progress of the recording.
    pub fn progress(&self) -> Progress {
        self.progress.lock().clone()
    }

    /// Waits until all events that the emulator has reported so far are handled. If one of them ends the recording,
    /// waits until the file is complete.
    pub async fn settle(&self) {
        let (answer, answered) = oneshot::channel();
        let continues = self.asks.send(answer).await.is_ok() && answered.await.is_ok();
        if !continues {
            let _ = self.end.clone().wait_for(Option::is_some).await;
        }
    }

    /// How the recording ended; `None` if it has not ended.
    pub fn ended(&self) -> Option<Result<Summary, Arc<FolderError>>> {
        self.end.borrow().clone()
    }

    /// Ends the recording after the emulator's current frame, and waits until the file is complete.
    ///
    /// # Errors
    /// If the file cannot be completed. The next start of the program tries again.
    pub async fn stop(&self) -> Result<Summary, Arc<FolderError>> {
        self.stop.send_replace(true);
        let mut end = self.end.clone();
        let ended = end.wait_for(Option::is_some).await.map(|end| end.clone());
        ended.ok().flatten().unwrap_or_else(|| Err(Arc::new(unwritten_because("its task is gone"))))
    }
}

fn unwritten_because(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> FolderError {
    FolderError::Io { action: "write", path: "the recording".into(), source: io::Error::other(error) }
}
