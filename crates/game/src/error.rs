use std::path::{Path, PathBuf};

/// Why a game file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GameFileError {
    /// The file cannot be read.
    #[error("cannot read the game file {path}")]
    Read {
        /// The game file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Something in the file is wrong.
    #[error("{path}:{line}:{column}: {message}")]
    Content {
        /// The game file.
        path: PathBuf,
        /// The number of the line, counted from 1.
        line: usize,
        /// The column in characters, counted from 1.
        column: usize,
        /// What is wrong, and what is accepted.
        message: String,
    },
}

impl GameFileError {
    /// An error at this byte of the file's text.
    pub(crate) fn at(path: &Path, text: &str, byte: usize, message: impl Into<String>) -> GameFileError {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        GameFileError::Content {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }
}
