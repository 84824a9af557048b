use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use framewire_protocol::Outcome;
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep_until};

use crate::EmulatorError;

type Answer = Result<Outcome, EmulatorError>;

/// The future outcome of a batch.
///
/// Dropping this does not withdraw the batch. But if the batch contains the operation `run` and has no idempotency key,
/// the run ends.
///
/// To await a batch with a deadline, a tokio runtime with a timer is needed.
#[derive(Debug)]
pub struct Pending {
    source: Source,
    /// When to stop waiting; `None` if the emulator always responds in time.
    deadline: Option<Instant>,
    /// Fires at the deadline. Created by the first poll that finds no outcome.
    alarm: Option<Pin<Box<Sleep>>>,
    /// Sets the flag from [`given_up`](Self::given_up) when this is dropped.
    given_up: Option<SetOnDrop>,
}

#[derive(Debug)]
enum Source {
    /// The outcome; `None` after it was returned.
    Ready(Option<Answer>),
    Responder(oneshot::Receiver<Answer>),
}

/// Sets a flag when it is dropped.
#[derive(Debug)]
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// The emulator's end of a [`Pending`], with which it sends the outcome. If this is dropped unused, the outcome is
/// [`EmulatorError::Stopped`].
#[derive(Debug)]
pub struct Responder {
    sender: oneshot::Sender<Answer>,
}

impl Pending {
    /// Creates both ends: one to send the outcome, and one to wait for it.
    pub fn new() -> (Responder, Pending) {
        let (sender, receiver) = oneshot::channel();
        (Responder { sender }, Pending::of(Source::Responder(receiver)))
    }

    /// Like [`new`](Self::new), but waiting ends at `deadline` with [`EmulatorError::Deadline`].
    pub fn until(deadline: Instant) -> (Responder, Pending) {
        let (responder, pending) = Pending::new();
        (responder, Pending { deadline: Some(deadline), ..pending })
    }

    /// A flag that is set when this is dropped. Then no caller waits for the outcome any more.
    pub(crate) fn given_up(&mut self) -> Arc<AtomicBool> {
        let flag = Arc::new(AtomicBool::new(false));
        self.given_up = Some(SetOnDrop(flag.clone()));
        flag
    }

    /// A batch whose outcome is already known.
    pub fn ready(answer: Result<Outcome, EmulatorError>) -> Pending {
        Pending::of(Source::Ready(Some(answer)))
    }

    /// A batch that was refused before it started.
    pub fn refused(error: EmulatorError) -> Pending {
        Pending::ready(Err(error))
    }

    fn of(source: Source) -> Pending {
        Pending { source, deadline: None, alarm: None, given_up: None }
    }

    /// Blocks this thread until there is an outcome or the deadline has passed. For callers outside of an async
    /// runtime.
    pub fn wait(mut self) -> Result<Outcome, EmulatorError> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(answer) = self.poll_answer(&mut context) {
                return answer;
            }
            match self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(left) if left.is_zero() => return Err(overdue()),
                Some(left) => thread::park_timeout(left),
            }
        }
    }

    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Answer> {
        match &mut self.source {
            // If this source is polled again after the outcome, it returns `Stopped`. The other kind of source
            // panics in that case.
            Source::Ready(answer) => Poll::Ready(answer.take().unwrap_or(Err(EmulatorError::Stopped))),
            Source::Responder(receiver) => Pin::new(receiver)
                .poll(context)
                .map(|received| received.unwrap_or(Err(EmulatorError::Stopped))),
        }
    }
}

impl Responder {
    /// Whether the caller no longer waits for the outcome.
    pub fn is_abandoned(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends the outcome. If the caller no longer waits, the outcome is dropped.
    pub fn respond(self, outcome: Result<Outcome, EmulatorError>) {
        let _ = self.sender.send(outcome);
    }
}

impl Future for Pending {
    type Output = Result<Outcome, EmulatorError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.poll_answer(context);
        let Some(deadline) = self.deadline else { return answer };
        if answer.is_ready() {
            return answer;
        }
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(deadline.into())));
        alarm.as_mut().poll(context).map(|()| Err(overdue()))
    }
}

fn overdue() -> EmulatorError {
    let text = "the emulator did not answer in time: a script in it, or another request, keeps it busy. A request that \
                was started may still finish; check before you repeat a change";
    EmulatorError::Deadline(text.to_owned())
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    fn is_overdue(answer: &Answer) -> bool {
        matches!(answer, Err(EmulatorError::Deadline(_)))
    }

    #[test]
    fn the_wait_ends_at_the_deadline() {
        let (_responder, pending) = Pending::until(soon());
        assert!(is_overdue(&pending.wait()));
        let (_responder, pending) = Pending::until(soon());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        assert!(is_overdue(&runtime.block_on(pending)));
    }

    #[test]
    fn an_outcome_from_another_thread_ends_the_wait() {
        let outcome = Outcome { frame: 7, results: vec![] };
        let (responder, pending) = Pending::until(Instant::now() + Duration::from_secs(20));
        let given = outcome.clone();
        let thread = thread::spawn(move || responder.respond(Ok(given)));
        assert_eq!(pending.wait(), Ok(outcome));
        thread.join().unwrap();
        let (responder, pending) = Pending::new();
        drop(responder);
        assert_eq!(pending.wait(), Err(EmulatorError::Stopped));
    }
}
