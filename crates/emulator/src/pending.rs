use std::pin::Pin;
use std::task::{Context, Poll};

use framewire_protocol::Outcome;
use tokio::sync::oneshot;

use crate::EmulatorError;

/// A batch under way: a future of its outcome. Dropping it forgets the outcome, it does not undo the batch.
#[derive(Debug)]
pub struct Pending {
    receiver: oneshot::Receiver<Result<Outcome, EmulatorError>>,
}

/// The other end of a [`Pending`], held by whoever does the batch. Dropped unused it says
/// [`EmulatorError::Stopped`].
#[derive(Debug)]
pub struct Responder {
    sender: oneshot::Sender<Result<Outcome, EmulatorError>>,
}

impl Pending {
    /// Both ends.
    pub fn new() -> (Responder, Pending) {
        let (sender, receiver) = oneshot::channel();
        (Responder { sender }, Pending { receiver })
    }

    /// A batch that was refused before it began.
    pub fn refused(error: EmulatorError) -> Pending {
        let (responder, pending) = Pending::new();
        responder.respond(Err(error));
        pending
    }

    /// Waits on this thread; for callers outside of an async runtime.
    pub fn wait(self) -> Result<Outcome, EmulatorError> {
        self.receiver.blocking_recv().unwrap_or(Err(EmulatorError::Stopped))
    }
}

impl Responder {
    /// Gives the outcome; nobody may be waiting for it any more.
    pub fn respond(self, outcome: Result<Outcome, EmulatorError>) {
        let _ = self.sender.send(outcome);
    }
}

impl Future for Pending {
    type Output = Result<Outcome, EmulatorError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver)
            .poll(context)
            .map(|received| received.unwrap_or(Err(EmulatorError::Stopped)))
    }
}
