use std::io;
use std::path::PathBuf;

use crate::{Name, png};

/// Why files of a folder could not be listed, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// No file has this name.
    #[error("there is no {kind} {name}")]
    Missing {
        /// What the folder holds, such as `snapshot`.
        kind: &'static str,
        /// The requested name.
        name: Name,
    },
    /// A file has this name already.
    #[error("there is a {kind} {name} already; choose another name")]
    Taken {
        /// What the folder holds.
        kind: &'static str,
        /// The name, as it is spelled there.
        name: Name,
    },
    /// The folder is full.
    #[error("{limit} {kind}s are kept already; delete some first")]
    Full {
        /// What the folder holds.
        kind: &'static str,
        /// The largest number of files in the folder.
        limit: usize,
    },
    /// The file is too large.
    #[error("the {kind} has {size} bytes; it may have {limit}")]
    TooLarge {
        /// What the folder holds.
        kind: &'static str,
        /// Its size in bytes.
        size: u64,
        /// The largest number of bytes that it may have.
        limit: u64,
    },
    /// The content of the file is not valid.
    #[error("the file of {kind} {name} is damaged: {reason}")]
    Damaged {
        /// What the folder holds.
        kind: &'static str,
        /// The name of the file.
        name: Name,
        /// What is wrong with the content.
        reason: String,
    },
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
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
    /// Neither a state of mGBA nor a PNG that contains one.
    #[error("not a savestate of mGBA's: {0}")]
    Format(String),
    /// A state of another console.
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
