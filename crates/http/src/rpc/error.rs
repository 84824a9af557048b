//! Errors of JSON-RPC, with our problem as data.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::problem::Problem;

/// Why a request has no result.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RpcError {
    code: i32,
    message: &'static str,
    /// A [`Problem`].
    data: Json,
}

impl RpcError {
    /// The message is not JSON.
    pub(crate) fn parse(error: &serde_json::Error) -> RpcError {
        let data = json!(Problem::bad_request(format!("the message is not JSON: {error}")));
        RpcError { code: -32700, message: "Parse error", data }
    }

    /// The message is JSON, but no request.
    pub(crate) fn invalid_request(problem: Problem) -> RpcError {
        RpcError { code: -32600, message: "Invalid Request", data: json!(problem) }
    }

    /// There is no method of this name.
    pub(crate) fn no_method(name: &str, accepts: &str) -> RpcError {
        let data = json!(Problem::parameter("method", &format!("is {name:?}, which is unknown"), accepts));
        RpcError { code: -32601, message: "Method not found", data }
    }

    /// A problem as JSON. What is wrong with the parameters has the code for it; every other status has one of its own, from
    /// those that the specification leaves to servers.
    pub(crate) fn with_status(status: StatusCode, data: Json) -> RpcError {
        let (code, message) = match status {
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => (-32602, "Invalid params"),
            StatusCode::INTERNAL_SERVER_ERROR => (-32603, "Internal error"),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => (-32001, "Not allowed"),
            StatusCode::NOT_FOUND => (-32004, "Not found"),
            StatusCode::CONFLICT => (-32005, "Conflict"),
            StatusCode::PAYLOAD_TOO_LARGE => (-32006, "Too large"),
            StatusCode::GONE => (-32007, "Reply dropped"),
            StatusCode::NOT_IMPLEMENTED => (-32010, "Unsupported"),
            StatusCode::BAD_GATEWAY => (-32011, "No emulator"),
            StatusCode::SERVICE_UNAVAILABLE => (-32012, "Busy"),
            StatusCode::GATEWAY_TIMEOUT => (-32013, "Stalled"),
            _ => (-32000, "Server error"),
        };
        RpcError { code, message, data }
    }

    /// The problem of the only operation of a batch, as that of the operation alone.
    pub(crate) fn of_first_op(mut problem: Json) -> RpcError {
        const PLACE: &str = "ops[0]";
        if let Json::Object(fields) = &mut problem {
            fields.remove("op");
            if fields.get("parameter").is_some_and(|place| place == PLACE) {
                fields.remove("parameter");
            }
            for name in ["parameter", "detail"] {
                if let Some(Json::String(text)) = fields.get_mut(name)
                    && let Some(rest) = text.strip_prefix(PLACE)
                {
                    *text = rest.trim_start_matches(['.', ':', ' ']).to_owned();
                }
            }
        }
        let status = problem["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        RpcError::with_status(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), problem)
    }
}

impl From<Problem> for RpcError {
    fn from(problem: Problem) -> RpcError {
        RpcError::with_status(problem.status(), json!(problem))
    }
}
