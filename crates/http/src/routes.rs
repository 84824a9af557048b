//! Framewire's own routes, and where every request goes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use framewire_emulator::{Run, State as EmulatorState};
use framewire_protocol::{Op, Value};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::{App, Site};
use crate::failure::Failure;
use crate::{compat, docs, openapi};

/// All routes over `app`, for requests that were admitted.
pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route("/v1/emulator", get(state))
        .route("/screen.png", get(screen))
        .route("/openapi.json", get(document))
        .route("/openapi/v1.json", get(document)) // mGBA-http's
        .route("/docs", get(docs::page))
        .route("/scalar", get(docs::page)) // mGBA-http's
        .route("/scalar/v1", get(docs::page)) // mGBA-http's
        .method_not_allowed_fallback(wrong_method)
        .fallback(compat_or_nothing)
        .with_state(Arc::new(Site::new(app)))
}

async fn compat_or_nothing(State(site): State<Arc<Site>>, request: Request) -> Response {
    match compat::find(request.uri().path()) {
        Some(place) => compat::answer(&site, place, request).await,
        None => Failure::no_such_path(request.uri().path()).into_response(),
    }
}

/// All routes of [`router`] answer GET.
async fn wrong_method(request: Request) -> Response {
    Failure::wrong_method(request.uri().path(), "GET, HEAD").into_response()
}

/// Whether the server is up.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`, whatever the emulator does.
    status: &'static str,
    /// Whether its emulator can be reached.
    connected: bool,
    /// Whether frames go by there.
    run: Run,
}

async fn health(State(site): State<Arc<Site>>) -> Json<Health> {
    let state = site.app.emulator.state();
    Json(Health { status: "ok", connected: state.connected, run: state.run })
}

async fn state(State(site): State<Arc<Site>>) -> Json<EmulatorState> {
    Json(site.app.emulator.state())
}

async fn screen(State(site): State<Arc<Site>>) -> Result<Response, Failure> {
    match site.call(Op::Screenshot {}, None).await? {
        Value::Bytes(png) => {
            Ok(([(CONTENT_TYPE, "image/png"), (CACHE_CONTROL, "no-store")], png).into_response())
        }
        _ => Err(Failure::new(
            StatusCode::BAD_GATEWAY,
            "the emulator answered with something else than a picture",
        )),
    }
}

async fn document() -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi::json()).into_response()
}
