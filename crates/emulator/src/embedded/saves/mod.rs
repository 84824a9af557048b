//! Battery saves: in memory while the game runs, and written to their files soon after the game changed them.
//!
//! - `file`: the file of a save on disk, its lock, and changes by other programs;
//! - `writer`: the thread that writes files;
//! - `problems`: what cannot be written, for the log, the events and the report.

mod file;
mod problems;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use framewire_libmgba::{Core, Level, SaveId};
use framewire_protocol::{OpError, Status};

use super::Console;
use super::shared::EmbeddedState;
use file::{Opened, SaveFile};
use problems::Problems;
pub(super) use problems::SaveProblems;
use writer::Writer;

/// A save is written when the game has not changed it for this time,
const QUIET: Duration = Duration::from_millis(500);
/// and at the latest this time after its first change.
const LATEST: Duration = Duration::from_secs(3);

/// The saves of a core and their files.
pub(super) struct Saves {
    saves: Vec<Tracked>,
    /// Files that are in use or are still written.
    files: Vec<Weak<SaveFile>>,
    writer: Writer,
    problems: Problems,
    /// The save file of a game whose save is not next to its ROM.
    own: Option<OwnSave>,
}

/// A game and its save file.
struct OwnSave {
    rom: PathBuf,
    save: PathBuf,
}

/// A save that the game changes.
struct Tracked {
    id: SaveId,
    /// `None` if it must not or cannot be written.
    file: Option<Arc<SaveFile>>,
    /// Its bytes at the last check.
    bytes: Vec<u8>,
    change: Option<Unwritten>,
}

/// Changes that were not handed to the writer yet.
#[derive(Clone, Copy)]
struct Unwritten {
    first: Instant,
    last: Instant,
}

impl Unwritten {
    fn is_due(&self, now: Instant) -> bool {
        now - self.last >= QUIET || now - self.first >= LATEST
    }
}

impl Saves {
    /// Starts the thread that writes.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    pub fn start(shared: &Arc<EmbeddedState>, console: fn() -> Console) -> std::io::Result<Saves> {
        let problems = || Problems::new(shared.clone(), console());
        let writer = Writer::start(problems())?;
        Ok(Saves { saves: Vec::new(), files: Vec::new(), writer, problems: problems(), own: None })
    }

    /// Finds what the game has changed, and lets the writer store what is due. A save that was removed without another in its
    /// place is reported: by `load_file`, a script, or a state with another kind of save memory.
    pub fn check(&mut self, core: &mut Core, now: Instant) {
        if self.take_changes(core, now) && !core.saves().any(|save| save.in_use) {
            let problem =
                "no save file is in use since another game or state took it out; load one with autoload_save";
            self.problems.set_opening(Path::new(""), Some(problem.to_owned()));
        }
    }

    /// Whether a save was removed.
    fn take_changes(&mut self, core: &mut Core, now: Instant) -> bool {
        self.adopt_all(core, now);
        let mut ended = Vec::new();
        for save in core.saves() {
            let Some(tracked) = self.saves.iter_mut().find(|tracked| tracked.id == save.id) else { continue };
            tracked.check(save.bytes, now);
            if tracked.change.is_some_and(|change| change.is_due(now) || !save.in_use) {
                tracked.hand_over(&self.writer);
            }
            if !save.in_use {
                ended.push(save.id);
            }
        }
        for id in &ended {
            core.forget_save(*id);
            self.saves.retain(|tracked| tracked.id != *id);
        }
        !ended.is_empty()
    }

    /// Removes the core's saves and lets the writer store them. Called before the core is dropped.
    pub fn leave(&mut self, core: &mut Core) {
        core.unload_save();
        self.take_changes(core, Instant::now());
        // The next core counts its saves from the beginning.
        self.saves.clear();
    }

    /// Like [`leave`](Self::leave), and waits until everything is written.
    pub fn finish(&mut self, core: &mut Core) {
        self.leave(core);
        self.writer.finish();
    }

    /// Gives the game this save file, now and whenever its own save is loaded.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn load_own(&mut self, core: &mut Core, path: &Path) -> Result<(), OpError> {
        self.own = Some(OwnSave { rom: core.path().to_owned(), save: path.to_owned() });
        self.load(core, path)
    }

    /// The save file of the game that runs: next to its ROM, if it has no other one.
    fn path(&self, core: &Core) -> PathBuf {
        match &self.own {
            Some(own) if own.rom == core.path() => own.save.clone(),
            _ => core.save_path(),
        }
    }

    /// Gives the game its save file. If the file cannot be written, that is reported, and the game
    /// runs anyway.
    pub fn autoload_at_start(&mut self, core: &mut Core) {
        // The previous game may have left one.
        self.take_changes(core, Instant::now());
        let path = self.path(core);
        if let Some(folder) = path.parent() {
            // Files of processes that were killed while they wrote.
            let _ = framewire_files::remove_abandoned(folder);
        }
        let opened = self.open(&path).unwrap_or_else(|problem| Opened {
            file: None,
            bytes: Arc::default(),
            problem: Some(problem),
        });
        if let Err(error) = self.put_in(core, &path, opened) {
            self.problems.set_opening(&path, Some(error.message));
        }
    }

    /// Gives the game its save file.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn autoload(&mut self, core: &mut Core) -> Result<(), OpError> {
        self.load(core, &self.path(core))
    }

    /// Gives the game a save file.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn load(&mut self, core: &mut Core, path: &Path) -> Result<(), OpError> {
        // What the game saved a moment ago may be in that file.
        self.hand_over_all(core);
        let opened = self.open(path).map_err(OpError::failed)?;
        if let Some(problem) = opened.problem {
            return Err(OpError::failed(problem));
        }
        self.put_in(core, path, opened)
    }

    /// Gives the game a save file to read.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load_temporary(core: &mut Core, path: &Path) -> Result<(), OpError> {
        let null = std::fs::canonicalize(path).is_ok_and(|path| path == Path::new("/dev/null"));
        let bytes =
            if null { Vec::new() } else { file::read(path).map_err(|problem| unread(path, problem))? };
        core.load_temporary_save(&bytes).map_err(|error| OpError::failed(error.to_string()))
    }

    fn put_in(&mut self, core: &mut Core, path: &Path, opened: Opened) -> Result<(), OpError> {
        let Opened { file, bytes, problem } = opened;
        self.release(file.as_ref());
        let id = core.load_save(&bytes).map_err(|error| OpError::failed(error.to_string()))?;
        let path = file.as_ref().map_or(path, |file| file.path());
        self.problems.set_opening(path, problem);
        self.saves.push(Tracked { id, file, bytes: bytes.to_vec(), change: None });
        self.take_changes(core, Instant::now());
        Ok(())
    }

    /// Opens a save file, or the one that is open already after it was written.
    fn open(&mut self, path: &Path) -> Result<Opened, String> {
        self.files.retain(|file| file.strong_count() > 0);
        let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let open = self.files.iter().filter_map(Weak::upgrade).find(|file| file.path() == place);
        if let Some(file) = open {
            if let Ok(Some(notice)) = file.flush() {
                self.problems.log(Level::Warn, &notice);
            }
            return file.reopen();
        }
        let opened = SaveFile::open(path)?;
        self.files.extend(opened.file.as_ref().map(Arc::downgrade));
        Ok(opened)
    }

    /// Detaches the save that had this file. When libmgba closes that save, it adds the cartridge's
    /// clock to it, and the file may hold what another program wrote by then.
    fn release(&mut self, file: Option<&Arc<SaveFile>>) {
        let Some(file) = file else { return };
        for tracked in &mut self.saves {
            tracked.file.take_if(|its| Arc::ptr_eq(its, file));
        }
    }

    /// Tracks the saves that scripts have loaded, the oldest first.
    fn adopt_all(&mut self, core: &mut Core, now: Instant) {
        let known = |id: SaveId| self.saves.iter().any(|tracked| tracked.id == id);
        let new = core.saves().filter(|save| !known(save.id));
        let mut new: Vec<_> =
            new.map(|save| (save.id, save.found_at.clone(), save.bytes.to_vec(), save.in_use)).collect();
        new.reverse();
        for (id, found_at, bytes, in_use) in new {
            let newer = found_at.as_ref().is_some_and(|path| self.settle(core, path, now));
            let adopted = self.adopt(id, found_at, bytes);
            if let Some(Opened { file, bytes, problem }) = adopted
                && newer
                && in_use
            {
                let path = file.as_ref().map_or(PathBuf::new(), |file| file.path().to_owned());
                if let Err(error) = self.put_in(core, &path, Opened { file, bytes, problem }) {
                    self.problems.set_opening(&path, Some(error.message));
                }
            }
        }
    }

    /// Gives the writer what the game saved to the file at `path` shortly before a script loaded it. Returns whether there was
    /// anything; then libmgba has read an outdated file.
    fn settle(&mut self, core: &Core, path: &Path, now: Instant) -> bool {
        let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut newer = false;
        for save in core.saves() {
            let tracked = self.saves.iter_mut().find(|tracked| tracked.id == save.id);
            let Some((tracked, file)) =
                tracked.and_then(|tracked| tracked.file.clone().map(|file| (tracked, file)))
            else {
                continue;
            };
            if file.path() != place {
                continue;
            }
            if battery(save.bytes) != battery(&tracked.bytes) {
                tracked.check(save.bytes, now);
            }
            newer |= tracked.change.is_some() || !file.is_written();
            tracked.hand_over(&self.writer);
        }
        newer
    }

    /// Called when a script has opened a save, which libmgba has read already. Returns what was opened.
    fn adopt(&mut self, id: SaveId, found_at: Option<PathBuf>, bytes: Vec<u8>) -> Option<Opened> {
        let opened =
            match &found_at {
                Some(path) => self.open(path),
                None => Err("a script loaded it from a place that is not known; what the game saves is lost"
                    .to_owned()),
            };
        let (opened, problem) = match opened {
            Ok(opened) => (Some(opened.clone()), opened.problem),
            Err(problem) => (None, Some(problem)),
        };
        let file = opened.as_ref().and_then(|opened| opened.file.clone());
        self.release(file.as_ref());
        self.problems.set_opening(&found_at.unwrap_or_default(), problem);
        self.saves.push(Tracked { id, file, bytes, change: None });
        opened
    }

    /// Gives the writer everything that the game has changed.
    pub fn hand_over_all(&mut self, core: &mut Core) {
        self.take_changes(core, Instant::now());
        for tracked in &mut self.saves {
            tracked.hand_over(&self.writer);
        }
    }
}

/// The save without the cartridge's clock, which libmgba adds after the last whole block. All save memory has whole blocks.
fn battery(bytes: &[u8]) -> &[u8] {
    const BLOCK: usize = 512;
    &bytes[..bytes.len() - bytes.len() % BLOCK]
}

/// The refusal for a save file that cannot be read because of `problem`.
fn unread(path: &Path, problem: String) -> OpError {
    let missing = matches!(path.try_exists(), Ok(false));
    OpError::new(if missing { Status::NotFound } else { Status::Failed }, problem)
}

impl Tracked {
    fn check(&mut self, bytes: &[u8], now: Instant) {
        if self.bytes != bytes {
            self.bytes = bytes.to_vec();
            self.change =
                Some(Unwritten { first: self.change.map_or(now, |change| change.first), last: now });
        }
    }

    fn hand_over(&mut self, writer: &Writer) {
        if self.change.take().is_some()
            && let Some(file) = &self.file
        {
            file.set(&self.bytes);
            writer.write(file);
        }
    }
}
