use std::io;
use std::time::Duration;

/// Why a message did not come back.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The connection could not be made or broke.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// No answer in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The script answered, but with an error.
    #[error("the script answered with an error: {0}")]
    Refused(String),
    /// What came back cannot be understood.
    #[error("the script answered with something else: {0}")]
    Malformed(String),
}

impl ExchangeError {
    /// The peer closed the connection before it answered.
    pub(super) fn closed() -> Self {
        ExchangeError::Io(io::Error::new(io::ErrorKind::UnexpectedEof, "the script closed the connection"))
    }
}
