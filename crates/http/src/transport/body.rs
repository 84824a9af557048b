//! Reads request bodies within the limits.

use std::error::Error;

use axum::BoxError;
use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use super::incoming::OutOfMemory;
use crate::app::Site;
use crate::failure::{Failure, STOPPING};

/// Reads a body of at most `limit` bytes. One that has not arrived when the server stops is not waited for.
pub(crate) async fn read(body: Body, limit: usize, site: &Site) -> Result<Bytes, Failure> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large =
        || Failure::too_large(format!("the body is larger than the {limit} bytes that are accepted here"));
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let patience = site.app.limits.body;
    let read = tokio::select! {
        biased;
        read = timeout(patience, collect(Limited::new(body, limit))) => read,
        () = site.stopped() => return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, STOPPING)),
    };
    match read {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) if is_out_of_memory(&*error) => Err(Failure::busy(OutOfMemory.to_string())),
        Ok(Err(error)) => Err(Failure::bad_request(format!("the body cannot be read: {error}"))),
        Err(_) => {
            let message = format!("the body did not arrive within {} s", patience.as_secs());
            Err(Failure::new(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

/// All of a body. One that comes in a single piece is not copied, and of no other more than one copy is held.
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

/// Whether a body ended because there was no memory for it.
fn is_out_of_memory(error: &(dyn Error + 'static)) -> bool {
    let reported = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    reported.is_some_and(|inner| inner.is::<OutOfMemory>()) || error.source().is_some_and(is_out_of_memory)
}
