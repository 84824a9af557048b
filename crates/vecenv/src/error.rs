use std::path::PathBuf;

/// Why a task, a vector of environments or a search cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ROM cannot be opened, or a state cannot be loaded.
    #[error(transparent)]
    Core(#[from] framewire_libmgba::Error),
    /// The ROM is not the one that the game file names.
    #[error(transparent)]
    WrongRom(#[from] framewire_game::WrongRom),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The scenario does not fit this console or game.
    #[error("scenario {scenario}: {message}")]
    Scenario {
        /// The scenario's name.
        scenario: String,
        /// What does not fit, and what is accepted.
        message: String,
    },
    /// The state of an environment is damaged, or belongs to another scenario.
    #[error("{0}")]
    State(String),
    /// An argument is not accepted.
    #[error("{0}")]
    Argument(String),
    /// A thread cannot be started.
    #[error("cannot start the threads of the environments: {0}")]
    Threads(String),
}
