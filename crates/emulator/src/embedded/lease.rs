//! Lets other threads borrow the machine while the core's thread waits.
//!
//! Waking the core's thread and waiting for its answer takes longer than a read. So a thread that wants to read does it
//! itself, if the core's thread waits for the next frame and no job is queued.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use super::machine::Machine;

/// The machine while the core's thread waits, for other threads.
#[derive(Default)]
pub(super) struct LentMachine {
    machine: Mutex<Option<Box<Machine>>>,
    /// Jobs that were sent to the core's thread and are not done. A read that is sent after a write must see what it wrote.
    jobs: AtomicUsize,
}

impl LentMachine {
    /// Borrows the machine between two frames. Returns `None` if the core's thread or another thread has it, or a job waits
    /// for it.
    pub fn borrow(&self) -> Option<MappedMutexGuard<'_, Machine>> {
        let machine = MutexGuard::try_map(self.machine.try_lock()?, |machine| machine.as_deref_mut()).ok()?;
        // SYNC POINT: pairs with `end_job`, so that this thread sees that a job of its own is done.
        if self.jobs.load(Ordering::Acquire) > 0 { None } else { Some(machine) }
    }

    /// Notes that a job is about to be sent.
    pub fn begin_job(&self) {
        self.jobs.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a job is done, or was not sent.
    pub fn end_job(&self) {
        // SYNC POINT: pairs with `borrow`.
        self.jobs.fetch_sub(1, Ordering::Release);
    }
}

/// The machine of the core's thread.
pub(super) struct Lease {
    /// Empty while it is lent.
    own: Option<Box<Machine>>,
    lent: Arc<LentMachine>,
}

impl Lease {
    pub fn new(machine: Machine, lent: Arc<LentMachine>) -> Lease {
        Lease { own: Some(Box::new(machine)), lent }
    }

    /// Lends the machine during `wait`. The thread must not use it there.
    pub fn lend_during<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        *self.lent.machine.lock() = self.own.take();
        let result = wait();
        self.own = self.lent.machine.lock().take();
        result
    }

    /// Notes that a job is done.
    pub fn end_job(&self) {
        self.lent.end_job();
    }
}

/// Only `lend_during` takes the machine away, and it brings it back.
const PRESENT: &str = "the machine is lent only during a wait";

impl Deref for Lease {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        self.own.as_deref().expect(PRESENT)
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Machine {
        self.own.as_deref_mut().expect(PRESENT)
    }
}
