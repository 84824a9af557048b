//! Converts Rust's errors to the exceptions of the Python module `framewire.errors`.

use framewire_protocol::{OpError, Status};
use pyo3::exceptions::PyOSError;
use pyo3::{PyErr, import_exception};

import_exception!(framewire.errors, InvalidRequest);
import_exception!(framewire.errors, GameFileError);
import_exception!(framewire.errors, RomError);
import_exception!(framewire.errors, InvalidData);
import_exception!(framewire.errors, NotFound);
import_exception!(framewire.errors, Conflict);
import_exception!(framewire.errors, TooLarge);

pub(crate) fn argument(message: impl Into<String>) -> PyErr {
    InvalidRequest::new_err(message.into())
}

/// The exception for an error of libmgba.
pub(crate) fn of_core(error: framewire_libmgba::Error) -> PyErr {
    use framewire_libmgba::Error as E;
    let message = with_sources(&error);
    match error {
        E::Io { .. } => PyOSError::new_err(message),
        E::StateFormat
        | E::StateOtherGame
        | E::StateOtherPlatform { .. }
        | E::StateTooLarge { .. }
        | E::StateSave
        | E::Cheat { .. } => InvalidData::new_err(message),
        E::RangeTooLong { .. } | E::UnknownDomain { .. } => InvalidRequest::new_err(message),
        _ => RomError::new_err(message),
    }
}

/// The exception for an error of an operation: `InvalidData` if no other one fits.
pub(crate) fn of_operation(error: OpError) -> PyErr {
    let message = error.message;
    match error.status {
        Status::BadArgument => InvalidRequest::new_err(message),
        Status::NotFound => NotFound::new_err(message),
        Status::Busy => Conflict::new_err(message),
        Status::TooLarge => TooLarge::new_err(message),
        _ => InvalidData::new_err(message),
    }
}

/// The exception for an error of an environment.
pub(crate) fn of_env(error: framewire_vecenv::Error) -> PyErr {
    use framewire_vecenv::Error as E;
    let message = error.to_string();
    match error {
        E::Core(error) => of_core(error),
        E::WrongRom(_) => RomError::new_err(message),
        E::Read { .. } => PyOSError::new_err(message),
        E::State(_) => InvalidData::new_err(message),
        E::Scenario { .. } => GameFileError::new_err(message),
        E::Argument(_) | E::Threads(_) => InvalidRequest::new_err(message),
    }
}

/// An error's message with those of its causes.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
