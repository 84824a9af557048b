//! The folder of recordings, and the recordings in progress.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use framewire_emulator::Emulator;
use framewire_states::{Entry, Folder, FolderError, Name};
use tokio::sync::Mutex;

use crate::{Head, MAX_FILE, Options, Progress, RecordError, Recorder, Recording, Summary, head, journal};

/// The largest number of recordings in the folder.
const LIMIT: usize = 4096;

/// On systems without file locks, a recording in progress counts as abandoned if nothing has been written to it
/// for this long.
const QUIET: Duration = Duration::from_secs(60);

/// The folder of recordings, and the recordings in progress: one for each emulator.
#[derive(Debug)]
pub struct Recordings {
    folder: Arc<Folder>,
    active: Mutex<BTreeMap<String, Recorder>>,
}

/// A recording in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The file of the recording.
    pub entry: Entry,
    /// The head of the recording.
    pub head: Head,
}

/// A recording in progress, or the latest recording that has ended by itself.
#[derive(Debug)]
pub struct Active {
    /// The name of the recording.
    pub name: Name,
    /// The progress of the recording.
    pub progress: Progress,
    /// How the recording ended, if it has ended.
    pub ended: Option<Result<Summary, Arc<FolderError>>>,
}

/// A recording that an earlier run of the program did not complete.
#[derive(Debug)]
pub struct Recovered {
    /// The name with which the recording was started.
    pub wanted: Name,
    /// The recording's name now and its number of frames, or the reason why it could not be recovered. The name differs
    /// from `wanted` if that name was taken.
    pub outcome: Result<(Name, u64), FolderError>,
}

impl Active {
    /// The state of a recording after all events that its emulator has reported so far.
    async fn of(recorder: &Recorder) -> Active {
        recorder.settle().await;
        Active { name: recorder.name().clone(), progress: recorder.progress(), ended: recorder.ended() }
    }
}

impl Recordings {
    /// The folder at `path`, which does not have to exist yet.
    pub fn new(path: PathBuf) -> Recordings {
        let folder = Folder::new(path, "recording", "fwr", LIMIT, MAX_FILE);
        Recordings { folder: Arc::new(folder), active: Mutex::default() }
    }

    /// The folder with the files of the recordings.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The recordings, sorted by name. Files that are not recordings are left out.
    ///
    /// # Errors
    /// [`FolderError::Io`].
    pub fn list(&self) -> Result<Vec<Listed>, FolderError> {
        let entries = self.folder.list()?.into_iter();
        let listed = |entry: Entry| {
            let (head, _) = Head::read(&self.folder.head(&entry, head::LONGEST).ok()?).ok()?;
            Some(Listed { entry, head })
        };
        Ok(entries.filter_map(listed).collect())
    }

    /// Completes the recordings that were in progress when an earlier run of the program ended. Each of them then ends
    /// after its last complete entry. Does not change recordings of other running programs. Removes recordings in which
    /// nothing can be played.
    pub fn recover(&self) -> Vec<Recovered> {
        // Remove the files of uploads that were in progress. If this fails, recordings may still be recovered.
        let _ = self.folder.remove_abandoned();
        let files = journal::all(&self.folder).into_iter();
        let recovered = files.filter_map(|(path, wanted)| {
            let outcome = self.recover_one(&path, &wanted).transpose()?;
            Some(Recovered { wanted, outcome })
        });
        recovered.collect()
    }

    /// Completes one recording. Returns `None` if another program is still recording it, or has already completed it.
    fn recover_one(&self, path: &Path, wanted: &Name) -> Result<Option<(Name, u64)>, FolderError> {
        let failed = |source: io::Error| FolderError::Io { action: "recover", path: path.to_owned(), source };
        let file = match File::options().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed)?,
        };
        let abandoned = framewire_files::lock_if_supported(&file).unwrap_or_else(|| is_quiet(&file));
        // Another program may have completed the recording before this one locked the file.
        if !abandoned || !path.exists() {
            return Ok(None);
        }
        match self.folder.check_free(wanted, false) {
            Ok(()) | Err(FolderError::Taken { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut bytes = Vec::new();
        (&file).take(MAX_FILE).read_to_end(&mut bytes).map_err(failed)?;
        let recording = match Recording::read(&bytes) {
            Ok(recording) => recording,
            Err(error) => {
                fs::remove_file(path).map_err(failed)?;
                return Err(failed(io::Error::other(error)));
            }
        };
        let frames = recording.frames();
        let head = Head { recovered: true, ..recording.head().clone() };
        let reason = format!("the program ended in the middle; recovered up to frame {frames}");
        let out = BufWriter::new(self.folder.begin()?);
        let out = recording.write(out, &head, &reason).map_err(failed)?;
        let out = out.into_inner().map_err(|error| failed(error.into_error()))?;
        let name = self.folder.finish_as(out, wanted, false, |number| suffixed(wanted, number))?;
        fs::remove_file(path).map_err(failed)?;
        Ok(Some((name, frames)))
    }

    /// Starts to record the emulator called `emulator_name`. Returns the new recording.
    ///
    /// # Errors
    /// [`RecordError::Recording`] if the emulator is already being recorded; also those of [`Recorder::start`].
    pub async fn start(
        &self,
        emulator_name: &str,
        emulator: Arc<dyn Emulator>,
        name: Name,
        options: Options,
    ) -> Result<Active, RecordError> {
        let mut active = self.active.lock().await;
        // A recording may just have ended by itself, so let each recorder handle all events first.
        for recorder in active.values() {
            recorder.settle().await;
        }
        let running = |recorder: &&Recorder| recorder.ended().is_none();
        if let Some(recorder) = active.get(emulator_name).filter(running) {
            return Err(RecordError::Recording(emulator_name.to_owned(), recorder.name().clone()));
        }
        if let Some(recorder) = active.values().filter(running).find(|recorder| *recorder.name() == name) {
            return Err(FolderError::Taken { kind: "recording", name: recorder.name().clone() }.into());
        }
        let recorder = Recorder::start(emulator, self.folder.clone(), name, options).await?;
        active.insert(emulator_name.to_owned(), recorder);
        Ok(Active::of(&active[emulator_name]).await)
    }

    /// Ends the recording of an emulator, and waits until the file is complete.
    ///
    /// # Errors
    /// [`RecordError::NotRecording`], [`RecordError::Unfinished`].
    pub async fn stop(&self, emulator_name: &str) -> Result<Summary, RecordError> {
        let recorder = self.active.lock().await.remove(emulator_name);
        let recorder = recorder.ok_or_else(|| RecordError::NotRecording(emulator_name.to_owned()))?;
        recorder.stop().await.map_err(RecordError::Unfinished)
    }

    /// The recording of an emulator, if one is in progress or the latest has ended by itself.
    pub async fn active(&self, emulator_name: &str) -> Option<Active> {
        let active = self.active.lock().await;
        Some(Active::of(active.get(emulator_name)?).await)
    }

    /// The name of the emulator whose recording in progress has this name.
    pub async fn emulator_recorded_as(&self, name: &Name) -> Option<String> {
        let active = self.active.lock().await;
        for recorder in active.values().filter(|recorder| recorder.name() == name) {
            recorder.settle().await;
        }
        let mut running = active.iter().filter(|(_, recorder)| recorder.ended().is_none());
        running.find(|(_, recorder)| recorder.name() == name).map(|(of, _)| of.clone())
    }

    /// Ends all recordings, and waits until their files are complete.
    pub async fn close(&self) {
        for (_, recorder) in std::mem::take(&mut *self.active.lock().await) {
            // Ignore failures, because no client waits for the result.
            let _ = recorder.stop().await;
        }
    }
}

/// Whether nothing has been written to a file for a while.
fn is_quiet(file: &File) -> bool {
    let written = file.metadata().and_then(|data| data.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|since| since >= QUIET))
}

/// Another name for a recording whose own name is taken. `number` counts the attempts: `NAME-recovered`,
/// `NAME-recovered-2` and so on.
pub(crate) fn suffixed(name: &Name, number: u32) -> Name {
    // The rest of the 64 characters of a name is for the ending. All characters of a name are ASCII.
    const ROOM: usize = 48;
    let start = &name.as_str()[..name.as_str().len().min(ROOM)];
    let end = if number == 1 { String::new() } else { format!("-{number}") };
    format!("{start}-recovered{end}").parse().unwrap_or_else(|_| name.clone())
}
