use std::io;
use std::path::PathBuf;

use crate::{Name, png};

/// Why files of a folder could not be listed, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// There is none of this name.
    #[error("there is no {kind} {name}")]
    Missing {
        /// What the folder holds, such as `snapshot`.
        kind: &'static str,
        /// The name asked for.
        name: Name,
    },
    /// There is one of this name already.
    #[error("there is a {kind} {name} already; choose another name")]
    Taken {
        /// What the folder holds.
        kind: &'static str,
        /// The name, as it is spelled there.
        name: Name,
    },
    /// There are too many.
    #[error("{limit} {kind}s are kept already; delete some first")]
    Full {
        /// What the folder holds.
        kind: &'static str,
        /// How many it may hold.
        limit: usize,
    },
    /// The file is larger than any of its kind.
    #[error("the {kind} has {size} bytes, and at most {limit} are read")]
    TooLarge {
        /// What the folder holds.
        kind: &'static str,
        /// Its size in bytes.
        size: u64,
        /// The largest that is read.
        limit: u64,
    },
    /// The file is there and is not what it should be.
    #[error("the file of {kind} {name} is damaged: {reason}")]
    Damaged {
        /// What the folder holds.
        kind: &'static str,
        /// Whose file it is.
        name: Name,
        /// What is wrong with it.
        reason: String,
    },
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's word on it.
        source: io::Error,
    },
}

/// Why bytes are no savestate that can be used here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Neither a bare state of mGBA's nor a PNG with one inside.
    #[error("not a savestate of mGBA's: {0}")]
    Format(String),
    /// A state of another console.
    #[error("a state of a {theirs} cannot be loaded into a {ours}")]
    OtherConsole {
        /// The state's console.
        theirs: crate::Console,
        /// The running one.
        ours: crate::Console,
    },
}

impl From<png::PngError> for StateError {
    fn from(error: png::PngError) -> StateError {
        StateError::Format(error.to_string())
    }
}
