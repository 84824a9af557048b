//! The limits of the server for clients.

use std::time::Duration;

/// The limits for clients.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest request body in bytes; a larger one is answered with 413.
    pub max_body: usize,
    /// Largest message for `POST /mgbaendpoint` in bytes. In a URL, [`Limits::MAX_HEAD`] ends it sooner.
    pub max_message: usize,
    /// Bytes of large results that may be held at once, for all clients together; a request that would need more is
    /// answered with 503.
    pub max_replies: usize,
    /// Bytes of heads, bodies and messages of WebSockets that may be held at once, those under way included; what is
    /// beyond is answered with 503. The first 16 KiB of each are not counted.
    pub max_incoming: usize,
    /// Of these, those of one address (for IPv6: of one /64 network).
    pub max_incoming_per_address: usize,
    /// The same for read-only callers and clients that have not sent a required token.
    pub max_incoming_limited: usize,
    /// Of these, those of one address.
    pub max_incoming_limited_per_address: usize,
    /// Event streams, WebSockets and long waits open at once, for all clients together; a further one is answered with
    /// 503.
    pub max_streams: usize,
    /// Of these, those of one address (for IPv6: of one /64 network).
    pub max_streams_per_address: usize,
    /// Watches at once, each of which may have any number of readers; a further one is answered with 503.
    pub max_watches: usize,
    /// Connections open at once; a further one is answered with 503 and closed.
    pub max_connections: usize,
    /// Of these, those of one address on another machine (for IPv6: of one /64 network).
    pub max_connections_per_address: usize,
    /// Viewers and listeners of pictures and sound at once; a further one is answered with 503.
    pub max_viewers: u32,
    /// Values of `Idempotency-Key` that are remembered at once; a request with a further one is answered with 503.
    pub max_keys: usize,
    /// For how long each is remembered, from the end of its request on.
    pub keyed_life: Duration,
    /// Bytes of the replies that are kept under keys. When they are more, the oldest replies are dropped, and repeats of
    /// their requests are answered with 410.
    pub max_keyed_bytes: usize,
    /// Time for a request's head to arrive, from its first byte on.
    pub head: Duration,
    /// Time for a request's body to arrive, from its head on.
    pub body: Duration,
    /// Time a connection may lie idle between requests.
    pub idle: Duration,
    /// Time a client may leave a reply unread.
    pub stall: Duration,
    /// When the server is about to stop, requests that were sent before may still be on their way, several to a
    /// connection. For this long the server works as before. Then, for as long again, replies say that their connection
    /// ends. A client that is silent through both is not in the middle of anything.
    pub last_call: Duration,
    /// Time that requests under way then have to end.
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
            // Longer than the pools of common clients keep a connection, so that it is they who close it.
            idle: Duration::from_secs(130),
            stall: Duration::from_secs(30),
            last_call: Duration::from_millis(60),
            grace: Duration::from_secs(10),
        }
    }
}
