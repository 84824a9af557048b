use std::io;
use std::path::PathBuf;

use crate::{Name, png};

/// Why the files of a [`Folder`](crate::Folder) could not be listed, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// No file has this name.
    #[error("there is no {kind} {name}")]
    Missing {
        /// What the folder's files are called in messages, such as `snapshot`.
        kind: &'static str,
        /// The requested name.
        name: Name,
    },
    /// Another file already has this name.
    #[error("there is a {kind} {name} already; choose another name")]
    Taken {
        /// What the folder's files are called in messages.
        kind: &'static str,
        /// The name, in the spelling of the existing file.
        name: Name,
    },
    /// The folder already has the largest number of files.
    #[error("there are {limit} {kind}s already; delete some first")]
    Full {
        /// What the folder's files are called in messages.
        kind: &'static str,
        /// The largest number of files in the folder.
        limit: usize,
    },
    /// The file is too large.
    #[error("the {kind} has {size} bytes; at most {limit} are accepted")]
    TooLarge {
        /// What the folder's files are called in messages.
        kind: &'static str,
        /// The file's size in bytes.
        size: u64,
        /// The largest size that is accepted, in bytes.
        limit: u64,
    },
    /// The content of the file is not valid.
    #[error("the file of {kind} {name} is damaged: {reason}")]
    Damaged {
        /// What the folder's files are called in messages.
        kind: &'static str,
        /// The name of the file.
        name: Name,
        /// What is wrong with the content.
        reason: String,
    },
    /// The system reported an error.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action that failed, as a verb, such as `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Why bytes are not a usable savestate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The bytes are neither a state of mGBA nor a PNG that contains one.
    #[error("not a savestate of mGBA: {0}")]
    Format(String),
    /// The state belongs to another console.
    #[error("a state of a {theirs} cannot be loaded into a {ours}")]
    OtherConsole {
        /// The console of the state.
        theirs: crate::Console,
        /// The running console.
        ours: crate::Console,
    },
}

impl From<png::PngError> for StateError {
    fn from(error: png::PngError) -> StateError {
        StateError::Format(error.to_string())
    }
}
