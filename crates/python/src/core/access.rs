//! Gives calls access to the core: one thread at a time. A thread releases the interpreter's lock while it waits.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use framewire_emulator::embedded::check_access;
use framewire_protocol::{Access, OpError, Status};
use framewire_vecenv::{Memory, VectorEnv};
use parking_lot::MutexGuard;
use pyo3::prelude::*;

use super::Core;
use crate::errors::{self, Conflict, argument};
use crate::machine::{Machine, Observed};

/// The error for a change during a recording, if recordings cannot contain such a change.
const RECORDED: &str = "a recording is being made, and it holds only keys; stop the recording first";

pub(super) const CLOSED: &str = "the emulator is closed; load the ROM again";

/// The part of a core that its lock protects.
#[derive(Default)]
pub(super) struct Inner {
    /// `None` after `close`.
    pub(super) machine: Option<Machine>,
    /// Memory locations that were read before, by the name or address that the caller used.
    pub(super) places: HashMap<String, Memory>,
    /// Expressions that were evaluated before, by their text.
    pub(super) expressions: HashMap<String, Observed>,
    /// A buffer for the numbers that `read` reads.
    pub(super) values: Vec<i64>,
}

impl Inner {
    pub(super) fn new(machine: Machine) -> Inner {
        Inner { machine: Some(machine), ..Inner::default() }
    }

    /// The machine, or an exception after `close`.
    pub(super) fn machine(&mut self) -> PyResult<&mut Machine> {
        self.machine.as_mut().ok_or_else(|| argument(CLOSED))
    }
}

impl Core {
    /// Locks the core. Releases the interpreter's lock while it waits, so that a thread that runs frames can finish.
    pub(super) fn lock(&self, py: Python<'_>) -> InUse<'_> {
        loop {
            if let Some(inner) = self.inner.try_lock() {
                match &self.environment {
                    None => return InUse::new(inner, None),
                    Some((vector, index)) => {
                        if let Some(vector) = vector.try_lock() {
                            return InUse::new(inner, Some((vector, *index)));
                        }
                    }
                }
            }
            // Wait until the core is free, and then try again.
            py.detach(|| drop(self.lock_detached()));
        }
    }

    /// The same as `lock`, for a thread that does not hold the interpreter's lock.
    pub(super) fn lock_detached(&self) -> InUse<'_> {
        let inner = self.inner.lock();
        let environment = self.environment.as_ref();
        InUse::new(inner, environment.map(|(vector, index)| (vector.lock(), *index)))
    }

    /// Calls `act` with the core, without the interpreter's lock.
    pub(super) fn call<T: Send>(
        &self,
        py: Python<'_>,
        act: impl Send + FnOnce(&mut Machine) -> T,
    ) -> PyResult<T> {
        py.detach(|| self.lock_detached().machine.as_mut().map(act)).ok_or_else(|| argument(CLOSED))
    }

    /// Like `call`, for an `act` that can fail.
    pub(super) fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl Send + FnOnce(&mut Machine) -> Result<T, framewire_libmgba::Error>,
    ) -> PyResult<T> {
        self.call(py, act)?.map_err(errors::of_core)
    }

    /// Like `call`, for an `act` that returns the error of an operation. If `changes` is true, the call fails during a
    /// recording.
    pub(super) fn operate<T: Send>(
        &self,
        py: Python<'_>,
        changes: bool,
        act: impl Send + FnOnce(&mut Machine) -> Result<T, OpError>,
    ) -> PyResult<T> {
        let done = self.call(py, |machine| {
            if changes && machine.recorder.is_some() {
                return Err(OpError::new(Status::Busy, RECORDED));
            }
            act(machine)
        })?;
        done.map_err(errors::of_operation)
    }

    /// Like `with`, for an `act` that accesses memory. Fails if the core does not have this memory, or cannot write it.
    pub(super) fn access<T: Send>(
        &self,
        py: Python<'_>,
        access: &Access<'_>,
        act: impl Send + FnOnce(&mut Machine) -> Result<T, framewire_libmgba::Error>,
    ) -> PyResult<T> {
        let checked = self.call(py, |machine| check_access(&machine.core, access).map(|()| act(machine)))?;
        checked.map_err(errors::of_operation)?.map_err(errors::of_core)
    }

    /// Returns an error if active cheats or frozen numbers prevent a recording or a replay. Recordings do not contain
    /// them.
    pub(super) fn check_recordable(&self, py: Python<'_>) -> PyResult<()> {
        let problem = self.call(py, |machine| {
            machine.cheats.recording_problem().or_else(|| machine.frozen.recording_problem())
        })?;
        problem.map_or(Ok(()), |problem| Err(Conflict::new_err(problem)))
    }
}

/// A core while one thread uses it. If the core belongs to an environment, the environment's core and the spare core in
/// `inner` are swapped until this value is dropped.
pub(super) struct InUse<'a> {
    inner: MutexGuard<'a, Inner>,
    environment: Option<(MutexGuard<'a, Option<VectorEnv>>, usize)>,
}

impl<'a> InUse<'a> {
    fn new(
        inner: MutexGuard<'a, Inner>,
        environment: Option<(MutexGuard<'a, Option<VectorEnv>>, usize)>,
    ) -> InUse<'a> {
        let mut used = InUse { inner, environment };
        if !used.exchange() {
            // The environments were closed.
            used.inner.machine = None;
        }
        used
    }

    /// Swaps the environment's core with the core in `inner`. Returns false if the environment was closed.
    fn exchange(&mut self) -> bool {
        let Some((vector, index)) = &mut self.environment else { return true };
        let (Some(vector), Some(machine)) = (vector.as_mut(), self.inner.machine.as_mut()) else {
            return false;
        };
        machine.follow(vector.moves(*index));
        let exchanged = vector.with_core(*index, |core, has_picture| {
            let had_picture = !machine.has_old_picture();
            std::mem::swap(core, &mut machine.core);
            machine.set_has_picture(std::mem::replace(has_picture, had_picture));
        });
        exchanged.is_ok()
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.exchange();
    }
}

impl Deref for InUse<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for InUse<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}
