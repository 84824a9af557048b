//! Battery saves. While the game runs, they are in memory. Soon after the game has changed a save, it is written to its
//! file.
//!
//! - `file`: the file of a save on disk, its lock, and changes by other programs;
//! - `writer`: the thread that writes files;
//! - `problems`: reports saves that cannot be written (in the log, as events and in the emulator's state).

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
pub use file::check;
use file::{Opened, SaveFile};
use problems::Problems;
pub(super) use problems::SaveProblems;
use writer::Writer;

/// A changed save is written when the game has not changed it again for this long.
const QUIET: Duration = Duration::from_millis(500);
/// A changed save is written no later than this after its first change, even if the game continues to change it.
const LATEST: Duration = Duration::from_secs(3);

/// The saves of a core and their files.
pub(super) struct Saves {
    saves: Vec<Tracked>,
    /// The files that a save uses or that the writer still has to write.
    files: Vec<Weak<SaveFile>>,
    writer: Writer,
    problems: Problems,
    /// The save file from the settings, if the user has chosen one.
    own: Option<OwnSave>,
    /// The save that was in use at the last call of [`file_changes`](Self::file_changes).
    in_use: Option<SaveId>,
    /// The path of the file of that save; empty if the save has no file.
    path: PathBuf,
    /// The result of that call.
    file_changes: u32,
}

/// A game, and the save file that the user has chosen for it in place of the file next to the ROM.
struct OwnSave {
    rom: PathBuf,
    save: PathBuf,
}

/// A save of the core that is checked for changes.
struct Tracked {
    id: SaveId,
    /// The file of the save; `None` if the save must not or cannot be written.
    file: Option<Arc<SaveFile>>,
    /// The save's bytes at the last check.
    bytes: Vec<u8>,
    /// When the save changed, if there are changes that have not been handed to the writer yet.
    change: Option<Unwritten>,
}

/// When a save was changed for the first and for the last time since it was handed to the writer.
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
    /// Starts the thread that writes save files.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    pub fn start(shared: &Arc<EmbeddedState>, console: fn() -> Console) -> std::io::Result<Saves> {
        let problems = || Problems::new(shared.clone(), console());
        let writer = Writer::start(problems())?;
        Ok(Saves {
            saves: Vec::new(),
            files: Vec::new(),
            writer,
            problems: problems(),
            own: None,
            in_use: None,
            path: PathBuf::new(),
            file_changes: 0,
        })
    }

    /// Finds changed saves, and hands the writer those that are due. If the core's save was removed and not
    /// replaced, reports that as a problem. The operation `load_file` or a script can remove it.
    pub fn check(&mut self, core: &mut Core, now: Instant) {
        if self.take_changes(core, now) && !core.saves().any(|save| save.in_use) {
            let problem = "no save file has been in use since another game was loaded; load a save file with autoload_save";
            self.problems.set_opening(Path::new(""), Some(problem.to_owned()));
        }
    }

    /// Finds changed saves, and hands the writer those that are due. Returns whether the core has removed a save.
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

    /// Removes the core's saves, and hands them to the writer. Called before the core is dropped.
    pub fn leave(&mut self, core: &mut Core) {
        core.unload_save();
        self.take_changes(core, Instant::now());
        // The next core uses the same ids for its own saves.
        self.saves.clear();
        self.in_use = None;
    }

    /// Like [`leave`](Self::leave), but also waits until everything is written.
    pub fn finish(&mut self, core: &mut Core) {
        self.leave(core);
        self.writer.finish();
    }

    /// Loads a save file for the current game. From now on, this file is the game's own save file, in place of the file
    /// next to the ROM.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn load_own(&mut self, core: &mut Core, path: &Path) -> Result<(), OpError> {
        self.own = Some(OwnSave { rom: core.path().to_owned(), save: path.to_owned() });
        self.load(core, path)
    }

    /// How many times the game's save file was switched: to another path, from a file to none, or from none to a file.
    /// A temporary save has no file.
    pub fn file_changes(&mut self, core: &mut Core) -> u32 {
        if core.save_in_use() != self.in_use {
            // A script may have loaded the save.
            self.adopt_all(core, Instant::now());
            self.in_use = core.save_in_use();
            let tracked = self.saves.iter().find(|tracked| Some(tracked.id) == self.in_use);
            let file = tracked.and_then(|tracked| tracked.file.as_ref());
            let path = file.map_or(Path::new(""), |file| file.path());
            if self.path != path {
                path.clone_into(&mut self.path);
                self.file_changes += 1;
            }
        }
        self.file_changes
    }

    /// The current game's own save file: the file that the user has chosen, or else the file next to the ROM.
    fn path(&self, core: &Core) -> PathBuf {
        match &self.own {
            Some(own) if real_path(&own.rom) == real_path(core.path()) => own.save.clone(),
            _ => core.save_path(),
        }
    }

    /// Loads the game's own save file. If the file cannot be read or written, this is reported, and the game runs
    /// anyway.
    pub fn autoload_at_start(&mut self, core: &mut Core) {
        // Hand over a changed save of the previous game.
        self.take_changes(core, Instant::now());
        let path = self.path(core);
        if let Some(folder) = path.parent() {
            // Remove the temporary files of processes that were killed while they wrote.
            let _ = framewire_files::remove_abandoned(folder);
        }
        let opened = self
            .open(core, &path)
            .unwrap_or_else(|problem| Opened { problem: Some(problem), ..Opened::default() });
        if let Err(error) = self.put_in(core, &path, opened) {
            self.problems.set_opening(&path, Some(error.message));
        }
    }

    /// Loads the game's own save file.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn autoload(&mut self, core: &mut Core) -> Result<(), OpError> {
        self.load(core, &self.path(core))
    }

    /// Loads a save file. The game's changes are written to this file from now on.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn load(&mut self, core: &mut Core, path: &Path) -> Result<(), OpError> {
        // The current save may belong to the same file, so its latest changes must be written first.
        self.hand_over_all(core);
        let opened = self.open(core, path).map_err(OpError::failed)?;
        if let Some(problem) = opened.problem {
            return Err(OpError::failed(problem));
        }
        self.put_in(core, path, opened)
    }

    /// Loads a save file, to which the game's changes are not written.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn load_temporary(&mut self, core: &mut Core, path: &Path) -> Result<(), OpError> {
        self.hand_over_all(core);
        self.flush_open(path);
        let bytes = file::read(path).map_err(|problem| unread(path, problem))?;
        core.load_temporary_save(&bytes).map_err(|error| OpError::failed(error.to_string()))
    }

    /// Loads the content of an opened save file into the core, and tracks the core's new save.
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

    /// If the save file at this path is already open here, writes its latest changes and returns the file.
    fn flush_open(&mut self, path: &Path) -> Option<Arc<SaveFile>> {
        self.files.retain(|file| file.strong_count() > 0);
        let real_path = real_path(path);
        let file = self.files.iter().filter_map(Weak::upgrade).find(|file| file.path() == real_path)?;
        if let Ok(Some(notice)) = file.flush() {
            self.problems.log(Level::Warn, &notice);
        }
        Some(file)
    }

    /// Opens a save file. If the file is already open here, writes its latest changes first.
    fn open(&mut self, core: &Core, path: &Path) -> Result<Opened, String> {
        check_is_not_game(path, core.path())?;
        if let Some(file) = self.flush_open(path) {
            return file.reopen();
        }
        let opened = SaveFile::open(path)?;
        self.files.extend(opened.file.as_ref().map(Arc::downgrade));
        Ok(opened)
    }

    /// Detaches `file` from the saves that use it, so that their later changes are not written to it. When libmgba
    /// closes such a save, it appends the cartridge's clock to the save. By then, the file may have newer content.
    fn release(&mut self, file: Option<&Arc<SaveFile>>) {
        let Some(file) = file else { return };
        for tracked in &mut self.saves {
            tracked.file.take_if(|its| Arc::ptr_eq(its, file));
        }
    }

    /// Begins to track the saves that scripts have loaded, the oldest first.
    fn adopt_all(&mut self, core: &mut Core, now: Instant) {
        let known = |id: SaveId| self.saves.iter().any(|tracked| tracked.id == id);
        let new = core.saves().filter(|save| !known(save.id));
        let mut new: Vec<_> =
            new.map(|save| (save.id, save.loaded_from.clone(), save.bytes.to_vec(), save.in_use)).collect();
        new.reverse();
        for (id, loaded_from, bytes, in_use) in new {
            let newer = loaded_from.as_ref().is_some_and(|path| self.settle(core, path, now));
            let adopted = self.adopt(core, id, loaded_from, bytes);
            if newer
                && in_use
                && let Some(opened) = adopted
            {
                let path = opened.file.as_ref().map_or(PathBuf::new(), |file| file.path().to_owned());
                if let Err(error) = self.put_in(core, &path, opened) {
                    self.problems.set_opening(&path, Some(error.message));
                }
            }
        }
    }

    /// Called after a script has loaded the file at `path`. If an earlier save with this file has changes that are not
    /// written yet, hands them to the writer. Returns whether there were such changes: if so, libmgba has read the file
    /// too early, without them.
    fn settle(&mut self, core: &Core, path: &Path, now: Instant) -> bool {
        let real_path = real_path(path);
        let mut newer = false;
        for save in core.saves() {
            let Some(tracked) = self.saves.iter_mut().find(|tracked| tracked.id == save.id) else { continue };
            let Some(file) = tracked.file.clone().filter(|file| file.path() == real_path) else { continue };
            if battery(save.bytes) != battery(&tracked.bytes) {
                tracked.check(save.bytes, now);
            }
            newer |= tracked.change.is_some() || !file.is_written();
            tracked.hand_over(&self.writer);
        }
        newer
    }

    /// Begins to track a save that a script has loaded. libmgba has already read the save's file; this opens the file
    /// and returns it. Returns `None` if the file is not known or cannot be opened.
    fn adopt(
        &mut self,
        core: &Core,
        id: SaveId,
        loaded_from: Option<PathBuf>,
        bytes: Vec<u8>,
    ) -> Option<Opened> {
        let opened = match &loaded_from {
            Some(path) => self.open(core, path),
            None => Err("a script loaded it from an unknown file; what the game saves is lost".to_owned()),
        };
        let (opened, problem) = match opened {
            Ok(opened) => (Some(opened.clone()), opened.problem),
            Err(problem) => (None, Some(problem)),
        };
        let file = opened.as_ref().and_then(|opened| opened.file.clone());
        self.release(file.as_ref());
        self.problems.set_opening(&loaded_from.unwrap_or_default(), problem);
        self.saves.push(Tracked { id, file, bytes, change: None });
        opened
    }

    /// Hands all changes of all saves to the writer, even those that are not due yet.
    pub fn hand_over_all(&mut self, core: &mut Core) {
        self.take_changes(core, Instant::now());
        for tracked in &mut self.saves {
            tracked.hand_over(&self.writer);
        }
    }
}

/// The path without symbolic links, `.` and `..`. If there is no such file, only its folder is resolved: the
/// path of a game in an archive is in the folder of the archive, and there is no such file.
fn real_path(path: &Path) -> PathBuf {
    let in_folder = || Some(std::fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    std::fs::canonicalize(path).ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
}

/// Refuses the file of the game itself, or its archive, as the file of its save, which would overwrite the game.
fn check_is_not_game(path: &Path, game: &Path) -> Result<(), String> {
    let (real_path, real_game) = (real_path(path), real_path(game));
    let is_archive = || path.is_file() && real_game.starts_with(&real_path);
    if real_path == real_game || is_archive() {
        return Err(format!("{} is the game itself; use another file for its save", path.display()));
    }
    Ok(())
}

/// The save without the cartridge's clock. The size of save memory is a multiple of 512 bytes, and libmgba appends the
/// clock.
fn battery(bytes: &[u8]) -> &[u8] {
    const BLOCK: usize = 512;
    &bytes[..bytes.len() - bytes.len() % BLOCK]
}

/// The error for a save file that cannot be read because of `problem`.
fn unread(path: &Path, problem: String) -> OpError {
    let missing = matches!(path.try_exists(), Ok(false));
    OpError::new(if missing { Status::NotFound } else { Status::Failed }, problem)
}

impl Tracked {
    /// Records whether the save has changed. `bytes` is its present content.
    fn check(&mut self, bytes: &[u8], now: Instant) {
        if self.bytes != bytes {
            self.bytes = bytes.to_vec();
            self.change =
                Some(Unwritten { first: self.change.map_or(now, |change| change.first), last: now });
        }
    }

    /// If the save has changed, hands it to the writer.
    fn hand_over(&mut self, writer: &Writer) {
        if self.change.take().is_some()
            && let Some(file) = &self.file
        {
            file.set(&self.bytes);
            writer.write(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_of_a_game_is_not_overwritten_with_its_save() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("games.zip");
        std::fs::write(&archive, "PK").unwrap();
        let check = |save: &Path| check_is_not_game(save, &archive.join("game.gba"));
        assert!(check(&archive).unwrap_err().contains("is the game itself"));
        assert_eq!(check(&archive.with_extension("sav")), Ok(()));
        assert_eq!(check(folder.path()), Ok(()), "a folder gets another error");
    }
}
