//! Reads request bodies within the limits.

use std::error::Error;
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use super::incoming::OutOfMemory;
use crate::failure::{Failure, STOPPING};
use crate::limits::Limits;
use crate::stopping::Stopping;

/// Reads the bodies of requests.
pub(crate) struct BodyReader {
    /// Most bytes of a body, where a route has no limit of its own.
    pub(crate) limit: usize,
    /// Time for a body to arrive.
    patience: Duration,
    stopping: Stopping,
}

impl BodyReader {
    /// Reads bodies within these limits.
    pub(crate) fn new(limits: &Limits, stopping: Stopping) -> BodyReader {
        BodyReader { limit: limits.max_body, patience: limits.body, stopping }
    }

    /// Reads a body. If it has not arrived when the server stops, it is not waited for.
    pub(crate) async fn read(&self, body: Body) -> Result<Bytes, Failure> {
        self.read_within(body, self.limit).await
    }

    /// Reads a body of at most `limit` bytes.
    pub(crate) async fn read_within(&self, body: Body, limit: usize) -> Result<Bytes, Failure> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let too_large = || {
            Failure::too_large(format!("the body is larger than the {limit} bytes that are accepted here"))
        };
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large());
        }
        let read = tokio::select! {
            biased;
            read = timeout(self.patience, collect(Limited::new(body, limit))) => read,
            () = self.stopping.wait() => return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, STOPPING)),
        };
        match read {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(error)) if is_out_of_memory(&*error) => Err(Failure::busy(OutOfMemory.to_string())),
            Ok(Err(error)) => Err(Failure::bad_request(format!("the body cannot be read: {error}"))),
            Err(_) => {
                let message = format!("the body did not arrive within {} s", self.patience.as_secs());
                Err(Failure::new(StatusCode::REQUEST_TIMEOUT, message))
            }
        }
    }
}

/// Reads all of a body. A body that comes in a single piece is not copied; of others only one copy is held.
async fn collect(mut body: Limited<Body>) -> Result<Bytes, BoxError> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if whole.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        if whole.is_empty() {
            let rest = usize::try_from(body.size_hint().lower()).unwrap_or(0);
            whole.reserve(data.len() + rest);
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// Whether a body ended early because there was no memory for it.
fn is_out_of_memory(error: &(dyn Error + 'static)) -> bool {
    let reported = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    reported.is_some_and(|inner| inner.is::<OutOfMemory>()) || error.source().is_some_and(is_out_of_memory)
}
