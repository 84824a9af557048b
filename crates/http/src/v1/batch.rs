//! Operations done together at one frame boundary.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::response::Response;
use framewire_protocol::Batch;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::plan::Plan;
use super::schemas::BatchOp;
use super::{bounds, control};
use crate::idempotency::NothingDone;
use crate::operations::Operations;
use crate::problem::Problem;
use crate::reading::fields::{Context, Encoding, Object};
use crate::routing::declare::Declare;
use crate::routing::extract::{EmulatorParam, Payload, RequestKey, SelectedEmulator};
use crate::routing::state::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(batch).judged_later())
}

/// Operations to do.
#[derive(Deserialize, ToSchema)]
#[schema(as = Batch, example = json!({"ops": [
    {"op": "read", "address": "score"},
    {"op": "read_many", "addresses": ["ball_x", "ball_y"]},
    {"op": "tap", "keys": ["A"]},
]}))]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchRequest {
    /// The operations, done in order; after the first that fails none is done.
    #[schema(value_type = Vec<BatchOp>, max_items = 4096)]
    pub(crate) ops: Vec<Object>,
    /// How bytes are written, in the operations and in the reply.
    #[serde(default)]
    pub(crate) encoding: Encoding,
}

/// What became of a batch.
#[derive(Serialize, ToSchema)]
pub(crate) struct Done {
    /// The frame counter when the batch was done: all of it happened after this frame and before the next.
    pub(crate) frame: u32,
    /// One result for each operation, in order. An error is the last.
    pub(crate) results: Vec<OpResult>,
    /// EmulatorParam operation failed, counted from 0; left out if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<usize>,
}

/// What became of an operation: a value or an error.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OpResult {
    /// What it gave back; null where there is nothing to say.
    #[schema(title = "OpValue")]
    Value(serde_json::Value),
    /// Why it was not done, or failed.
    #[schema(title = "OpError")]
    Error(Problem),
}

/// Does operations in order at one frame boundary, all or, on the first error, none after it.
///
/// Each operation is an object with the name of one of GET /v1/operations as `op`, and its arguments.
#[utoipa::path(post, path = "/v1/batch", operation_id = "batch", tag = "batch", params(EmulatorParam),
    request_body = BatchRequest, responses((status = 200, description = "What became of them.", body = Done)))]
async fn batch(
    State(operations): State<Arc<Operations>>,
    SelectedEmulator(served): SelectedEmulator,
    RequestKey(key): RequestKey,
    Payload(request): Payload<BatchRequest>,
) -> Result<Response, Problem> {
    let symbols = served.symbols().await;
    let context = Context { symbols: &symbols, encoding: request.encoding };
    let plan = Plan::new(request.ops, context)?;
    let share = operations.replies.share_all(plan.ops())?;
    let deadline = Instant::now() + operations.deadline + control::time_of(plan.ops());
    let batch = Batch { key, ..Batch::new(plan.ops().to_vec()) };
    let outcome = bounds::perform(&operations, &served, batch, deadline).await;
    let outcome = outcome.map_err(|(op, problem)| plan.about(op, *problem))?;
    let nothing_done = !outcome.has_changed(plan.ops());
    let mut response = share.json(&plan.done(outcome));
    if nothing_done {
        response.extensions_mut().insert(NothingDone);
    }
    Ok(response)
}
