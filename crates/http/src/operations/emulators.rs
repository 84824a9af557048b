//! The emulators that are served, and the server's state for each of them.

use std::sync::Arc;
use std::time::Instant;

use framewire_emulator::{Emulator, EmulatorError, Pending};
use framewire_protocol::{Batch, Op, Outcome};
use framewire_symbols::{Game, SymbolFiles, Symbols};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::task_local;

use crate::access::permit::Permit;
use crate::metrics::InProgress;

/// Longest name of an emulator, in bytes.
const MAX_NAME: usize = 64;

/// An emulator that is served, and the server's state for it. Clones share the emulator and the counters.
#[derive(Clone)]
pub struct Served {
    /// Its name for `?emulator=`.
    pub name: String,
    /// The emulator.
    pub emulator: Arc<dyn Emulator>,
    /// Names for its addresses.
    symbols: Arc<SymbolFiles>,
    /// Wakes the feeds after `symbols` has read files again.
    symbols_read: watch::Sender<()>,
    /// The batches that it has not answered yet.
    pub(crate) waiting: InProgress,
    /// The WebSocket that began its lockstep.
    pub(crate) lockstep: LockstepHolder,
    /// What the caller may do with it; `None` if the caller may do everything.
    permit: Option<Permit>,
    /// Whether clients may run Lua code in it.
    allows_scripts: bool,
}

impl Served {
    /// An emulator with this name and without symbols.
    pub fn new(name: impl Into<String>, emulator: Arc<dyn Emulator>) -> Served {
        Served {
            name: name.into(),
            emulator,
            symbols: Arc::default(),
            symbols_read: watch::Sender::default(),
            waiting: InProgress::default(),
            lockstep: LockstepHolder::default(),
            permit: None,
            allows_scripts: false,
        }
    }

    /// Adds names for its addresses.
    pub fn with_symbols(self, symbols: impl Into<Arc<SymbolFiles>>) -> Served {
        Served { symbols: symbols.into(), ..self }
    }

    /// The names for addresses of its current game. If the game has changed, files may have to be read.
    pub(crate) async fn symbols(&self) -> Arc<Symbols> {
        if let Some(ready) = self.known_symbols() {
            return ready;
        }
        let state = self.emulator.state();
        let game = state.checksum.map(|checksum| Game {
            title: state.title.unwrap_or_default(),
            code: state.code.unwrap_or_default(),
            checksum,
        });
        let (files, read) = (self.symbols.clone(), self.symbols_read.clone());
        // A blocking thread reads the files, and continues even if this future is dropped. So the thread, not this
        // future, wakes the feeds.
        let reading = move || {
            let symbols = files.read_for(game.as_ref());
            read.send_replace(());
            symbols
        };
        tokio::task::spawn_blocking(reading).await.unwrap_or_else(|error| {
            Arc::new(Symbols::none(format!("the symbol files were not read: {error}")))
        })
    }

    /// The names for addresses of its current game, if no files have to be read for them.
    pub(crate) fn known_symbols(&self) -> Option<Arc<Symbols>> {
        self.symbols.ready(self.emulator.checksum())
    }

    /// Returns a receiver that is notified after symbol files were read again.
    pub(crate) fn symbols_read(&self) -> watch::Receiver<()> {
        self.symbols_read.subscribe()
    }

    /// The same emulator with the rights of a caller.
    pub(crate) fn for_caller(self: &Arc<Served>, permit: Option<Permit>) -> Arc<Served> {
        if permit.is_none() {
            return self.clone();
        }
        Arc::new(Served { permit, ..Served::clone(self) })
    }

    pub(crate) fn may_name_files(&self) -> Result<(), EmulatorError> {
        self.permit.as_ref().map_or(Ok(()), Permit::may_name_files)
    }

    /// Refuses a batch that runs Lua code, if that is not allowed.
    fn check_scripts(&self, batch: &Batch) -> Result<(), EmulatorError> {
        if !self.allows_scripts && batch.ops.iter().any(|op| matches!(op, Op::Script { .. })) {
            return Err(EmulatorError::Forbidden(
                "this server does not run Lua code from clients; start framewire with --allow-script, or use other requests"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Submits a batch to the emulator, if the caller is allowed to. Every batch of this crate goes through this
    /// function, except for the end of a WebSocket's lockstep.
    #[expect(clippy::disallowed_methods, reason = "the place that submits batches")]
    pub(crate) fn submit(&self, mut batch: Batch, deadline: Instant) -> Pending {
        let permitted = self.permit.as_ref().map_or(Ok(()), |permit| permit.check(&mut batch));
        match permitted.and_then(|()| self.check_scripts(&batch)) {
            Ok(()) => {
                if batch.ops.iter().any(Op::loads_game) {
                    self.symbols.look_again();
                }
                self.emulator.submit(batch, deadline)
            }
            Err(refusal) => Pending::refused(refusal),
        }
    }

    /// Ends the lockstep that a WebSocket began. `connection` is the number of the WebSocket, or [`CLOSED`] for any
    /// WebSocket that was closed. Does nothing if an operation has ended this lockstep, or another client has begun
    /// lockstep since.
    #[expect(clippy::disallowed_methods, reason = "submits while the holder is locked")]
    pub(crate) fn end_lockstep(&self, connection: u64, deadline: Instant) -> Option<Pending> {
        let _holder = self.lockstep.clear_if_held_by(connection)?;
        Some(self.emulator.submit(Op::Lockstep { timeout: 0 }.into(), deadline))
    }
}

/// The emulators that are served, at least one. Requests that name no emulator go to the first.
#[derive(Clone)]
pub struct Emulators {
    all: Vec<Arc<Served>>,
}

/// A name that an emulator cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name would have to be escaped in a query, or has a wrong length.
    #[error(
        "{0:?} cannot be the name of an emulator; use 1 to {MAX_NAME} characters, each a letter, a digit or one of -_.:"
    )]
    Unfit(String),
    /// Another emulator has this name.
    #[error("two emulators have the name {0:?}; give each a different name")]
    Taken(String),
}

impl Emulators {
    /// Serves this emulator. Requests that do not name an emulator go to it.
    ///
    /// # Errors
    /// [`NameError::Unfit`].
    pub fn new(first: Served) -> Result<Emulators, NameError> {
        check(&first.name)?;
        Ok(Emulators { all: vec![Arc::new(first)] })
    }

    /// Also serves this emulator.
    ///
    /// # Errors
    /// If its name cannot be used or is taken.
    pub fn add(&mut self, further: Served) -> Result<(), NameError> {
        check(&further.name)?;
        if self.get(&further.name).is_some() {
            return Err(NameError::Taken(further.name));
        }
        self.all.push(Arc::new(further));
        Ok(())
    }

    /// The emulator for requests that do not name one.
    pub fn first(&self) -> &Arc<Served> {
        &self.all[0]
    }

    /// The emulator with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Served>> {
        self.all.iter().find(|served| served.name == name)
    }

    /// The names of all emulators, joined by commas.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.iter().map(|served| served.name.as_str()).collect();
        names.join(", ")
    }

    /// The same emulators. Clients may run Lua code in them if `allowed` is true.
    pub(crate) fn allowing_scripts(&self, allowed: bool) -> Emulators {
        let allow =
            |served: &Arc<Served>| Arc::new(Served { allows_scripts: allowed, ..Served::clone(served) });
        Emulators { all: self.iter().map(allow).collect() }
    }

    /// All emulators, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.all.iter()
    }
}

/// Whether this can be the name of an emulator: 1 to 64 characters, each a letter, a digit or one of `-_.:`. These
/// characters need no escaping in a query.
pub fn is_emulator_name(name: &str) -> bool {
    let fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(fit)
}

fn check(name: &str) -> Result<(), NameError> {
    if is_emulator_name(name) { Ok(()) } else { Err(NameError::Unfit(name.to_owned())) }
}

task_local! {
    /// The number of the WebSocket for which this task performs a request.
    static CONNECTION: u64;
}

/// The WebSocket that last began an emulator's lockstep. It stays the holder if lockstep ends because of its time-out.
///
/// Lockstep ends when the WebSocket that began it ends. Otherwise, the emulator would wait for frames that no client
/// requests. Lockstep that an HTTP request began ends with its time-out, because an HTTP client has no lasting
/// connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct LockstepHolder(Arc<Mutex<Holders>>);

/// The holder in place of a WebSocket that was closed before the outcome of later batches was known. If it turns out
/// that none of these batches began or ended lockstep, the lockstep of the closed WebSocket continues, and must be
/// ended.
pub(crate) const CLOSED: u64 = u64::MAX;

#[derive(Debug, Default)]
pub(crate) struct Holders {
    /// How many claims there were. A [`LockstepClaim`] is a batch that begins or ends lockstep.
    claims: u64,
    /// The numbers of claims, in order, each with the holder after the claim's batch. The first entry can be that of
    /// the last settled batch. The others are those of later batches that are not settled yet; their holders apply if
    /// the batches are performed. A holder is the number of a WebSocket; 0 if a client without a WebSocket began
    /// lockstep, or an operation has ended it; [`CLOSED`] if the WebSocket was closed while a later batch was not
    /// settled yet.
    all: Vec<(u64, u64)>,
}

/// A batch that begins or ends lockstep. When this is dropped, the batch is *settled*: the operations in `changes`
/// count as performed. Before that, [`settle`](LockstepClaim::settle) removes the operations that were not performed.
/// If the outcome of the batch is not known, it removes nothing.
#[derive(Debug)]
pub(crate) struct LockstepClaim {
    holder: LockstepHolder,
    number: u64,
    /// The operations that begin or end lockstep, by their index, and the holder after each of them.
    changes: Vec<(usize, u64)>,
}

impl LockstepHolder {
    /// If some of these operations begin or end lockstep, claims it and keeps the holder locked. The operations must be
    /// submitted before it is unlocked, so that they reach the emulator in the order of the claims.
    pub(crate) fn claim(&self, ops: &[Op]) -> Option<(MutexGuard<'_, Holders>, LockstepClaim)> {
        let change = |(index, op): (usize, &Op)| match op {
            Op::Lockstep { timeout: 0 } | Op::Resume {} => Some((index, 0)),
            Op::Lockstep { .. } => Some((index, CONNECTION.try_with(|number| *number).unwrap_or(0))),
            _ => None,
        };
        let changes: Vec<(usize, u64)> = ops.iter().enumerate().filter_map(change).collect();
        let (_, last) = *changes.last()?;
        let mut holders = self.0.lock();
        holders.claims += 1;
        let number = holders.claims;
        holders.all.push((number, last));
        Some((holders, LockstepClaim { holder: self.clone(), number, changes }))
    }

    /// If the holder is this WebSocket, clears the holder and keeps it locked, as `claim` does. Otherwise, this
    /// WebSocket could become the holder again if later batches fail. So its entries are changed to [`CLOSED`].
    fn clear_if_held_by(&self, connection: u64) -> Option<MutexGuard<'_, Holders>> {
        let mut holders = self.0.lock();
        if holders.all.last().is_none_or(|(_, holder)| *holder != connection) {
            let own = holders.all.iter_mut().filter(|(_, holder)| *holder == connection);
            own.for_each(|(_, holder)| *holder = CLOSED);
            return None;
        }
        holders.all.clear();
        Some(holders)
    }
}

impl LockstepClaim {
    /// Notes which operations were performed. If no operation that begins or ends lockstep was performed, the holder
    /// stays.
    pub(crate) fn settle(mut self, outcome: &Result<Outcome, EmulatorError>) {
        use EmulatorError::{Busy, Deadline, Forbidden, Lost, NotConnected, Refused, Stopped};
        let performed = match outcome {
            Ok(outcome) => outcome.results.iter().take_while(|result| result.is_ok()).count(),
            Err(Busy(_) | Forbidden(_) | NotConnected(_) | Refused(_)) => 0,
            Err(Deadline(_) | Lost(_) | Stopped) => return,
        };
        self.changes.retain(|(index, _)| *index < performed);
    }
}

impl Drop for LockstepClaim {
    fn drop(&mut self) {
        let mut holders = self.holder.0.lock();
        let Some(place) = holders.all.iter().position(|(number, _)| *number == self.number) else { return };
        match self.changes.last() {
            Some((_, holder)) => {
                // The WebSocket may have been closed before its batch was settled.
                if holders.all[place].1 != CLOSED || *holder == 0 {
                    holders.all[place].1 = *holder;
                }
                holders.all.drain(..place);
            }
            None => drop(holders.all.remove(place)),
        }
    }
}

/// A random number for a new WebSocket. It is never 0, which is the [`LockstepHolder`]'s value for no WebSocket, and
/// never [`CLOSED`].
pub(crate) fn connection_number() -> u64 {
    fastrand::u64(1..CLOSED)
}

/// Performs `work` for the WebSocket with this number.
pub(crate) async fn for_connection<F: Future>(number: u64, work: F) -> F::Output {
    CONNECTION.scope(number, work).await
}

#[cfg(test)]
mod tests {
    use framewire_protocol::{OpError, Value};

    use super::*;

    const LOCKSTEP: Op = Op::Lockstep { timeout: 1000 };

    fn refused() -> Result<Outcome, EmulatorError> {
        Ok(Outcome { frame: 0, results: vec![Err(OpError::failed("refused"))] })
    }

    async fn claim(holder: &LockstepHolder, connection: u64) -> LockstepClaim {
        for_connection(connection, async { holder.claim(&[LOCKSTEP]).unwrap().1 }).await
    }

    #[tokio::test]
    async fn lockstep_that_another_client_took_over_stays() {
        let holder = LockstepHolder::default();
        drop(claim(&holder, 1).await);
        drop(claim(&holder, 2).await);
        let clear_if_held_by = |connection| holder.clear_if_held_by(connection).is_some();
        assert!(!clear_if_held_by(1));
        assert!(clear_if_held_by(2) && !clear_if_held_by(2));
        drop(claim(&holder, 1).await);
        drop(holder.claim(&[LOCKSTEP]));
        assert!(!clear_if_held_by(1), "an HTTP client has begun lockstep since");
        drop(claim(&holder, 1).await);
        drop(holder.claim(&[Op::Pause {}, Op::Resume {}]));
        assert!(!clear_if_held_by(1), "lockstep has ended");
    }

    #[tokio::test]
    async fn a_refused_request_does_not_change_the_holder() {
        let holder = LockstepHolder::default();
        let clear_if_held_by = |connection| holder.clear_if_held_by(connection).is_some();
        drop(claim(&holder, 1).await);
        // The outcomes arrive in another order than the requests.
        let (second, third) = (claim(&holder, 2).await, claim(&holder, 3).await);
        third.settle(&refused());
        second.settle(&Err(EmulatorError::Busy(1)));
        let (_, resume) = holder.claim(&[Op::Pause {}, Op::Resume {}]).unwrap();
        resume.settle(&refused());
        assert!(!clear_if_held_by(2) && !clear_if_held_by(3) && clear_if_held_by(1));
        let (_, ended) = holder.claim(&[Op::Resume {}, LOCKSTEP]).unwrap();
        let later = claim(&holder, 2).await;
        ended.settle(&Err(EmulatorError::Lost(String::new())));
        later.settle(&refused());
        assert!(!clear_if_held_by(1) && !clear_if_held_by(2));
    }

    #[tokio::test]
    async fn lockstep_of_a_closed_websocket_ends_after_a_later_request_has_failed() {
        let holder = LockstepHolder::default();
        let clear_if_held_by = |connection| holder.clear_if_held_by(connection).is_some();
        for (outcome, is_left) in
            [(refused(), true), (Ok(Outcome { frame: 0, results: vec![Ok(Value::None)] }), false)]
        {
            drop(claim(&holder, 1).await);
            let later = claim(&holder, 2).await;
            assert!(!clear_if_held_by(1) && !clear_if_held_by(CLOSED), "the later request may still succeed");
            later.settle(&outcome);
            assert_eq!((clear_if_held_by(CLOSED), clear_if_held_by(2)), (is_left, !is_left));
        }
    }

    #[tokio::test]
    async fn a_websocket_that_was_closed_before_its_request_was_settled_does_not_hold_lockstep() {
        let holder = LockstepHolder::default();
        let first = claim(&holder, 1).await;
        let later = claim(&holder, 2).await;
        assert!(holder.clear_if_held_by(1).is_none(), "the later request may still succeed");
        drop(first);
        later.settle(&refused());
        assert!(holder.clear_if_held_by(CLOSED).is_some());
    }

    #[tokio::test]
    async fn another_client_can_begin_lockstep_only_after_the_end_of_the_previous_one_is_submitted() {
        let holder = LockstepHolder::default();
        drop(claim(&holder, 1).await);
        let ending = holder.clear_if_held_by(1);
        assert!(ending.is_some() && holder.0.is_locked());
        drop(ending);
        assert!(holder.claim(&[LOCKSTEP]).is_some_and(|_| holder.0.is_locked()));
        assert!(holder.claim(&[Op::Pause {}]).is_none(), "other operations do not wait");
    }
}
