//! The id of a request in logs. The sender can choose it; otherwise this server makes one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use framewire_protocol::MAX_TRACE;

/// The header with a request's id, in requests and in replies.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header that says which trace a request is part of.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

#[derive(Debug, Clone)]
pub(crate) struct RequestId {
    value: HeaderValue,
    /// Whether its sender chose it.
    given: bool,
}

/// Gives ids to requests that come without one.
#[derive(Debug)]
pub(crate) struct Ids {
    /// The first id, which is different in each run of the server.
    first: u64,
    count: AtomicU64,
}

impl Ids {
    pub(crate) fn new() -> Ids {
        use std::hash::{BuildHasher, RandomState};
        Ids { first: RandomState::new().hash_one(0), count: AtomicU64::new(0) }
    }

    /// The id of a request: the one in `X-Request-Id`, or the id of its trace (W3C Trace Context), or a new one.
    pub(crate) fn of(&self, headers: &HeaderMap) -> RequestId {
        if let Some(id) = headers.get(X_REQUEST_ID).filter(|id| is_sound(id.as_bytes())) {
            return RequestId { value: id.clone(), given: true };
        }
        let trace = headers.get(TRACEPARENT).and_then(|parent| trace_of(parent.as_bytes()));
        if let Some(value) = trace.and_then(|trace| HeaderValue::from_bytes(trace).ok()) {
            return RequestId { value, given: true };
        }
        let number = self.first.wrapping_add(self.count.fetch_add(1, Relaxed));
        let digits: [u8; 16] =
            std::array::from_fn(|place| b"0123456789abcdef"[(number >> (60 - 4 * place)) as usize & 15]);
        // Hex digits are always allowed in a header.
        let value = HeaderValue::from_bytes(&digits).unwrap_or(HeaderValue::from_static("0"));
        RequestId { value, given: false }
    }
}

impl RequestId {
    pub(crate) fn as_str(&self) -> &str {
        self.value.to_str().unwrap_or_default()
    }

    /// The id for the emulator's own log, if the sender of the request chose it. If `all` is true, also an id that the
    /// server made.
    pub(crate) fn to_pass_on(&self, all: bool) -> Option<Arc<str>> {
        if self.given || all { Some(self.as_str().into()) } else { None }
    }

    pub(crate) fn into_header(self) -> HeaderValue {
        self.value
    }
}

/// Whether an id can be written to a line of a log without ambiguity.
fn is_sound(id: &[u8]) -> bool {
    (1..=MAX_TRACE).contains(&id.len()) && id.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'"')
}

/// The trace's id in `00-TRACE-PARENT-FLAGS`.
fn trace_of(parent: &[u8]) -> Option<&[u8]> {
    let mut parts = parent.split(|byte| *byte == b'-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let hex = |part: &[u8]| part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let sound = version.len() == 2 && hex(version) && version != b"ff" && trace.len() == 32 && hex(trace);
    if sound && trace.iter().any(|byte| *byte != b'0') { Some(trace) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(lines: &[(&'static str, &str)]) -> RequestId {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.insert(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        Ids::new().of(&headers)
    }

    #[test]
    fn a_senders_id_is_kept() {
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(id(&[("x-request-id", "a-1"), ("traceparent", trace)]).as_str(), "a-1");
        assert_eq!(id(&[("traceparent", trace)]).as_str(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(id(&[("x-request-id", "a-1")]).to_pass_on(false).as_deref(), Some("a-1"));
    }

    #[test]
    fn an_invalid_or_missing_id_is_replaced() {
        let long = "x".repeat(MAX_TRACE + 1);
        for wrong in ["", "two words", "a\tb", "\u{e9}", "\"", &long] {
            let id = id(&[("x-request-id", wrong)]);
            assert!(id.as_str().len() == 16 && id.to_pass_on(false).is_none(), "{wrong:?}: {id:?}");
        }
        for wrong in
            ["", "00", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "zz-1-2-3", "00-4BF9-0-0"]
        {
            assert_eq!(id(&[("traceparent", wrong)]).as_str().len(), 16, "{wrong}");
        }
        let ids = Ids::new();
        assert_ne!(ids.of(&HeaderMap::new()).as_str(), ids.of(&HeaderMap::new()).as_str());
        assert!(ids.of(&HeaderMap::new()).to_pass_on(true).is_some());
    }
}
