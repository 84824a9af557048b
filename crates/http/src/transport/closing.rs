//! Ends connections in a way that lets the client get the last reply. Also has the replies to requests that reach no
//! route.

use std::time::Duration;

use axum::http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};
use tracing::info;

use super::Stopping;
use super::connection::Transport;
use super::tls::ClientStream;
use crate::failure::STOPPING;
use crate::limits::Limits;
use crate::problem::{MEDIA_TYPE, Problem};

/// How many bytes from a refused client the server still reads and discards.
const LINGER_BYTES: usize = 64 * 1024 * 1024;
/// How long the server may take to send the last reply, and how long it then still reads from the client.
const LINGER: Duration = Duration::from_secs(5);
/// How long the server continues to read after it begins to stop.
const LAST_LINGER: Duration = Duration::from_millis(100);

/// Sends a reply without hyper, and gives it time to arrive. If `under_v1` is true, the body is a problem (RFC 9457).
pub(crate) async fn last_reply(
    stream: &mut ClientStream,
    refusal: Refusal,
    under_v1: bool,
    transport: &Transport,
) {
    let status = refusal.status;
    let again = if refusal.again { "retry-after: 1\r\n" } else { "" };
    let message = refusal.text(&transport.limits);
    if transport.log_requests {
        info!(target: "framewire::http", status = status.as_u16(), "turned away: {message}");
    }
    let (kind, message) = if under_v1 {
        (MEDIA_TYPE, Problem::new(status, message).to_json())
    } else {
        ("text/plain; charset=utf-8", message)
    };
    let reply = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n{again}\
         x-content-type-options: nosniff\r\nconnection: close\r\n\r\n{message}",
        message.len()
    );
    let sent = async {
        stream.write_all(reply.as_bytes()).await?;
        stream.shutdown().await
    };
    if let Ok(Ok(())) = timeout(LINGER, sent).await {
        linger(stream, &transport.stopping).await;
    }
}

/// Reads and discards what a client still sends. Closing a connection with unread bytes would reset it, and the client
/// might lose the reply that is already in its own buffer.
pub(crate) async fn linger(stream: &mut ClientStream, stopping: &Stopping) {
    let drain = async {
        let mut buffer = vec![0; 64 * 1024];
        let mut left = LINGER_BYTES;
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            left = left.saturating_sub(count);
            if left == 0 {
                return;
            }
        }
    };
    let end = async {
        stopping.wait().await;
        sleep(LAST_LINGER).await;
    };
    tokio::select! {
        _ = timeout(LINGER, drain) => {}
        () = end => {}
    }
}

/// The body of the reply to plain HTTP, from a server that has a certificate.
pub const HTTPS_ONLY: &str = "this port speaks HTTPS only: write https:// in place of http://";

/// A reply to a request that never reached a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    status: StatusCode,
    message: &'static str,
    /// Whether the client is asked to try again in a second.
    again: bool,
}

impl Refusal {
    pub(crate) const LONG_LINE: Refusal = Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "the URL is too long: it and the headers may have 65534 bytes together; send a longer message in the body of \
         POST /mgbaendpoint",
    );
    /// For a URL under `/v1` that is too long.
    pub(crate) const LONG_TARGET: Refusal = Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "the URL is too long: it and the headers may have 65534 bytes together; send a longer request in the body of \
         POST /v1/batch",
    );
    pub(crate) const LONG_HEADERS: Refusal = Refusal::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "the headers are too long: they and the URL may have 65534 bytes together",
    );
    pub(crate) const SLOW_HEAD: Refusal =
        Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time");
    /// For a request whose head had not arrived completely when the server began to stop.
    pub(crate) const STOPPING: Refusal = Refusal::new(StatusCode::REQUEST_TIMEOUT, STOPPING);
    /// For a client that uses HTTP on a server that expects HTTPS.
    pub(crate) const HTTPS_ONLY: Refusal = Refusal::new(StatusCode::BAD_REQUEST, HTTPS_ONLY);
    /// For a URL with a character that hyper refuses without a message.
    pub(crate) const NOT_ENCODED: Refusal = Refusal::new(
        StatusCode::BAD_REQUEST,
        "the URL contains a character that must be encoded: write %3C for <, %3E for >, %22 for \", and %60 for `",
    );
    /// For a head that gives `Content-Length` more than once. hyper accepts this if all values are the same.
    pub(crate) const TWO_LENGTHS: Refusal =
        Refusal::new(StatusCode::BAD_REQUEST, "a request may have at most one Content-Length header");
    /// For a head with `Content-Length` and `Transfer-Encoding` (RFC 9112, 6.1). hyper ignores the length.
    pub(crate) const LENGTH_AND_CODING: Refusal = Refusal::new(
        StatusCode::BAD_REQUEST,
        "the request has Content-Length and Transfer-Encoding; send one of them",
    );
    /// For a `Content-Length` or a chunk size that is larger, or has more digits, than any body needs. hyper itself
    /// answers 400 or 431 without a message, or accepts a length with many leading zeros.
    pub(crate) const IMPOSSIBLE_LENGTH: Refusal = Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "Content-Length, or the size of a chunk, is larger or has more digits than any body needs",
    );
    /// For a request that arrives while other clients' requests fill the memory.
    pub(crate) const OUT_OF_MEMORY: Refusal = Refusal::busy(
        "other large requests are arriving and leave no memory for this one; send it again in a second",
    );
    pub(crate) const CLOCK: Refusal = Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the clock of the server's machine shows a date before 1970; set it and try again",
    );
    pub(crate) const TOO_MANY: Refusal =
        Refusal::busy("too many connections are open; use one for many requests (keep-alive) and try again");

    const fn new(status: StatusCode, message: &'static str) -> Refusal {
        Refusal { status, message, again: false }
    }

    const fn busy(message: &'static str) -> Refusal {
        Refusal { status: StatusCode::SERVICE_UNAVAILABLE, message, again: true }
    }

    /// The message for the client.
    fn text(self, limits: &Limits) -> String {
        let message = self.message;
        if self == Refusal::IMPOSSIBLE_LENGTH {
            return format!("{message}; bodies of up to {} bytes are accepted", limits.max_body);
        }
        message.to_owned()
    }
}
