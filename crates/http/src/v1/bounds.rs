//! Batches whose memory may not be there: the emulator refuses them whole, and callers learn which parameter it is about.

use std::time::Instant;

use framewire_protocol::{Batch, Op, OpError, Outcome};

use crate::operations::Operations;
use crate::operations::emulators::Served;
use crate::problem::Problem;

/// A problem, and the number of the operation that it is about, if it is about one.
pub(crate) type Beyond = (Option<usize>, Box<Problem>);

/// The outcome of these operations, unless nothing was done because of the memory that one of them is for.
pub(crate) fn settled(ops: &[Op], outcome: Outcome) -> Result<Outcome, Beyond> {
    match outcome.refused_access(ops) {
        Some((index, error)) => Err((Some(index), Box::new(refused("address", error)))),
        None => Ok(outcome),
    }
}

/// What an emulator says of memory that is not there, about the parameter or place in a body that names it.
pub(crate) fn refused(place: &str, error: &OpError) -> Problem {
    match error.address_problem() {
        Some((problem, accepts)) => Problem::parameter(place, problem, accepts),
        None => error.clone().into(),
    }
}

/// Does a batch, unless it is for memory that is not there.
pub(crate) async fn perform(
    operations: &Operations,
    served: &Served,
    batch: Batch,
    deadline: Instant,
) -> Result<Outcome, Beyond> {
    let ops = batch.ops.clone();
    let outcome = operations
        .perform_until(served, batch, deadline)
        .await
        .map_err(|error| (None, Box::new(error.into())))?;
    settled(&ops, outcome)
}

/// Does one operation, as [`perform`] does.
pub(crate) async fn perform_one(
    operations: &Operations,
    served: &Served,
    batch: impl Into<Batch>,
) -> Result<Outcome, Problem> {
    let deadline = Instant::now() + operations.deadline;
    perform(operations, served, batch.into(), deadline).await.map_err(|(_, problem)| *problem)
}
