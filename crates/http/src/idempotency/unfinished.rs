//! Work that must not stop halfway.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// A future that goes on by itself when it is dropped before its end.
pub(super) struct Unfinished<F: Future + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future + Send + 'static> Unfinished<F> {
    pub(super) fn new(work: F) -> Unfinished<F> {
        Unfinished(Some(Box::pin(work)))
    }
}

impl<F: Future + Send + 'static> Future for Unfinished<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Taken out, so that work which panics is not continued.
        let Some(mut work) = self.0.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.0 = Some(work);
        }
        polled
    }
}

impl<F: Future + Send + 'static> Drop for Unfinished<F> {
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { drop(work.await) });
        }
    }
}
