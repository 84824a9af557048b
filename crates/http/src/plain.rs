//! The routes `/healthz`, `/metrics` and `/screen.png`, which are neither under `/v1` nor mGBA-http's.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use framewire_emulator::Run;
use framewire_protocol::{Op, Value};
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::caller::Caller;
use crate::failure::Failure;
use crate::feeds::registry::Feeds;
use crate::metrics::Meter;
use crate::operations::Operations;
use crate::routing::state::AppState;
use crate::transport::streams::StreamLimit;

const HEALTH: &str = "/healthz";
const SCREEN: &str = "/screen.png";

pub(crate) fn router() -> Router<AppState> {
    Router::new().route(HEALTH, get(health)).route("/metrics", get(metrics)).route(SCREEN, get(screen))
}

/// Whether programs may use any host name for this path, as for mGBA-http's routes.
pub(crate) fn accepts_any_host_name(path: &str) -> bool {
    matches!(path, HEALTH | SCREEN)
}

/// Whether the server is up.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`, independent of the emulator.
    status: &'static str,
    /// Whether the first emulator can be reached.
    connected: bool,
    /// Whether frames of the first emulator run, and if not, why.
    run: Run,
}

async fn health(State(operations): State<Arc<Operations>>) -> Json<Health> {
    let state = operations.emulators.first().emulator.state();
    Json(Health { status: "ok", connected: state.connected, run: state.run })
}

async fn screen(
    State(operations): State<Arc<Operations>>,
    extensions: Extensions,
) -> Result<Response, Failure> {
    let op = Op::Screenshot {};
    let share = operations.replies.share(&op)?;
    match operations.call(&Caller::of(&extensions), op, None).await? {
        Value::Bytes(png) => Ok(share.bytes("image/png", png)),
        _ => Err(Failure::new(
            StatusCode::BAD_GATEWAY,
            "the emulator answered with something other than a picture",
        )),
    }
}

async fn metrics(
    State(meter): State<Arc<Meter>>,
    State(operations): State<Arc<Operations>>,
    State(streams): State<StreamLimit>,
    State(feeds): State<Arc<Feeds>>,
    headers: HeaderMap,
) -> Response {
    for served in operations.emulators.iter() {
        meter.set_emulator(&served.name, &served.emulator.state(), served.waiting.count());
    }
    for (kind, count) in streams.counts() {
        meter.set_streams(kind, count);
    }
    let (watches, readers) = feeds.counts();
    meter.set_watches(watches, readers);
    let accepts = headers.get(ACCEPT).and_then(|kinds| kinds.to_str().ok()).unwrap_or_default();
    let open_metrics = accepts.contains("application/openmetrics-text");
    let kind = if open_metrics {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    } else {
        "text/plain; version=0.0.4; charset=utf-8"
    };
    ([(CONTENT_TYPE, kind)], meter.text(open_metrics)).into_response()
}
