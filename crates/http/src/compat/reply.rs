//! Writes results as mGBA-http does: in plain text.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use framewire_protocol::op::ResultKind;
use framewire_protocol::{Keys, Value};

use super::hex;
use crate::failure::Failure;
use crate::operations::budget::BudgetShare;

/// How the result of a route is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// By its type: nothing, `true` or `false`, a number in decimal, text as it is, bytes as lower-case hex pairs joined
    /// by commas, names joined by commas.
    Plain(ResultKind),
    /// A mask of keys as the names of its buttons, joined by commas.
    Buttons,
    /// Bytes as they are.
    Raw,
}

impl Reply {
    /// Writes a result, which keeps its share of the memory until it is sent.
    pub(crate) fn response(self, value: Value, share: BudgetShare) -> Response {
        let body = match (self, value) {
            (_, Value::None) => Body::empty(),
            (_, Value::Bool(value)) => Body::from(if value { "true" } else { "false" }),
            (Reply::Buttons, Value::Int(mask)) => match u16::try_from(mask).ok().and_then(Keys::from_mask) {
                Some(keys) => Body::from(keys.names(",")),
                None => return no_keys(mask).into_response(),
            },
            (_, Value::Int(number)) => Body::from(number.to_string()),
            (_, Value::Text(text)) => Body::from(text),
            (Reply::Raw, Value::Bytes(bytes)) => share.body(bytes),
            (_, Value::Bytes(bytes)) => hex::body(bytes, share),
            (_, Value::List(items)) => Body::from(joined(items)),
        };
        let mut response = Response::new(body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        response
    }
}

fn joined(items: Vec<Value>) -> String {
    let names = items.into_iter().filter_map(|item| match item {
        Value::Text(name) => Some(name),
        _ => None,
    });
    names.collect::<Vec<_>>().join(",")
}

fn no_keys(mask: i64) -> Failure {
    Failure::new(
        StatusCode::BAD_GATEWAY,
        format!("the emulator says that the keys {mask:#x} are held; there are ten"),
    )
}
