//! Bytes as hex pairs, written piece by piece: the text of a large result is three times as long and never there at once.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use framewire_protocol::marker::hex_pairs;
use hyper::body::{Frame, SizeHint};

use crate::operations::budget::BudgetShare;

/// Bytes that are written at once; a result up to this size is written as a whole.
const PIECE: usize = 16 * 1024;

/// A reply of `bytes` as hex pairs.
pub(super) fn body(bytes: Vec<u8>, share: BudgetShare) -> Body {
    match bytes.len() {
        0..=PIECE => Body::from(hex_pairs(&bytes)),
        _ => Body::new(Hex { bytes, written: 0, _share: share }),
    }
}

struct Hex {
    bytes: Vec<u8>,
    /// How many of them.
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
