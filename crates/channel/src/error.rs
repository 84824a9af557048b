use crate::layout::MAX_MESSAGE;

/// Why there is no message, or no channel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The time limit passed before the event for which the call waited, such as a message.
    #[error("the time ran out")]
    Timeout,
    /// The other side has closed the channel.
    #[error("the other side has closed the channel")]
    Closed,
    /// The other side's process has ended without closing the channel, or it no longer holds its lock on the channel.
    #[error("the other side has ended without closing")]
    Died,
    /// A message of this many bytes cannot be sent.
    #[error("a message has 1 to {MAX_MESSAGE} bytes, not {0}")]
    Length(usize),
    /// The memory has contents that this version of the library never writes, a part of it is missing, or its file
    /// was removed or has another size.
    #[error("the channel is damaged: {0}")]
    Damaged(&'static str),
    /// The name is empty, has more than 200 characters, begins with `.`, or has a character that is not accepted.
    #[error(
        "a channel cannot be called {0:?}; use 1 to 200 letters, digits, '-', '_' and '.', with no '.' at the beginning"
    )]
    Name(String),
    /// Sizes that a channel cannot have.
    #[error("{0}")]
    Size(&'static str),
    /// A channel with this name exists, and its creator is still running. The creator can also be this process.
    #[error("channel {0:?} is served already; stop that program or choose another name")]
    Served(String),
    /// A client is attached, or has been attached before: a channel accepts only one client.
    #[error("channel {0:?} has a client already")]
    Attached(String),
    /// No running process serves a channel with this name.
    #[error("channel {0:?} does not exist; start the program that serves it")]
    Missing(String),
    /// The shared memory with this name belongs to another user, or other users can open it.
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
