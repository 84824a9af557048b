use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use framewire_emulator::Emulator;
use framewire_states::{Entry, Folder, FolderError, Name};
use tokio::sync::Mutex;

use crate::{Head, MAX_FILE, Options, Progress, RecordError, Recorder, Summary};

/// More recordings than this are not kept.
const LIMIT: usize = 4096;

/// Bytes of a file within which its head ends.
const HEAD: usize = 8 * 1024;

/// The folder of recordings, and those being made: one for each emulator.
#[derive(Debug)]
pub struct Recordings {
    folder: Arc<Folder>,
    active: Mutex<BTreeMap<String, Recorder>>,
}

/// A recording in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its file.
    pub entry: Entry,
    /// What it is of.
    pub head: Head,
}

/// A recording being made, or the last one that ended by itself.
#[derive(Debug)]
pub struct Active {
    /// What it is called.
    pub name: Name,
    /// How far it is.
    pub progress: Progress,
    /// How it ended, if it did.
    pub ended: Option<Result<Summary, Arc<FolderError>>>,
}

impl Recordings {
    /// The folder at `path`, which need not exist yet.
    pub fn new(path: PathBuf) -> Recordings {
        let folder = Folder::new(path, "recording", "fwr", LIMIT, MAX_FILE);
        Recordings { folder: Arc::new(folder), active: Mutex::default() }
    }

    /// The folder, for what is to be done with files as files.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The recordings by name. Files that are none are left out.
    ///
    /// # Errors
    ///
    /// [`FolderError::Io`].
    pub fn list(&self) -> Result<Vec<Listed>, FolderError> {
        let entries = self.folder.list()?.into_iter();
        let listed = |entry: Entry| {
            let (head, _) = Head::read(&self.folder.head(&entry.name, HEAD).ok()?).ok()?;
            Some(Listed { entry, head })
        };
        Ok(entries.filter_map(listed).collect())
    }

    /// Begins to record an emulator, which is called `whose`.
    ///
    /// # Errors
    ///
    /// [`RecordError::Recording`] if it is being recorded already, and as [`Recorder::start`].
    pub async fn start(
        &self,
        whose: &str,
        emulator: Arc<dyn Emulator>,
        name: Name,
        options: Options,
    ) -> Result<(), RecordError> {
        let mut active = self.active.lock().await;
        let under_way = |recorder: &&Recorder| recorder.ended().is_none();
        if let Some(recorder) = active.get(whose).filter(under_way) {
            return Err(RecordError::Recording(whose.to_owned(), recorder.name().clone()));
        }
        if let Some(recorder) = active.values().filter(under_way).find(|recorder| *recorder.name() == name) {
            return Err(FolderError::Taken { kind: "recording", name: recorder.name().clone() }.into());
        }
        let recorder = Recorder::start(emulator, self.folder.clone(), name, options).await?;
        active.insert(whose.to_owned(), recorder);
        Ok(())
    }

    /// Ends the recording of an emulator, and waits for its file.
    ///
    /// # Errors
    ///
    /// [`RecordError::NotRecording`], [`RecordError::Unfinished`].
    pub async fn stop(&self, whose: &str) -> Result<Summary, RecordError> {
        let recorder = self.active.lock().await.remove(whose);
        let recorder = recorder.ok_or_else(|| RecordError::NotRecording(whose.to_owned()))?;
        recorder.stop().await.map_err(RecordError::Unfinished)
    }

    /// The recording of an emulator, if one is being made or ended by itself.
    pub async fn active(&self, whose: &str) -> Option<Active> {
        let active = self.active.lock().await;
        let recorder = active.get(whose)?;
        Some(Active { name: recorder.name().clone(), progress: recorder.progress(), ended: recorder.ended() })
    }

    /// The emulator of which a recording of this name is being made.
    pub async fn subject_of(&self, name: &Name) -> Option<String> {
        let active = self.active.lock().await;
        let mut under_way = active.iter().filter(|(_, recorder)| recorder.ended().is_none());
        under_way.find(|(_, recorder)| recorder.name() == name).map(|(whose, _)| whose.clone())
    }

    /// Ends all recordings and waits for their files.
    pub async fn close(&self) {
        for (_, recorder) in std::mem::take(&mut *self.active.lock().await) {
            // Whoever could be told of a failure is gone.
            let _ = recorder.stop().await;
        }
    }
}
