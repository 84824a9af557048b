//! Writes results as mGBA-http does: in plain text.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use framewire_protocol::marker::hex_pairs;
use framewire_protocol::op::ResultKind;
use framewire_protocol::{Keys, Value};
use hyper::body::{Frame, SizeHint};

use crate::failure::Failure;
use crate::operations::budget::BudgetShare;

/// How the result of a route is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// In a form that depends on its type: no result is an empty body; a Boolean is `true` or `false`; a number is in
    /// decimal; text is unchanged; bytes are lower-case hex pairs joined by commas; names are joined by commas.
    Plain(ResultKind),
    /// A mask of keys as the names of its buttons, joined by commas.
    Buttons,
    /// Bytes, unchanged.
    Raw,
}

impl Reply {
    /// Writes a result as a reply. A large reply keeps `share`, the memory that is reserved for it, until it is sent.
    pub(crate) fn response(self, value: Value, share: BudgetShare) -> Response {
        let body = match (self, value) {
            (_, Value::None) => Body::empty(),
            (_, Value::Bool(value)) => Body::from(if value { "true" } else { "false" }),
            (Reply::Buttons, Value::Int(mask)) => match u16::try_from(mask).ok().and_then(Keys::from_mask) {
                Some(keys) => Body::from(keys.names(",")),
                None => return invalid_mask(mask).into_response(),
            },
            (_, Value::Int(number)) => Body::from(number.to_string()),
            (_, Value::Text(text)) => Body::from(text),
            (Reply::Raw, Value::Bytes(bytes)) => share.body(bytes),
            (_, Value::Bytes(bytes)) if bytes.len() <= PIECE => Body::from(hex_pairs(&bytes)),
            (_, Value::Bytes(bytes)) => Body::new(Hex { bytes, written: 0, _share: share }),
            (_, Value::List(items)) => Body::from(joined(items)),
        };
        let mut response = Response::new(body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        response
    }
}

fn joined(items: Vec<Value>) -> String {
    let names = items.into_iter().filter_map(|item| String::try_from(item).ok());
    names.collect::<Vec<_>>().join(",")
}

fn invalid_mask(mask: i64) -> Failure {
    Failure::new(
        StatusCode::BAD_GATEWAY,
        format!("the emulator reports {mask:#x} as the mask of held keys, but there are only ten keys"),
    )
}

/// How many bytes are written at a time. A result up to this size is written as a whole.
const PIECE: usize = 16 * 1024;

/// Bytes as hex pairs, written piece by piece: the text is three times as long as the bytes, and is never in memory as
/// a whole.
struct Hex {
    bytes: Vec<u8>,
    written: usize,
    _share: BudgetShare,
}

impl HttpBody for Hex {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let rest = &self.bytes[self.written..];
        if rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = &rest[..rest.len().min(PIECE)];
        let mut text = hex_pairs(piece);
        if piece.len() < rest.len() {
            text.push(',');
        }
        self.written += piece.len();
        Poll::Ready(Some(Ok(Frame::data(text.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.written == self.bytes.len()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes = (self.bytes.len() - self.written) as u64;
        SizeHint::with_exact((3 * bytes).saturating_sub(1))
    }
}
