//! A driver: a second source of requests on the core's thread, in addition to the queue of batches. Channels are
//! drivers.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::machine::Machine;

/// What a driver decides: when the next frame runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextFrame {
    /// When it is due on the emulator's own schedule.
    Scheduled,
    /// Now.
    Now,
    /// Not before the driver's client requests it.
    NotYet,
}

/// Serves requests of a client directly on the core's thread, without the queue of batches.
pub(super) trait Driver: Send {
    /// Serves the client's requests. Starts no further request after a few milliseconds.
    fn serve(&mut self, machine: &mut Machine);

    /// When the next frame runs. Each request that is served can change this.
    fn next_frame(&self) -> NextFrame;

    /// Whether the client might look at the picture of the next frame, so that this frame must be drawn.
    fn needs_picture(&self) -> bool;

    /// Called before a frame, and before a batch that changes something.
    fn before(&mut self);

    /// Called after a frame (`frame` is true), and after a batch that changes something.
    fn after(&mut self, machine: &mut Machine, frame: bool);

    /// Sleeps until the client has a request or `stop` returns true, at most for `limit`.
    fn wait(&mut self, limit: Duration, stop: &dyn Fn() -> bool);

    /// Checks whether the client is still there. Called regularly.
    fn check(&mut self);
}

/// Wakes the core's thread while it sleeps in [`Driver::wait`].
#[derive(Clone, Default)]
pub(super) struct ThreadWaker(Arc<Mutex<Option<Wake>>>);

type Wake = Box<dyn Fn() + Send>;

impl ThreadWaker {
    /// Sets the function that `wake` calls.
    pub fn set(&self, wake: Option<Wake>) {
        *self.0.lock() = wake;
    }

    pub fn wake(&self) {
        if let Some(wake) = &*self.0.lock() {
            wake();
        }
    }
}
