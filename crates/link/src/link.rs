use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use framewire_protocol::{Batch, Outcome};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

use crate::session::{Respond, Submission};
use crate::state::LinkState;
use crate::{Config, LinkError, Listen, Phase, Status, supervisor};

/// A connection to the script in one emulator, which is opened again whenever it breaks.
///
/// Dropping the link stops it like [`close`](Link::close), but does not wait for the end.
pub struct Link {
    inbox: mpsc::Sender<Submission>,
    status: Arc<Mutex<Status>>,
    /// Set to `true` when the link must finish its open batches and end.
    stop: watch::Sender<bool>,
}

impl Link {
    /// Starts connecting, on `runtime`.
    pub fn start(config: Config, runtime: &Handle) -> Link {
        Link::start_and_listen(config, runtime, Box::new(|_, _| {}))
    }

    /// Starts connecting, on `runtime`. `listen` receives the link's notices, such as events of the script.
    pub fn start_and_listen(config: Config, runtime: &Handle, listen: Listen) -> Link {
        let (inbox, submissions) = mpsc::channel(config.capacity);
        let (stop, stopped) = watch::channel(false);
        let status = Arc::new(Mutex::new(Status::default()));
        let state = LinkState::new(config, submissions, status.clone(), stopped, listen);
        runtime.spawn(supervisor::run(state));
        Link { inbox, status, stop }
    }

    /// Submits a batch. `respond` is called as soon as the outcome is known, and no later than 20 ms after `deadline`.
    ///
    /// A batch that changes something is performed once or not at all, even if the connection breaks. If the link
    /// cannot know which of the two happened, the error says so. A batch that does not pass [`Batch::check`] is
    /// refused: its outcome is the refusal.
    pub fn submit(&self, batch: Batch, deadline: Instant, respond: Respond) {
        self.submit_unless(batch, deadline, None, respond);
    }

    /// Like [`submit`](Link::submit). If `given_up` becomes true while the link is connected to Framewire's script, the
    /// batch is withdrawn within 20 ms. If it waits for its operation `run`, the script ends that run, unless the batch
    /// has an idempotency key.
    pub fn submit_unless(
        &self,
        batch: Batch,
        deadline: Instant,
        given_up: Option<Arc<AtomicBool>>,
        respond: Respond,
    ) {
        if let Err(refusal) = batch.check() {
            return respond(Ok(Outcome { frame: 0, results: vec![Err(refusal)] }));
        }
        let submission = Submission { batch, deadline, given_up, respond };
        match self.inbox.try_send(submission) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(refused)) => {
                (refused.respond)(Err(LinkError::Busy(self.inbox.max_capacity())));
            }
            Err(mpsc::error::TrySendError::Closed(refused)) => {
                (refused.respond)(Err(LinkError::Stopped));
            }
        }
    }

    /// The status of the link.
    pub fn status(&self) -> Status {
        self.status.lock().clone()
    }

    /// The phase of the link.
    pub fn phase(&self) -> Phase {
        self.status.lock().phase
    }

    /// Accepts no more batches, waits until the open ones are answered or have missed their deadlines, and closes the
    /// connection. In every phase except [`Phase::Ready`], the open batches fail at once with [`LinkError::Stopped`].
    pub async fn close(&self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
    }
}
