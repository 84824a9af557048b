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
use crate::app::Site;
use crate::feeds::definition::Definition;
use crate::problem::Problem;
use crate::routing::extract::{Chosen, Query, Which};
use crate::transport::guard::Outflow;
use crate::transport::streams::{Client, Kind};

pub(super) fn router() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(events))
}

/// No parameters other than those of all routes.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// What happens to an emulator, as server-sent events.
///
/// They are `reset`, `state` (one was loaded), `game`, `connected`, `disconnected`, `stalled`, `running`, `paused`, `input`
/// (a timeline is over), `lockstep` (it ended by itself), `save` (the battery save cannot be written, or can again), `missed`
/// (how many events were not taken in time, or lost with the connection to mGBA; null if the number is not known) and `end`.
/// Each has the `frame`.
#[utoipa::path(get, path = "/v1/events", operation_id = "events", tag = "watches", params(Which, Resumed),
    responses((status = 200, description = "Events, until either side ends it.", content_type = "text/event-stream",
        body = String)))]
async fn events(
    State(site): State<Arc<Site>>,
    Chosen(served): Chosen,
    client: Client,
    Extension(outflow): Extension<Outflow>,
    headers: HeaderMap,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Response, Problem> {
    let open = site.streams.open(client.0, Kind::Events)?;
    let reader = site.live.read(&site, &served, Definition::of_events(), sse::last_id(&headers)).await?;
    Ok(sse::response(site, reader, open, &outflow))
}
