//! Replies to requests that failed: a status, and a message that says what to do next.

use axum::http::header::{ALLOW, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use framewire_emulator::EmulatorError;
use framewire_protocol::{OpError, Status};

/// The message to clients whose requests or streams are still open when the server stops.
pub const STOPPING: &str = "the server is stopping";

/// The reply to a request that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    message: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into(), headers: Vec::new() }
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Failure {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn into_parts(self) -> (StatusCode, String, Vec<(HeaderName, HeaderValue)>) {
        (self.status, self.message, self.headers)
    }

    /// The request is not valid. `message` names the parameter and says what it accepts.
    pub(crate) fn bad_request(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    pub(crate) fn no_such_path(path: &str) -> Failure {
        let message =
            format!("there is no {path}; GET /docs shows every path, and GET /openapi.json describes them");
        Failure::new(StatusCode::NOT_FOUND, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::FORBIDDEN, message)
    }

    /// The path exists, but accepts only the methods in `allow`.
    pub(crate) fn wrong_method(path: &str, allow: &'static str) -> Failure {
        Failure::new(StatusCode::METHOD_NOT_ALLOWED, format!("{path} takes {allow}"))
            .with_header(ALLOW, HeaderValue::from_static(allow))
    }

    /// The server has no capacity for the request now. `Retry-After` says that the client can try again in a second.
    pub(crate) fn busy(message: String) -> Failure {
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, message)
            .with_header(RETRY_AFTER, HeaderValue::from_static("1"))
    }
}

impl From<OpError> for Failure {
    fn from(error: OpError) -> Failure {
        if error.is_key_reused() {
            return Failure::new(StatusCode::UNPROCESSABLE_ENTITY, error.message);
        }
        if error.is_outcome_dropped() {
            return Failure::new(StatusCode::GONE, error.message);
        }
        let status = match error.status {
            Status::BadArgument => StatusCode::BAD_REQUEST,
            Status::Unsupported => StatusCode::NOT_IMPLEMENTED,
            Status::NoGame => {
                let message = format!("{}: no ROM is loaded; open a game in mGBA", error.message);
                return Failure::new(StatusCode::GATEWAY_TIMEOUT, message);
            }
            Status::Failed | Status::Lost | Status::NotDone => StatusCode::BAD_GATEWAY,
            Status::NotFound => StatusCode::NOT_FOUND,
            Status::Busy => return Failure::busy(error.message),
            Status::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        };
        Failure::new(status, error.message)
    }
}

impl From<EmulatorError> for Failure {
    fn from(error: EmulatorError) -> Failure {
        let status = match error {
            EmulatorError::NotConnected(_) | EmulatorError::Lost(_) => StatusCode::BAD_GATEWAY,
            EmulatorError::Deadline(_) => StatusCode::GATEWAY_TIMEOUT,
            EmulatorError::Busy(_) => return Failure::busy(error.to_string()),
            EmulatorError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
            EmulatorError::Forbidden(_) => StatusCode::FORBIDDEN,
            EmulatorError::Refused(refusal) => return refusal.into(),
        };
        Failure::new(status, error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.message).into_response();
        response.headers_mut().extend(self.headers);
        response
    }
}
