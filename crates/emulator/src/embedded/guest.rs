//! What may live on the core's thread beside the queue of batches.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::machine::Machine;

/// Who says when the next frame is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// The emulator's own pace.
    Ours,
    /// The guest, and it wants one now.
    Frame,
    /// The guest, and it wants none yet.
    Still,
}

/// A guest on the core's thread: it drives the core from there, without the queue that batches wait in.
pub(super) trait Guest: Send {
    /// Does what it has been asked for, for a few milliseconds at most.
    fn serve(&mut self, machine: &mut Machine) -> Clock;

    /// The picture or the game may change from here to `after`.
    fn before(&mut self);

    /// What changed them is done; it was a whole frame if `frame`.
    fn after(&mut self, machine: &mut Machine, frame: bool);

    /// Sleeps until it is asked for something or `stop` holds, at most so long.
    fn wait(&mut self, limit: Duration, stop: &dyn Fn() -> bool);

    /// Looks whether whoever it serves is still there; called now and then.
    fn look(&mut self);
}

/// Gets the core's thread out of its guest's waiting.
#[derive(Clone, Default)]
pub(super) struct Bell(Arc<Mutex<Option<Ring>>>);

type Ring = Box<dyn Fn() + Send>;

impl Bell {
    /// What ringing does from now on.
    pub fn hang(&self, ring: Option<Ring>) {
        *self.0.lock() = ring;
    }

    pub fn ring(&self) {
        if let Some(ring) = &*self.0.lock() {
            ring();
        }
    }
}
