pub(crate) mod request_id;
pub(crate) mod router;
#[cfg(feature = "otlp")]
pub(crate) mod span;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_emulator::EmulatorError;
use framewire_protocol::{Batch, Op, Outcome, Value};
use tokio::sync::watch;

use crate::access::Access;
use crate::access::caller::Caller;
use crate::access::gate::Gate;
use crate::app::request_id::Ids;
use crate::feeds::registry::Live;
use crate::idempotency::memory::KeyedReplies;
use crate::limits::Limits;
use crate::metrics::Meter;
use crate::operations::budget::Budget;
use crate::operations::emulators::{Emulators, Served};
use crate::pictures::encoder::Studios;
use crate::pictures::viewers::Seats;
use crate::storage::Kept;
use crate::transport::incoming::Incoming;
use crate::transport::streams::Streams;
use crate::transport::tls::Tls;

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
