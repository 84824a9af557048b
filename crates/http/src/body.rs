//! Reads request bodies within the limits.

use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use crate::app::Limits;
use crate::failure::Failure;

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read(body: Body, limit: usize, limits: &Limits) -> Result<Bytes, Failure> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large =
        || Failure::too_large(format!("the body is larger than the {limit} bytes that are accepted here"));
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    match timeout(limits.body, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Failure::bad_request(format!("the body cannot be read: {error}"))),
        Err(_) => {
            let message = format!("the body did not arrive within {} s", limits.body.as_secs());
            Err(Failure::new(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}
