//! Performs batches: checks them, performs their operations in order, and waits for runs.

use std::time::Instant;

use framewire_protocol::batch::check_ops;
use framewire_protocol::op::OpKind;
use framewire_protocol::{Batch, Effect, Op, OpError, Outcome, Status, Value, run};

use super::bounds;
use super::history::Influence;
use super::machine::Machine;
use super::runs::{ActiveRun, BegunRun};
use crate::{Pending, Responder};

type Result<T = Value> = std::result::Result<T, OpError>;

/// The same error message as in `lua/src/keyed.lua`.
const UNDER_WAY: &str =
    "the frames of the request with this key have not run yet; send it again when they have run";

/// Why the operation `run` is refused on a channel.
const NO_RUN: &str =
    "`run` is not available on a channel; run frames one by one and check the memory after each of them";
/// Why the operation `script` is refused on a channel.
const NO_SCRIPT: &str = "`script` is not available on a channel; use POST /v1/script of a server that was started with --allow-script";

/// A batch that is being performed.
pub(super) struct BatchProgress {
    /// The whole batch and its key, if it has one.
    keyed: Option<(String, Batch)>,
    /// The operations that have not been performed yet.
    left: std::vec::IntoIter<Op>,
    /// How many operations at the start of `left` need no further check of the memory that they use.
    checked: usize,
    results: Vec<Result>,
    /// Receives the outcome of the batch.
    pub responder: Responder,
}

/// What an unfinished batch waits for.
enum Wait {
    /// The end of this run.
    Run(ActiveRun),
    /// Its turn to perform an `advance`.
    Advance,
}

impl BatchProgress {
    /// Whether nobody needs the outcome: the client no longer waits, and the batch has no key with which the client
    /// could request the outcome later.
    pub fn is_abandoned(&self) -> bool {
        self.keyed.is_none() && self.responder.is_abandoned()
    }

    /// Whether one of the remaining operations [`needs_picture`].
    pub fn needs_picture(&self) -> bool {
        self.left.as_slice().iter().any(needs_picture)
    }

    fn has_key(&self, key: &str) -> bool {
        self.keyed.as_ref().is_some_and(|(known, _)| known == key)
    }
}

/// Whether the last frame must have been drawn before this operation. This is so if the operation uses the picture, or
/// if it may stop the game, because then no later frame would update the picture.
pub(super) fn needs_picture(op: &Op) -> bool {
    matches!(op, Op::Screenshot {} | Op::SaveState { .. }) || op.info().effect == Effect::Change
}

/// The largest number of operations in a quick batch.
const QUICK_OPS: usize = 16;
/// The largest number of bytes that an operation of a quick batch reads.
const QUICK_BYTES: usize = 4096;

/// Whether a batch is quick: it only reads, at most 64 KiB, and takes much less than a millisecond.
pub(super) fn is_quick(batch: &Batch) -> bool {
    use OpKind::*;
    let is_quick = |op: &Op| match op.kind() {
        CurrentFrame | FrameCycles | Cycles | Frequency | GameCode | GameTitle | Platform | Read8
        | Read16 | Read32 | DomainRead8 | DomainRead16 | DomainRead32 | ReadRegister | GetKeys | GetKey => {
            true
        }
        ReadRange | DomainReadRange => op.largest_result() <= QUICK_BYTES,
        _ => false,
    };
    batch.ops.len() <= QUICK_OPS && batch.ops.iter().all(is_quick)
}

impl Machine {
    /// Performs a batch that [`is_quick`].
    pub fn perform_quick(&mut self, batch: Batch) -> Outcome {
        let frame = self.core.frame_counter();
        let Batch { ops, unchecked, .. } = batch;
        if !unchecked && let Err((index, error)) = bounds::check_ops(&self.core, &ops) {
            return Outcome::refused(frame, index, error);
        }
        self.run.note_request();
        let mut results = Vec::with_capacity(ops.len());
        for op in ops {
            results.push(self.operation(op));
            if results.last().is_some_and(Result::is_err) {
                break;
            }
        }
        Outcome { frame, results }
    }

    /// Performs a batch of a channel's client. A run is refused, because the core's thread cannot wait for it here. The
    /// operation `script` is refused, because clients of a channel may not run Lua code.
    pub fn perform(&mut self, batch: Batch) -> Outcome {
        let unavailable = |op: &Op| match op {
            Op::Run { .. } => Some(NO_RUN),
            Op::Script { .. } => Some(NO_SCRIPT),
            _ => None,
        };
        let mut unavailable = batch.ops.iter().map(unavailable).enumerate();
        if let Some((index, problem)) = unavailable.find_map(|(index, problem)| Some((index, problem?))) {
            let error = OpError::new(Status::Unsupported, problem);
            return Outcome::refused(self.core.frame_counter(), index, error);
        }
        let (responder, _) = Pending::new();
        match self.begin(batch, responder) {
            Err((outcome, _)) => outcome,
            Ok(mut progress) => {
                self.go_on(&mut progress, true);
                let (outcome, _) = self.finish(progress);
                self.release_held();
                outcome
            }
        }
    }

    /// Performs a batch, up to the first run that needs frames. When the batch is finished, its outcome goes to
    /// `answers`.
    pub fn submit(&mut self, batch: Batch, responder: Responder) {
        // First, end the runs that no client waits for: they may hold keys of the console that this batch needs.
        self.settle_runs();
        match self.begin(batch, responder) {
            Err((outcome, responder)) => self.answers.push((responder, outcome)),
            Ok(progress) => self.proceed(progress, true),
        }
        self.release_held();
    }

    /// Continues a batch until it is finished or waits. `may_advance` says whether it may perform an `advance` now.
    pub(super) fn proceed(&mut self, mut progress: BatchProgress, may_advance: bool) {
        match self.go_on(&mut progress, may_advance) {
            Some(Wait::Run(run)) => self.runs.add(run, progress),
            Some(Wait::Advance) => self.runs.hold(progress),
            None => {
                let (outcome, responder) = self.finish(progress);
                self.answers.push((responder, outcome));
            }
        }
    }

    /// Continues a batch whose run is over. `result` is the result of the run. If that is an error, the batch is
    /// finished.
    pub(super) fn run_is_over(&mut self, mut progress: BatchProgress, result: Result) {
        let failed = result.is_err();
        progress.results.push(result);
        if failed {
            progress.left = Vec::new().into_iter();
        }
        // Other runs may have ended in the same frame, and the operations after them belong to this frame, too.
        self.proceed(progress, false);
    }

    /// Checks a batch before any of its operations is performed. Refuses it if an argument is not accepted, or if an
    /// operation uses memory that does not exist. `Err` is an outcome that is already known: the batch was refused, or
    /// it was performed before with the same key.
    fn begin(
        &mut self,
        mut batch: Batch,
        responder: Responder,
    ) -> std::result::Result<BatchProgress, (Outcome, Responder)> {
        let frame = self.core.frame_counter();
        let key = batch.key.take().filter(|_| batch.effect() == Effect::Change);
        if let Some(key) = &key {
            if self.runs.progresses().any(|progress| progress.has_key(key)) {
                let refusal = OpError::new(Status::Busy, UNDER_WAY);
                return Err((Outcome { frame, results: vec![Err(refusal)] }, responder));
            }
            if let Some(known) = self.outcomes.recall(key, &batch, Instant::now()) {
                let outcome = known.unwrap_or_else(|refusal| Outcome { frame, results: vec![Err(refusal)] });
                return Err((outcome, responder));
            }
        }
        let keyed = key.map(|key| (key, batch.clone()));
        let Batch { ops, unchecked, .. } = batch;
        let checked = if unchecked { ops.len() } else { bounds::checkable(&ops).len() };
        let memory = || if unchecked { Ok(()) } else { bounds::check_ops(&self.core, &ops[..checked]) };
        if let Err((index, error)) = check_ops(&ops).and_then(|()| memory()) {
            return Err((Outcome::refused(frame, index, error), responder));
        }
        let results = Vec::with_capacity(ops.len());
        let left = ops.into_iter();
        Ok(BatchProgress { keyed, left, checked, results, responder })
    }

    /// Performs operations in order, up to the first that fails, the first run that needs frames or, if it may not be
    /// performed now, the first `advance`. Returns what the batch waits for.
    fn go_on(&mut self, progress: &mut BatchProgress, may_advance: bool) -> Option<Wait> {
        let mut waits = None;
        loop {
            if !may_advance && matches!(progress.left.as_slice(), [Op::Advance { .. }, ..]) {
                waits = Some(Wait::Advance);
                break;
            }
            let Some(op) = progress.left.next() else { break };
            self.tried_to_load |= op.loads_game();
            let checked = if progress.checked > 0 { Ok(()) } else { bounds::check_op(&self.core, &op) };
            progress.checked = progress.checked.saturating_sub(1);
            let influence = Influence::of(&op);
            self.before_operation(influence);
            let result = match (checked, op) {
                (Ok(()), Op::Run { steps }) => match self.begin_run(&steps) {
                    Ok(BegunRun::Over(ends)) => Ok(Value::Bytes(run::encode_ends(&ends))),
                    Ok(BegunRun::Active(run)) => {
                        waits = Some(Wait::Run(run));
                        break;
                    }
                    Err(error) => Err(error),
                },
                (Ok(()), op) => self.operation(op),
                (Err(error), _) => Err(error),
            };
            self.after_operation(influence);
            let failed = result.is_err();
            progress.results.push(result);
            if failed {
                break;
            }
        }
        self.run.note_request();
        waits
    }

    /// Returns the outcome of a batch whose operations were performed. Stores the outcome under the batch's key.
    fn finish(&mut self, progress: BatchProgress) -> (Outcome, Responder) {
        let BatchProgress { keyed, results, responder, .. } = progress;
        let outcome = Outcome { frame: self.core.frame_counter(), results };
        // If the batch changed nothing, its outcome is not stored, so that the client can send the batch again with the
        // same key.
        if let Some((key, batch)) = keyed
            && outcome.has_changed(&batch.ops)
        {
            self.outcomes.remember(key, &batch, outcome.clone(), Instant::now());
        }
        (outcome, responder)
    }
}
