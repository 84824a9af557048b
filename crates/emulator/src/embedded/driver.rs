//! Another source of requests on the core's thread, in addition to the queue of batches.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::machine::Machine;

/// A driver's decision when the next frame runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextFrame {
    /// According to the emulator's own schedule.
    Scheduled,
    /// Now.
    Now,
    /// Not before the driver says so.
    NotYet,
}

/// Drives the core from the core's own thread, without the queue of batches.
pub(super) trait Driver: Send {
    /// Serves its client's requests, for a few milliseconds at most.
    fn serve(&mut self, machine: &mut Machine) -> NextFrame;

    /// Whether its client may look at the picture of the next frame.
    fn needs_picture(&self) -> bool;

    /// Called before the picture or the game may change.
    fn before(&mut self);

    /// Called after they may have changed. `frame` says whether that was a whole frame.
    fn after(&mut self, machine: &mut Machine, frame: bool);

    /// Sleeps until its client has a request or `stop` returns true, at most for `limit`.
    fn wait(&mut self, limit: Duration, stop: &dyn Fn() -> bool);

    /// Checks whether its client is still there. Called regularly.
    fn check(&mut self);
}

/// Ends the sleep of the driver on the core's thread.
#[derive(Clone, Default)]
pub(super) struct ThreadWaker(Arc<Mutex<Option<Wake>>>);

type Wake = Box<dyn Fn() + Send>;

impl ThreadWaker {
    /// Sets what `wake` calls.
    pub fn set(&self, wake: Option<Wake>) {
        *self.0.lock() = wake;
    }

    pub fn wake(&self) {
        if let Some(wake) = &*self.0.lock() {
            wake();
        }
    }
}
