use framewire_protocol::OpError;

/// Why a batch or a single operation has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmulatorError {
    /// There is no connection to the emulator.
    #[error("{0}")]
    NotConnected(String),
    /// The emulator did not answer by the deadline. Perhaps it is paused in its own window, has no ROM, or is too slow.
    #[error("{0}")]
    Deadline(String),
    /// The queue is full; nothing was done. The number is the queue's length.
    #[error("{0} requests are already waiting for the emulator; send fewer at a time and try again")]
    Busy(usize),
    /// The connection broke, and it is not known whether the batch was performed: there was no new connection by the
    /// deadline, the script was loaded again, the script has forgotten the session, or the script is that of mGBA-http,
    /// which does not remember requests.
    #[error("{0}")]
    Lost(String),
    /// The emulator is being stopped.
    #[error("the emulator is being stopped")]
    Stopped,
    /// The caller is not allowed to do this; nothing was done.
    #[error("{0}")]
    Forbidden(String),
    /// The emulator refused the operation.
    #[error(transparent)]
    Refused(#[from] OpError),
}
