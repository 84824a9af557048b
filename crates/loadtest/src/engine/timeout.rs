use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep_until};

/// A time-out for exchanges that are performed one after the other.
///
/// Setting a timer for each exchange would cost more than all of its other bookkeeping. So the timer stays set for an
/// earlier exchange. If it fires during a later exchange that still has time left, it is set again for the end of that
/// exchange's time.
pub(super) struct Timeout {
    timeout: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl Timeout {
    /// Creates a time-out. Must be called inside a runtime.
    pub(super) fn new(timeout: Duration) -> Self {
        Timeout { timeout, sleep: Box::pin(sleep_until((Instant::now() + timeout).into())) }
    }

    /// Waits for the future. Returns `None` if it is not ready when the time-out has passed since `start`. Calls
    /// `polled` each time before it polls the future.
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
