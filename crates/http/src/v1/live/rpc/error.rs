//! Errors of JSON-RPC, with our problem as data.

use axum::http::StatusCode;
use serde::Serialize;

use crate::v1::Problem;

/// Why a request has no result.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Error {
    code: i32,
    message: &'static str,
    data: Box<Problem>,
}

impl Error {
    /// The message is no JSON.
    pub(super) fn parse(error: &serde_json::Error) -> Error {
        let data = Problem::bad_request(format!("the message is no JSON: {error}")).into();
        Error { code: -32700, message: "Parse error", data }
    }

    /// The message is JSON, but no request.
    pub(super) fn invalid_request(problem: Problem) -> Error {
        Error { code: -32600, message: "Invalid Request", data: problem.into() }
    }

    /// No method is called so.
    pub(super) fn no_method(name: &str, accepts: &str) -> Error {
        let data = Problem::parameter("method", &format!("is {name:?}, which is unknown"), accepts).into();
        Error { code: -32601, message: "Method not found", data }
    }
}

/// What is wrong with the parameters has the code for it; every other status has one of its own, from those that the
/// specification leaves to servers.
impl From<Problem> for Error {
    fn from(data: Problem) -> Error {
        let (code, message) = match data.status() {
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => (-32602, "Invalid params"),
            StatusCode::INTERNAL_SERVER_ERROR => (-32603, "Internal error"),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => (-32001, "Not allowed"),
            StatusCode::NOT_FOUND => (-32004, "Not found"),
            StatusCode::CONFLICT => (-32005, "Conflict"),
            StatusCode::PAYLOAD_TOO_LARGE => (-32006, "Too large"),
            StatusCode::NOT_IMPLEMENTED => (-32010, "Unsupported"),
            StatusCode::BAD_GATEWAY => (-32011, "No emulator"),
            StatusCode::SERVICE_UNAVAILABLE => (-32012, "Busy"),
            StatusCode::GATEWAY_TIMEOUT => (-32013, "Stalled"),
            _ => (-32000, "Server error"),
        };
        Error { code, message, data: data.into() }
    }
}
