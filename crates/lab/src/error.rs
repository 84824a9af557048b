//! The error type. Callers print the error and stop, so it says what happened and where to look.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use x11rb::errors::{ConnectionError, ReplyError};

/// [`std::result::Result`] with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The errors of this library, which starts, controls and calls programs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program that is needed is not installed.
    #[error("{0} is not installed; run tools/setup.sh test")]
    Missing(&'static str),
    /// An action failed, such as reading a file, sending an HTTP request, or building the program.
    #[error("{what}: {source}")]
    Io {
        /// The action, such as "read the log".
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A condition did not come true in time.
    #[error("timed out after {after:?} while waiting until {what}")]
    Timeout {
        /// The condition, such as "the window opened".
        what: String,
        /// The time limit.
        after: Duration,
    },
    /// A program ended unexpectedly.
    #[error("{name} ended with {status}; it wrote:\n{output}")]
    Ended {
        /// The program.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote to its standard output and error.
        output: String,
    },
    /// The X server refused something or is gone.
    #[error("X11: {0}")]
    X11(String),
    /// Lua code failed in the emulator.
    #[error("Lua in the emulator: {0}")]
    Lua(String),
    /// Something failed, and there is a picture of the display at that moment.
    #[error("{source}\nthe display at that moment: {}", picture.display())]
    Pictured {
        /// What failed.
        source: Box<Error>,
        /// A PNG of the whole display.
        picture: PathBuf,
    },
}

impl Error {
    /// Makes a function for `map_err` that turns an [`io::Error`] into an [`Error`].
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::Io { what, source }
    }
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        Self::X11(error.to_string())
    }
}

impl From<ReplyError> for Error {
    fn from(error: ReplyError) -> Self {
        Self::X11(error.to_string())
    }
}
