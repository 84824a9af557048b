//! The server's limits on what clients may use.

use std::time::Duration;

/// The path of the only route that accepts a body larger than [`Limits::max_body`].
pub(crate) const ROM_PATH: &str = "/v1/rom";
/// The size of the largest body for this route, in bytes: the size of the Game Boy Advance's address space for a ROM.
pub(crate) const LARGEST_ROM: usize = 32 << 20;

/// Limits on what clients may use. A request that exceeds a limit gets a 503, unless the field says otherwise.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest request body in bytes, for routes without a limit of their own. A larger one gets a 413. It is also the
    /// largest message that a JSON-RPC WebSocket accepts; a larger one closes the WebSocket.
    pub max_body: usize,
    /// Largest message for `POST /mgbaendpoint` in bytes. A larger one gets a 413. A message in a URL is limited only
    /// by [`Limits::MAX_HEAD`].
    pub max_message: usize,
    /// How many bytes of large results the server holds at once, for all clients together.
    pub max_replies: usize,
    /// How many bytes of request heads, bodies and WebSocket messages the server holds at once for callers with full
    /// rights, including bytes of requests and messages that are still arriving. The first 16 KiB of each request and
    /// each message do not count.
    pub max_incoming: usize,
    /// How many of these bytes one address may use (for IPv6: one /64 network).
    pub max_incoming_per_address: usize,
    /// The same as `max_incoming`, for read-only callers and for clients that have not sent a required token. Their
    /// bytes are counted separately.
    pub max_incoming_limited: usize,
    /// How many of these bytes one address may use (for IPv6: one /64 network).
    pub max_incoming_limited_per_address: usize,
    /// How many event streams, WebSockets, subscriptions, long waits and runs can be open at once, for all clients
    /// together.
    pub max_streams: usize,
    /// How many of these one address may open (for IPv6: one /64 network).
    pub max_streams_per_address: usize,
    /// How many watches there can be at once. Each may have any number of readers. Read-only callers can create at most
    /// a quarter of this number with `POST /v1/watches`.
    pub max_watches: usize,
    /// How many connections can be open at once. A connection beyond this number is closed.
    /// Without TLS, it usually gets a 503 first.
    pub max_connections: usize,
    /// How many of these connections one address of another machine may open (for IPv6: one /64 network).
    pub max_connections_per_address: usize,
    /// How many clients can get a stream of pictures or sound, or wait for the picture of a frame, at once.
    pub max_viewers: u32,
    /// How many values of `Idempotency-Key` are remembered at once. Those of read-only callers are counted separately,
    /// with a limit of a 32nd of this number.
    pub max_keys: usize,
    /// How long the key of a request that succeeded and changed something is remembered after the request. The keys of
    /// other requests are forgotten at once.
    pub keyed_life: Duration,
    /// How many bytes of replies are kept for repeated requests; for read-only callers, a 32nd of this number. Beyond
    /// that, the oldest replies are dropped, and repeats of their requests get a 410. A reply that is larger than an
    /// eighth of the limit is not kept.
    pub max_keyed_bytes: usize,
    /// How long a request's head may take to arrive after its first byte. After that, the client gets a 408.
    pub head: Duration,
    /// How long a request's body may take to arrive after the head. After that, the client gets a 408.
    pub body: Duration,
    /// How long a connection may be idle between requests. After that, it is closed. Until its first request is
    /// accepted, a connection from another machine may be idle at most as long as [`head`](Limits::head).
    pub idle: Duration,
    /// How long a client may leave a reply unread. After that, the connection is closed.
    pub stall: Duration,
    /// After a stop signal, requests that clients have already sent may still arrive, several on one connection. So the
    /// server first continues to work normally for this time. Then, for the same time again, each reply has
    /// `Connection: close`. After both periods, the server closes idle connections.
    pub last_call: Duration,
    /// How long unfinished requests may still take after both periods of [`last_call`](Limits::last_call). After that,
    /// recordings and replays get the same time again to end.
    pub grace: Duration,
}

impl Limits {
    /// Largest request line with headers, in bytes. hyper reads no URL longer than this.
    pub const MAX_HEAD: usize = 65_534;
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_body: 8 * 1024 * 1024,
            max_message: 1024 * 1024,
            max_replies: 256 * 1024 * 1024,
            max_incoming: 128 * 1024 * 1024,
            max_incoming_per_address: 64 * 1024 * 1024,
            max_incoming_limited: 32 * 1024 * 1024,
            max_incoming_limited_per_address: 12 * 1024 * 1024,
            max_streams: 512,
            max_streams_per_address: 128,
            max_watches: 256,
            max_connections: 4096,
            max_connections_per_address: 256,
            max_viewers: 32,
            max_keys: 131_072,
            keyed_life: Duration::from_secs(600),
            max_keyed_bytes: 64 * 1024 * 1024,
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            // The connection pools of common clients close idle connections sooner, so the client closes them first.
            idle: Duration::from_secs(130),
            stall: Duration::from_secs(30),
            last_call: Duration::from_millis(60),
            grace: Duration::from_secs(10),
        }
    }
}
