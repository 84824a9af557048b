//! Errors of what is stored, as problems.

use axum::http::StatusCode;
use framewire_recording::{FormatError, RecordError};
use framewire_states::{FolderError, NameError, StateError};

use crate::problem::Problem;

impl From<&FolderError> for Problem {
    fn from(error: &FolderError) -> Problem {
        let status = match error {
            FolderError::Missing { .. } => StatusCode::NOT_FOUND,
            FolderError::Taken { .. } | FolderError::Full { .. } => StatusCode::CONFLICT,
            FolderError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            FolderError::Damaged { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            FolderError::Io { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, error.to_string())
    }
}

impl From<FolderError> for Problem {
    fn from(error: FolderError) -> Problem {
        (&error).into()
    }
}

/// The problem with a file that could not be written; `how` says how one that is there is replaced.
pub(crate) fn unwritten(error: FolderError, how: &str) -> Problem {
    match &error {
        FolderError::Taken { .. } => {
            Problem::new(StatusCode::CONFLICT, format!("{error}, or replace it with {how}"))
        }
        _ => error.into(),
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Problem {
        Problem::in_body("name", &error.to_string())
    }
}

impl From<StateError> for Problem {
    fn from(error: StateError) -> Problem {
        let status = match error {
            StateError::Format(_) => StatusCode::UNPROCESSABLE_ENTITY,
            StateError::OtherConsole { .. } => StatusCode::CONFLICT,
        };
        Problem::new(status, error.to_string())
    }
}

impl From<FormatError> for Problem {
    fn from(error: FormatError) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
    }
}

impl From<RecordError> for Problem {
    fn from(error: RecordError) -> Problem {
        match error {
            RecordError::Emulator(error) => error.into(),
            RecordError::Folder(error) => error.into(),
            RecordError::Unfinished(ref cause) => {
                Problem::new(Problem::from(cause.as_ref()).status(), error.to_string())
            }
            RecordError::Recording(..) => Problem::new(StatusCode::CONFLICT, error.to_string()),
            RecordError::NotRecording(_) => Problem::not_found(error.to_string()),
        }
    }
}
