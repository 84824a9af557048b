//! Errors that operations in several modules return.

use std::io::ErrorKind;

use framewire_libmgba::{Core, Error};
use framewire_protocol::{OpError, Status};

/// The error of an operation that failed in libmgba. Its text contains all causes.
pub(super) fn failed(error: Error) -> OpError {
    let missing = match &error {
        Error::Io { action: "read", source, .. } => source.kind() == ErrorKind::NotFound,
        Error::EmptySlot { .. } => true,
        _ => false,
    };
    let status = if missing { Status::NotFound } else { Status::Failed };
    let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
    OpError::new(status, causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}")))
}

/// The error for a register that the console does not have.
pub(super) fn unknown_register(core: &Core, name: &str) -> OpError {
    OpError::bad_argument(format!("there is no register {name:?}; there are {}", core.registers().join(", ")))
}
