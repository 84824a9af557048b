//! Reports saves that cannot be written: in the log, as events, and in the emulator's state.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use framewire_libmgba::Level;

use super::super::Console;
use super::super::shared::EmbeddedState;
use super::file::SaveFile;
use crate::EventKind;

/// Reports each problem with a save once when it appears, and once when it is over.
pub(super) struct Problems {
    shared: Arc<EmbeddedState>,
    console: Console,
}

/// The current problems with the save file of a game.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in super::super) struct SaveProblems {
    /// The path of a save file, and the problem that was found when it was opened. If the problem is that no save file
    /// is in use, the path is empty. The problem is over when the file is written or another file is opened.
    opening: Option<(PathBuf, String)>,
    /// A problem with the last attempt to write a file.
    writing: Option<String>,
}

impl SaveProblems {
    /// The problem to report.
    pub fn first(&self) -> Option<&String> {
        self.writing.as_ref().or(self.opening.as_ref().map(|(_, problem)| problem))
    }
}

impl Problems {
    pub fn new(shared: Arc<EmbeddedState>, console: Console) -> Problems {
        Problems { shared, console }
    }

    pub fn log(&mut self, level: Level, line: &str) {
        (self.console)(level, line);
    }

    /// Called when a save file was opened, with or without a problem. Also called, with an empty path, when no save
    /// file is in use any more.
    pub fn set_opening(&mut self, path: &Path, problem: Option<String>) {
        let opening = problem.map(|problem| (path.to_owned(), problem));
        self.change(|problems| *problems = SaveProblems { opening, writing: None });
    }

    /// Called after an attempt to write save files. `written` contains those that were written. If another file was not
    /// written, `problem` is the reason.
    pub fn set_writing(&mut self, written: &[Arc<SaveFile>], problem: Option<String>) {
        self.change(|problems| {
            problems.opening.take_if(|(path, _)| written.iter().any(|file| file.path() == path));
            problems.writing = problem;
        });
    }

    fn change(&mut self, change: impl FnOnce(&mut SaveProblems)) {
        let mut report = self.shared.report.lock();
        let before = report.save_problems.first().cloned();
        change(&mut report.save_problems);
        let after = report.save_problems.first().cloned();
        let frame = report.frame;
        drop(report);
        if after == before {
            return;
        }
        match &after {
            Some(problem) => self.log(Level::Warn, &format!("the game's save: {problem}")),
            None => self.log(Level::Info, "the game's save can be written now"),
        }
        self.shared.events.send(frame, EventKind::Save { problem: after });
    }
}
