//! Performs operations on emulators, for all routes.
//!
//! - `emulators`: the emulators that are served, and who began their lockstep;
//! - `budget`: limits the memory for large replies.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_emulator::{EmulatorError, Kind, Pending, Run};
use framewire_protocol::run::RunSteps;
use framewire_protocol::{Batch, MAX_ADVANCE, Op, OpError, Outcome, Value};
use tokio::time::timeout;

use self::budget::{BudgetShare, ReplyBudget};
use self::emulators::{CLOSED, Emulators, LockstepClaim, Served};
use crate::access::caller::Caller;
use crate::access::permit::{Files, Permit};
use crate::failure::Failure;
use crate::metrics::InProgressGuard;
use crate::problem::Problem;
use crate::transport::Stopping;

pub(crate) mod budget;
pub(crate) mod emulators;

/// How long each frame of the operation `advance` may take. At this pace, a game has a third of its normal speed.
const FRAME: Duration = Duration::from_millis(50);
/// How long each frame of a run may take: somewhat longer than a frame takes at the lowest speed, 0.01. If no frames
/// run, the wait for a run ends much earlier: see [`Operations::outcome_of_run`].
const SLOWEST_FRAME: Duration = Duration::from_secs(2);

/// The emulator that a request is about, with the rights of its sender.
pub(crate) struct SelectedEmulator {
    pub(crate) served: Arc<Served>,
    pub(crate) operations: Arc<Operations>,
    /// The `Idempotency-Key` of the request, if it has one.
    pub(crate) key: Option<String>,
}

impl Deref for SelectedEmulator {
    type Target = Served;

    fn deref(&self) -> &Served {
        &self.served
    }
}

impl SelectedEmulator {
    /// Performs operations, as [`Operations::perform`] does.
    pub(crate) async fn perform(&self, batch: impl Into<Batch>) -> Result<Outcome, EmulatorError> {
        self.operations.perform(&self.served, batch.into()).await
    }

    /// Performs a batch like [`SelectedEmulator::perform`]. If it is refused as a whole, for example because of an
    /// address that an operation reads or writes, returns the problem.
    pub(crate) async fn perform_checked(&self, batch: impl Into<Batch>) -> Result<Outcome, Problem> {
        let batch = batch.into();
        let ops = batch.ops.clone();
        let outcome = self.perform(batch).await?;
        match outcome.refused_whole(&ops) {
            Some((_, error)) => Err(Problem::refused_access("address", error)),
            None => Ok(outcome),
        }
    }

    pub(crate) async fn perform_one(&self, op: Op) -> Result<Value, EmulatorError> {
        Ok(self.perform(op).await?.single()?)
    }

    /// Adds the request's key to a batch, so that the batch is performed only once.
    pub(crate) fn keyed(&self, batch: impl Into<Batch>) -> Batch {
        Batch { key: self.key.clone(), ..batch.into() }
    }

    /// Reserves memory for the result of an operation. Call it before the operation is sent.
    pub(crate) fn share(&self, op: &Op) -> Result<BudgetShare, Failure> {
        self.operations.replies.share(op)
    }
}

/// Performs operations on emulators, within a deadline and with the rights of a caller. It also has the memory budget
/// for results.
pub(crate) struct Operations {
    /// The emulators; mGBA-http's routes act on the first.
    pub(crate) emulators: Emulators,
    /// How long a request may wait for its emulator.
    pub(crate) deadline: Duration,
    /// The memory for large replies.
    pub(crate) replies: ReplyBudget,
    /// The only folder in which callers may name files: see [`Access::files`](crate::access::Access::files).
    pub(crate) files: Option<Files>,
    pub(crate) stopping: Stopping,
}

impl Operations {
    pub(crate) fn for_caller(&self, served: &Arc<Served>, caller: &Caller) -> Arc<Served> {
        served.for_caller(Permit::of(caller, self.files.as_ref()))
    }

    /// Performs one operation for `caller` on the first emulator. An operation with a key is performed only once, even
    /// if the request is repeated. Any address is accepted, as in mGBA.
    pub(crate) async fn call(
        &self,
        caller: &Caller,
        op: Op,
        key: Option<String>,
    ) -> Result<Value, EmulatorError> {
        let served = self.for_caller(self.emulators.first(), caller);
        let batch = Batch { key, unchecked: true, ..op.into() };
        Ok(self.perform(&served, batch).await?.single()?)
    }

    /// Performs a batch within the server's deadline. Operations that run frames may take longer.
    pub(crate) async fn perform(&self, served: &Served, batch: Batch) -> Result<Outcome, EmulatorError> {
        let sent = self.send(served, batch)?;
        self.outcome(served, sent).await
    }

    /// Sends a batch to its emulator. [`Operations::outcome`] waits for the outcome.
    pub(crate) fn send(&self, served: &Served, batch: Batch) -> Result<SentBatch, OpError> {
        batch.check()?;
        let waiting = served.waiting.begin();
        let runs = batch.ops.iter().any(|op| matches!(op, Op::Run { .. }));
        let deadline = Instant::now() + self.deadline + time_of(&batch.ops);
        let claimed = served.lockstep.claim(&batch.ops);
        let pending = served.submit(batch, deadline);
        // This unlocks the holder.
        let claim = claimed.map(|(_locked, claim)| claim);
        Ok(SentBatch { pending, runs, claim, _waiting: waiting })
    }

    /// Waits for the outcome of a batch until its deadline. For a batch with runs, the wait can also end earlier: see
    /// [`Operations::outcome_of_run`].
    pub(crate) async fn outcome(&self, served: &Served, sent: SentBatch) -> Result<Outcome, EmulatorError> {
        let SentBatch { pending, runs, claim, _waiting } = sent;
        let outcome = if runs { self.outcome_of_run(served, pending).await } else { pending.await };
        if let Some(claim) = claim {
            claim.settle(&outcome);
            self.end_lockstep_on(served, CLOSED).await;
        }
        let outcome = outcome?;
        match &outcome.results[..] {
            // The emulator refused the whole batch because of its key.
            [Err(error)] if error.is_about_key() => Err(error.clone().into()),
            _ => Ok(outcome),
        }
    }

    /// Waits for the outcome of a batch with runs. The frames may take a long time, so the wait continues as long as
    /// frames run. It fails if no frame runs for the length of the server's deadline, or if the server stops. If this
    /// future fails or is dropped, the run ends, unless the batch has a key.
    async fn outcome_of_run(&self, served: &Served, mut pending: Pending) -> Result<Outcome, EmulatorError> {
        let mut last = served.emulator.state().frame;
        loop {
            tokio::select! {
                outcome = timeout(self.deadline, &mut pending) => match outcome {
                    Ok(outcome) => return outcome,
                    Err(_) => last = served.check_alive(last)?,
                },
                () = self.stopping.wait() => return Err(EmulatorError::Stopped),
            }
        }
    }

    /// Ends the lockstep that a WebSocket began. It is called when the WebSocket is closed.
    pub(crate) async fn end_lockstep(&self, connection: u64) {
        for served in self.emulators.iter() {
            self.end_lockstep_on(served, connection).await;
        }
    }

    async fn end_lockstep_on(&self, served: &Served, connection: u64) {
        if let Some(ended) = served.end_lockstep(connection, Instant::now() + self.deadline) {
            // The error is ignored: lockstep may have ended already, or the emulator may be gone.
            let _ = ended.await;
        }
    }
}

/// A batch that an emulator performs or will perform.
pub(crate) struct SentBatch {
    pending: Pending,
    /// Whether the batch contains the operation `run`.
    runs: bool,
    /// The claim of the batch, if it begins or ends lockstep.
    claim: Option<LockstepClaim>,
    /// Counts the batch as waiting until this guard is dropped.
    _waiting: InProgressGuard,
}

/// How much longer than other batches a batch with these operations may take, because they run frames.
fn time_of(ops: &[Op]) -> Duration {
    let advances = |op: &Op| if let Op::Advance { frames } = op { (*frames).min(MAX_ADVANCE) } else { 0 };
    let runs = |op: &Op| match op {
        Op::Run { steps } => RunSteps::decode_checked(steps).map_or(0, |run| run.frames()),
        _ => 0,
    };
    let advanced = ops.iter().map(advances).sum::<u32>().min(MAX_ADVANCE);
    FRAME * advanced + SLOWEST_FRAME * ops.iter().map(runs).fold(0, u32::saturating_add)
}

impl Served {
    /// The current frame. If it is still the frame `last`, returns an error that says why no frame ran.
    pub(crate) fn check_alive(&self, last: u32) -> Result<u32, EmulatorError> {
        let state = self.emulator.state();
        if state.frame != last {
            return Ok(state.frame);
        }
        let why = match (state.problem, state.run) {
            (Some(problem), _) => problem,
            (None, Run::Paused) => "the emulator is paused; POST /v1/resume continues it".to_owned(),
            (None, Run::Running) if state.kind == Kind::Embedded => {
                "a program on the emulator's channel decides when frames run, or the speed is very low"
                    .to_owned()
            }
            (None, _) => "the emulator is paused in its window, or has no ROM".to_owned(),
        };
        Err(EmulatorError::Deadline(format!("no frame ran while waiting: {why}")))
    }
}
