use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep_until};

/// A time-out for one exchange after the other.
///
/// Setting a timer for each request would cost more than the request's other bookkeeping. This one's timer stays set
/// for the exchange that first needed it; if it fires while a later one is under way, it is set again for that one.
pub(super) struct Timeout {
    timeout: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl Timeout {
    /// Must be called inside a runtime.
    pub(super) fn new(timeout: Duration) -> Self {
        Timeout { timeout, sleep: Box::pin(sleep_until((Instant::now() + timeout).into())) }
    }

    /// Waits for the future, but at most the time-out from `start` on. Calls `polled` at each step.
    pub(super) async fn run<F: Future>(
        &mut self,
        start: Instant,
        polled: impl Fn(),
        future: F,
    ) -> Option<F::Output> {
        let end = start + self.timeout;
        let mut future = pin!(future);
        poll_fn(|context| {
            polled();
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            while self.sleep.as_mut().poll(context).is_ready() {
                if Instant::now() >= end {
                    return Poll::Ready(None);
                }
                self.sleep.as_mut().reset(end.into());
            }
            Poll::Pending
        })
        .await
    }
}
