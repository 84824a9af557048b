//! What happens to an emulator, as server-sent events.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::sse;
use super::watches::Resumed;
use crate::feeds::definition::Definition;
use crate::feeds::registry::Feeds;
use crate::problem::Problem;
use crate::routing::declare::Declare;
use crate::routing::extract::{EmulatorParam, NoParameters, OpensStream, Query, SelectedEmulator};
use crate::routing::state::AppState;
use crate::transport::Stopping;
use crate::transport::activity::Outflow;
use crate::transport::streams::StreamKind;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(events).counted_as(StreamKind::Events))
}

/// What happens to an emulator, as server-sent events.
///
/// They are `reset`, `state` (one was loaded), `game`, `connected`, `disconnected`, `stalled`, `running`, `paused`, `input`
/// (a timeline is over), `lockstep` (it ended by itself), `save` (the battery save cannot be written, or can again), `missed`
/// (how many events were not taken in time, or lost with the connection to mGBA; null if the number is not known) and `end`.
/// Each has the `frame`.
#[utoipa::path(get, path = "/v1/events", operation_id = "events", tag = "watches", params(EmulatorParam, Resumed),
    responses((status = 200, description = "Events, until either side ends it.", content_type = "text/event-stream",
        body = String)))]
async fn events(
    State(stopping): State<Stopping>,
    State(feeds): State<Arc<Feeds>>,
    SelectedEmulator(served): SelectedEmulator,
    stream: OpensStream,
    Extension(outflow): Extension<Outflow>,
    headers: HeaderMap,
    Query(NoParameters {}): Query<NoParameters>,
) -> Result<Response, Problem> {
    let open = stream.open()?;
    let reader = feeds.read(&served, Definition::of_events(), sse::last_id(&headers)).await?;
    Ok(sse::response(stopping, reader, open, &outflow))
}
