use framewire_protocol::OpError;

/// Why a batch, or an operation done alone, has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmulatorError {
    /// There is no emulator at the other end.
    #[error("{0}")]
    NotConnected(String),
    /// The emulator did not answer by the deadline: it is paused, has no ROM, or is too slow.
    #[error("{0}")]
    Deadline(String),
    /// A queue is full; nothing was done.
    #[error("the emulator has {0} requests waiting already; send fewer at a time and try again")]
    Busy(usize),
    /// The connection broke and the script lost its memory in between: whether it was done cannot be known.
    #[error("{0}")]
    Lost(String),
    /// The emulator is being stopped.
    #[error("the emulator is being stopped")]
    Stopped,
    /// Whoever asks may not; nothing was done.
    #[error("{0}")]
    Forbidden(String),
    /// The emulator answered that it will not or cannot.
    #[error(transparent)]
    Refused(#[from] OpError),
}
