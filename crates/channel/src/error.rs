use crate::layout::MAX_MESSAGE;

/// Why there is no message, or no channel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The time ran out first.
    #[error("the time ran out")]
    Timeout,
    /// The other side has closed the channel.
    #[error("the other side has closed the channel")]
    Closed,
    /// The other side's process has ended, or no longer holds its lock on the channel, but has not closed the channel.
    #[error("the other side has ended without closing")]
    Died,
    /// A message of this many bytes cannot be sent.
    #[error("a message has 1 to {MAX_MESSAGE} bytes, not {0}")]
    Length(usize),
    /// The memory has contents that this version of the library never writes, or the size of its file has changed.
    #[error("the channel is damaged: {0}")]
    Damaged(&'static str),
    /// The name cannot be used.
    #[error("a channel's name is letters, digits, '-', '_' and '.', not {0:?}")]
    Name(String),
    /// Sizes that a channel cannot have.
    #[error("{0}")]
    Size(&'static str),
    /// Another process has created a channel with this name and is still running.
    #[error("channel {0:?} is served already; stop that program or choose another name")]
    Served(String),
    /// A client is attached, or has been attached before: a channel accepts only one client.
    #[error("channel {0:?} has a client already")]
    Attached(String),
    /// No running process serves a channel of this name.
    #[error("channel {0:?} does not exist; start the program that serves it")]
    Missing(String),
    /// The memory of this name is not safe to use.
    #[error("channel {0:?} belongs to another user, or others may open it; choose another name")]
    Foreign(String),
    /// The channel was created with another version of the layout.
    #[error(
        "channel {name:?} has layout version {version}, but this program uses {}",
        crate::layout::VERSION
    )]
    Version {
        /// The channel's name.
        name: String,
        /// The version of its layout.
        version: u32,
    },
    /// A system call failed.
    #[error("channel: {what}: {source}")]
    System {
        /// What failed, such as "cannot open shared memory".
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
}
