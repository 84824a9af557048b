use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_emulator::EmulatorError;
use framewire_protocol::{Batch, Op, Outcome, Value};
use tokio::sync::watch;

use crate::access::{Access, Caller, Gate};
use crate::budget::Budget;
use crate::emulators::{Emulators, Served};
use crate::idempotency::KeyedReplies;
use crate::incoming::Incoming;
use crate::kept::Kept;
use crate::meter::Meter;
use crate::request_id::Ids;
use crate::streams::Streams;
use crate::tls::Tls;
use crate::v1::live::Live;
use crate::v1::media::seats::Seats;
use crate::v1::media::studio::Studios;

/// What all requests share.
#[derive(Clone)]
pub struct App {
    /// The emulators; mGBA-http's routes act on the first.
    pub emulators: Emulators,
    /// How long a request may wait for the emulator before it is answered with 504.
    pub deadline: Duration,
    /// What a client may ask of the server.
    pub limits: Limits,
    /// Who may ask for what.
    pub access: Access,
    /// The certificate with which HTTPS is spoken; without one it is HTTP.
    pub tls: Option<Tls>,
    /// The folder for snapshots and recordings, which need not exist yet; without one, none are kept.
    pub data: Option<PathBuf>,
    /// Has the allocator return free memory to the system. It is called on a thread of its own after large requests.
    pub release_memory: Option<fn()>,
    /// Whether each request leaves a line in the log: an event of level INFO and target `framewire::http`.
    pub log_requests: bool,
}

/// Bounds on what a client may take.
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
    /// The same for callers that may only look and clients that have shown no token where one is needed.
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
    /// When the server is told to stop, requests that were sent before may still be on their way, several to a
    /// connection: for this long all is as before. Then, for as long again, replies say that their connection ends.
    /// Who stays silent through that is not in the middle of anything.
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

impl App {
    /// An app with the default limits and a log of requests.
    pub fn new(emulators: Emulators, deadline: Duration) -> App {
        App {
            emulators,
            deadline,
            limits: Limits::default(),
            access: Access::default(),
            tls: None,
            data: None,
            release_memory: None,
            log_requests: true,
        }
    }
}

/// What routes work with.
pub(crate) struct Site {
    pub(crate) app: App,
    /// The memory that what arrives may take.
    pub(crate) incoming: Incoming,
    /// The memory that large replies may take.
    pub(crate) replies: Budget,
    /// Snapshots, recordings, searches and replays.
    pub(crate) kept: Kept,
    /// The requests that came with an `Idempotency-Key`.
    pub(crate) keyed: Arc<KeyedReplies>,
    /// What is counted.
    pub(crate) meter: Meter,
    /// What requests are called that have no name.
    pub(crate) ids: Ids,
    /// Who was let in, and what they may do.
    pub(crate) gate: Gate,
    /// What stays open.
    pub(crate) streams: Streams,
    /// What is watched.
    pub(crate) live: Live,
    /// Room for those who look and listen.
    pub(crate) seats: Seats,
    /// The pictures of the emulators that somebody looks at.
    pub(crate) studios: Arc<Studios>,
    /// Turns true when the server stops: streams without an end of their own end then.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Site {
    /// A site that is served at `port`.
    pub(crate) fn new(app: App, port: u16, stopping: watch::Receiver<bool>) -> Site {
        Site {
            incoming: Incoming::new(&app.limits, app.release_memory),
            replies: Budget::new(app.limits.max_replies),
            gate: Gate::new(app.access.clone(), port),
            kept: Kept::new(app.data.as_deref()),
            keyed: Arc::new(KeyedReplies::new(&app.limits)),
            meter: Meter::new(),
            ids: Ids::new(),
            streams: Streams::new(&app.limits),
            live: Live::new(),
            seats: Seats::new(app.limits.max_viewers),
            studios: Arc::default(),
            app,
            stopping,
        }
    }

    /// Does one operation for `caller` on the first emulator within the deadline. With a key it is done once, however
    /// often it is asked for. Addresses are taken as mGBA takes them.
    pub(crate) async fn call(
        &self,
        caller: &Caller,
        op: Op,
        key: Option<String>,
    ) -> Result<Value, EmulatorError> {
        let served = self.app.emulators.first().for_caller(self.gate.permit(caller));
        let batch = Batch { key, unchecked: true, ..op.into() };
        Ok(self.perform(&served, batch).await?.single()?)
    }

    /// Does a batch within the deadline.
    pub(crate) async fn perform(&self, served: &Served, batch: Batch) -> Result<Outcome, EmulatorError> {
        self.perform_until(served, batch, Instant::now() + self.app.deadline).await
    }

    /// Does a batch that may take longer than others.
    pub(crate) async fn perform_until(
        &self,
        served: &Served,
        batch: Batch,
        deadline: Instant,
    ) -> Result<Outcome, EmulatorError> {
        batch.check()?;
        let _waiting = served.waiting.begin();
        let outcome = served.submit(batch, deadline).await?;
        match &outcome.results[..] {
            [Err(error)] if error.is_about_key() => Err(error.clone().into()),
            _ => Ok(outcome),
        }
    }

    /// Ends when the server stops.
    pub(crate) async fn stopped(&self) {
        // An error says that the server is gone altogether.
        let _ = self.stopping.clone().wait_for(|stopping| *stopping).await;
    }
}
