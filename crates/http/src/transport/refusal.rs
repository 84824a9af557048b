//! Replies to requests that never reach a route.

use std::borrow::Cow;

use crate::failure::STOPPING;
use crate::limits::Limits;

/// The body of the answer to plain HTTP from a server that has a certificate.
pub const HTTPS_ONLY: &str = "this port speaks HTTPS only: write https:// in place of http://";

/// A reply to a request that never reached a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
    /// Header lines, each with its end.
    pub(crate) headers: &'static str,
    pub(crate) message: &'static str,
}

impl Refusal {
    pub(crate) const LONG_LINE: Refusal = Refusal {
        status: 413,
        reason: "Payload Too Large",
        headers: "",
        message: "the URL is too long: it and the headers may have 65534 bytes together; a longer message goes as the \
            body of POST /mgbaendpoint",
    };

    /// The same under `/v1`.
    pub(crate) const LONG_TARGET: Refusal = Refusal {
        message: "the URL is too long: it and the headers may have 65534 bytes together; what is longer goes as the body \
            of POST /v1/batch",
        ..Refusal::LONG_LINE
    };

    pub(crate) const LONG_HEADERS: Refusal = Refusal {
        status: 431,
        reason: "Request Header Fields Too Large",
        headers: "",
        message: "the headers are too long: they and the URL may have 65534 bytes together",
    };

    pub(crate) const SLOW_HEAD: Refusal = Refusal {
        status: 408,
        reason: "Request Timeout",
        headers: "",
        message: "the request did not arrive in time",
    };

    /// For a request that had not arrived when the server stopped.
    pub(crate) const STOPPING: Refusal =
        Refusal { status: 408, reason: "Request Timeout", headers: "", message: STOPPING };

    /// For a client that speaks HTTP where HTTPS is spoken.
    pub(crate) const HTTPS_ONLY: Refusal =
        Refusal { status: 400, reason: "Bad Request", headers: "", message: HTTPS_ONLY };

    pub(crate) const TWO_LENGTHS: Refusal = Refusal {
        status: 400,
        reason: "Bad Request",
        headers: "",
        message: "a request has one Content-Length header at most",
    };

    pub(crate) const IMPOSSIBLE_LENGTH: Refusal = Refusal {
        status: 413,
        reason: "Payload Too Large",
        headers: "",
        message: "Content-Length, or the size of a chunk, is larger or longer than that of any body",
    };

    /// For what arrives when other clients' requests fill the memory.
    pub(crate) const OUT_OF_MEMORY: Refusal = Refusal {
        status: 503,
        reason: "Service Unavailable",
        headers: "retry-after: 1\r\n",
        message: "other large requests are arriving and leave no memory for this one; send it again in a second",
    };

    pub(crate) const CLOCK: Refusal = Refusal {
        status: 503,
        reason: "Service Unavailable",
        headers: "",
        message: "the clock of the server's machine is before 1970; set it and try again",
    };

    pub(crate) const TOO_MANY: Refusal = Refusal {
        status: 503,
        reason: "Service Unavailable",
        headers: "retry-after: 1\r\n",
        message: "too many connections are open; use one for many requests (keep-alive) and try again",
    };

    /// What to say to the client.
    pub(crate) fn text(self, limits: &Limits) -> Cow<'static, str> {
        let message = self.message;
        if self == Refusal::IMPOSSIBLE_LENGTH {
            return format!("{message}; bodies of up to {} bytes are accepted", limits.max_body).into();
        }
        message.into()
    }
}
