//! Converts Rust's errors to the exceptions of the Python module `framewire.errors`.

use std::error::Error;
use std::fmt::Write;

use framewire_protocol::{OpError, Status};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The exceptions of the module `framewire.errors` that this crate raises.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// An argument is not accepted.
    Argument,
    /// The game file is not valid.
    GameFile,
    /// The file is not a ROM, or not the expected ROM.
    Rom,
    /// The data is not a state or a recording, or belongs to another game. Also for errors of operations that fit no
    /// other kind.
    State,
    /// The named thing does not exist.
    NotFound,
    /// The call is not possible in the present state, such as during a recording.
    Conflict,
    /// The data is too large.
    TooLarge,
}

/// The exception of this kind with this message.
pub(crate) fn exception(py: Python<'_>, kind: Kind, message: &str) -> PyErr {
    static CLASSES: [PyOnceLock<Py<PyType>>; 7] = [const { PyOnceLock::new() }; 7];
    let name = match kind {
        Kind::Argument => "InvalidRequest",
        Kind::GameFile => "GameFileError",
        Kind::Rom => "RomError",
        Kind::State => "InvalidData",
        Kind::NotFound => "NotFound",
        Kind::Conflict => "Conflict",
        Kind::TooLarge => "TooLarge",
    };
    match CLASSES[kind as usize].import(py, "framewire.errors", name) {
        Ok(class) => PyErr::from_type(class.clone(), message.to_owned()),
        Err(error) => error,
    }
}

pub(crate) fn argument(py: Python<'_>, message: impl AsRef<str>) -> PyErr {
    exception(py, Kind::Argument, message.as_ref())
}

/// The exception for an error of libmgba.
pub(crate) fn of_core(py: Python<'_>, error: &framewire_libmgba::Error) -> PyErr {
    use framewire_libmgba::Error as E;
    match error {
        E::Io { .. } => PyOSError::new_err(with_sources(error)),
        E::StateFormat
        | E::StateOtherGame
        | E::StateOtherPlatform { .. }
        | E::StateTooLarge { .. }
        | E::StateSave => exception(py, Kind::State, &with_sources(error)),
        E::RangeTooLong { .. } | E::UnknownDomain { .. } => argument(py, with_sources(error)),
        _ => exception(py, Kind::Rom, &with_sources(error)),
    }
}

/// The exception for an error of an operation.
pub(crate) fn of_operation(py: Python<'_>, error: &OpError) -> PyErr {
    let kind = match error.status {
        Status::BadArgument => Kind::Argument,
        Status::NotFound => Kind::NotFound,
        Status::Busy => Kind::Conflict,
        Status::TooLarge => Kind::TooLarge,
        _ => Kind::State,
    };
    exception(py, kind, &error.message)
}

/// The exception for an error of an environment.
pub(crate) fn of_env(py: Python<'_>, error: &framewire_vecenv::Error) -> PyErr {
    use framewire_vecenv::Error as E;
    match error {
        E::Core(error) => of_core(py, error),
        E::WrongRom(_) => exception(py, Kind::Rom, &error.to_string()),
        E::Read { .. } => PyOSError::new_err(error.to_string()),
        E::State(_) => exception(py, Kind::State, &error.to_string()),
        E::Scenario { .. } => exception(py, Kind::GameFile, &error.to_string()),
        E::Argument(_) | E::Threads(_) => argument(py, error.to_string()),
    }
}

/// An error's message with those of its causes.
pub(crate) fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        // Writing to a string does not fail.
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}
