//! Lets other threads borrow the [`Machine`], which is the core with everything that acts on it, while the core's
//! thread waits.
//!
//! Waking the core's thread and waiting for its answer takes longer than reading memory. So another thread performs a
//! quick read itself, if the core's thread sleeps until the next frame or the next [job](super::Job), and every job
//! that was sent is done. A core's thread that also serves a client in shared memory (`channel`) does not
//! lend the machine.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use super::machine::Machine;

/// The place where the core's thread leaves the machine while it waits, for other threads to borrow.
#[derive(Default)]
pub(super) struct LentMachine {
    machine: Mutex<Option<Box<Machine>>>,
    /// The number of jobs that were sent to the core's thread and are not done yet. While there is one, the machine
    /// cannot be borrowed. So a read that follows a write sees the written value.
    jobs: AtomicUsize,
}

impl LentMachine {
    /// Borrows the machine between two frames. Returns `None` if the core's thread or another thread uses the machine,
    /// or if a job is not done yet.
    pub fn borrow(&self) -> Option<MappedMutexGuard<'_, Machine>> {
        let machine = MutexGuard::try_map(self.machine.try_lock()?, |machine| machine.as_deref_mut()).ok()?;
        // SYNC POINT: pairs with `end_job`, so that this thread sees the effects of the jobs that are done.
        if self.jobs.load(Ordering::Acquire) > 0 { None } else { Some(machine) }
    }

    /// Called before a job is sent.
    pub fn begin_job(&self) {
        self.jobs.fetch_add(1, Ordering::Relaxed);
    }

    /// Called after a job is done, or if it could not be sent.
    pub fn end_job(&self) {
        // SYNC POINT: pairs with `borrow`.
        self.jobs.fetch_sub(1, Ordering::Release);
    }
}

/// The handle through which the core's thread uses the machine. It can lend the machine to other threads.
pub(super) struct Lease {
    /// `None` while the machine is lent.
    own: Option<Box<Machine>>,
    lent: Arc<LentMachine>,
}

impl Lease {
    pub fn new(machine: Machine, lent: Arc<LentMachine>) -> Lease {
        Lease { own: Some(Box::new(machine)), lent }
    }

    /// Lends the machine while `wait` runs. `wait` must not use the machine.
    pub fn lend_during<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        *self.lent.machine.lock() = self.own.take();
        let result = wait();
        self.own = self.lent.machine.lock().take();
        result
    }

    /// Called after a job is done.
    pub fn end_job(&self) {
        self.lent.end_job();
    }
}

/// The panic message if the machine is missing. This cannot happen: only `lend_during` takes the machine, and it puts
/// the machine back before it returns.
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
