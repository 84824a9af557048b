use std::sync::Arc;
use std::time::Instant;

use framewire_protocol::{Batch, Outcome};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

use crate::submission::{Respond, Submission};
use crate::{Config, LinkError, Listen, Phase, Status, supervisor};

/// A lasting connection to the script in one emulator.
///
/// Dropping it stops it: what is open fails with [`LinkError::Stopped`].
pub struct Link {
    inbox: mpsc::Sender<Submission>,
    status: Arc<Mutex<Status>>,
    /// `true` once the link should finish what is open, close and end.
    stop: watch::Sender<bool>,
}

impl Link {
    /// Starts connecting, on `runtime`.
    pub fn start(config: Config, runtime: &Handle) -> Link {
        Link::start_and_listen(config, runtime, Box::new(|_, _| {}))
    }

    /// Starts connecting, on `runtime`; `listen` is told what happens.
    pub fn start_and_listen(config: Config, runtime: &Handle, listen: Listen) -> Link {
        let (inbox, submissions) = mpsc::channel(config.capacity);
        let (stop, stopped) = watch::channel(false);
        let status = Arc::new(Mutex::new(Status::default()));
        runtime.spawn(supervisor::run(config, submissions, status.clone(), stopped, listen));
        Link { inbox, status, stop }
    }

    /// Hands over a batch; `respond` is called by `deadline` at the latest, give or take 20 ms.
    ///
    /// A batch that changes something is done once or not at all, however often the connection breaks; where that cannot
    /// be known the error says so. One that no request can carry is refused: its outcome is the refusal.
    pub fn submit(&self, batch: Batch, deadline: Instant, respond: Respond) {
        if let Err(refusal) = batch.check() {
            return respond(Ok(Outcome { frame: 0, results: vec![Err(refusal)] }));
        }
        let submission = Submission { batch, deadline, respond };
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

    /// How the link is.
    pub fn status(&self) -> Status {
        self.status.lock().clone()
    }

    /// Where it stands.
    pub fn phase(&self) -> Phase {
        self.status.lock().phase
    }

    /// Takes no more batches, waits until those that are open are answered or have run out of time, and closes the
    /// connection in good order.
    pub async fn close(&self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
    }
}
