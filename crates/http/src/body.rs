//! Reads request bodies within the limits.

use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

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
        read = timeout(patience, Limited::new(body, limit).collect()) => read,
        () = site.stopped() => return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, STOPPING)),
    };
    match read {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Failure::bad_request(format!("the body cannot be read: {error}"))),
        Err(_) => {
            let message = format!("the body did not arrive within {} s", patience.as_secs());
            Err(Failure::new(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}
