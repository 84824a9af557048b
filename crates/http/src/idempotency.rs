//! The header `Idempotency-Key`: a caller that never heard the answer repeats the request with the same key, and what
//! it asked for is done once (IETF draft-ietf-httpapi-idempotency-key-header).

use axum::http::HeaderMap;
use framewire_protocol::MAX_KEY;

use crate::failure::Failure;

const HEADER: &str = "idempotency-key";

/// The key of a request, if it has one.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let mut keys = headers.get_all(HEADER).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let text = key.to_str().ok().filter(|key| (1..=MAX_KEY).contains(&key.len()));
    match (text, keys.next()) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        _ => Err(Failure::bad_request(format!(
            "header Idempotency-Key: one key of 1 to {MAX_KEY} printable ASCII characters is accepted, such as a UUID"
        ))),
    }
}
