//! Why an operation was refused or failed.

use crate::wire::{DecodeError, Reader, Wire};

/// The kind of an error. Front ends translate it to a status of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// An argument is out of range, unknown or unreadable; nothing was done.
    BadArgument = 1,
    /// This emulator cannot perform the operation, or not with these arguments.
    Unsupported = 2,
    /// No ROM is loaded.
    NoGame = 3,
    /// The emulator tried and failed.
    Failed = 4,
    /// Not possible now: a queue is full, a limit is reached (such as the number of watches), or something else is
    /// under way (such as a recording). Nothing was done; try again later.
    Busy = 5,
    /// The request or its result is larger than the limits allow.
    TooLarge = 6,
    /// The outcome is lost: the operation was performed before and its reply is no longer kept, or it is not known
    /// whether the operation was performed.
    Lost = 7,
    /// Not done, because a later operation of the same batch is refused; no operation of the batch was done.
    NotDone = 8,
    /// What the operation names does not exist: a file, a state slot, a cheat, or a frame or a line of the history.
    /// Nothing was done.
    NotFound = 9,
}

impl Status {
    /// Whether the operation was refused: nothing was done, so the operation can be sent again.
    pub fn is_refusal(self) -> bool {
        use Status::*;
        matches!(self, BadArgument | Unsupported | NoGame | Busy | NotDone | NotFound)
    }

    const ALL: [Status; 9] = {
        use Status::*;
        [BadArgument, Unsupported, NoGame, Failed, Busy, TooLarge, Lost, NotDone, NotFound]
    };
}

impl Wire for Status {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let value = reader.get::<u8>()?;
        Status::ALL
            .into_iter()
            .find(|status| *status as u8 == value)
            .ok_or(DecodeError::Unknown { what: "status", value })
    }
}

/// Why an operation was refused or failed: the kind, and a message for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OpError {
    /// The kind of the error.
    pub status: Status,
    /// What was wrong and what to do next.
    pub message: String,
}

impl OpError {
    /// An error of kind `status`.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        OpError { status, message: message.into() }
    }

    /// An argument that cannot be used.
    pub fn bad_argument(message: impl Into<String>) -> Self {
        OpError::new(Status::BadArgument, message)
    }

    // The script for a stock mGBA has the same texts as the next three functions.

    /// The key of a batch was already used for another batch.
    pub fn key_reused() -> Self {
        OpError::bad_argument("the key was used for another request; choose a new one")
    }

    /// The batch with this key was performed, and its outcome is no longer kept.
    pub fn outcome_dropped() -> Self {
        OpError::new(Status::Lost, "it was done before, and its reply is not kept any more")
    }

    /// There is no room to remember another key.
    pub fn keys_full() -> Self {
        let message = "the emulator remembers as many keys as it can, each for 10 minutes; send the request again later, or \
                       without a key if it may be done twice";
        OpError::new(Status::Busy, message)
    }

    /// Whether this error is [`OpError::key_reused`].
    pub fn is_key_reused(&self) -> bool {
        *self == OpError::key_reused()
    }

    /// Whether this error is [`OpError::outcome_dropped`].
    pub fn is_outcome_dropped(&self) -> bool {
        *self == OpError::outcome_dropped()
    }

    /// Whether this error refuses a whole batch because of the batch's key.
    pub fn is_about_key(&self) -> bool {
        self.is_key_reused() || self.is_outcome_dropped() || *self == OpError::keys_full()
    }

    /// The emulator tried and failed.
    pub fn failed(message: impl Into<String>) -> Self {
        OpError::new(Status::Failed, message)
    }

    /// The result does not have the type that the operation returns.
    pub fn unexpected_reply() -> Self {
        OpError::failed("the emulator answered with something other than what was asked for")
    }
}
