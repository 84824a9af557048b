//! Framewire's own routes, and where every request goes.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use framewire_emulator::Run;
use framewire_protocol::{Op, Value};
use serde::Serialize;
use utoipa::ToSchema;

use super::Site;
use crate::access::caller::Caller;
use crate::docs::openapi;
use crate::failure::Failure;
use crate::problem::is_under_v1;
use crate::routing::parameters::{self, Parameters};
use crate::rpc::routes::Routes;
use crate::{console, docs, rpc, v1};

/// Whether programs may ask for this path under any name of the machine, as they may for mGBA-http's routes.
pub(crate) fn goes_by_any_name(path: &str) -> bool {
    matches!(path, "/healthz" | "/screen.png")
}

/// All routes over `site` but mGBA-http's, for requests that were let in.
pub(crate) fn router(site: Arc<Site>) -> Router {
    let described = v1::router().merge(rpc::router()).into_openapi();
    let known = Arc::new(Parameters::new(&described));
    let check = from_fn(move |path, request, next| parameters::check(known.clone(), path, request, next));
    let v1 = v1::router().split_for_parts().0.route_layer(check.clone());
    let methods = Arc::new(Routes::new(v1.clone().with_state(site.clone()), &described));
    let rpc = rpc::router().split_for_parts().0.route_layer(check).layer(Extension(methods));
    Router::new()
        .merge(v1)
        .merge(rpc)
        .merge(docs::router())
        .merge(console::router())
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .route("/screen.png", get(screen))
        .route("/openapi.json", get(document))
        .route("/openapi/v1.json", get(document)) // mGBA-http's
        .route_layer(from_fn(note_route))
        .method_not_allowed_fallback(wrong_method)
        .fallback(nothing)
        .with_state(site)
}

/// Tells whoever counts answers which route it was.
async fn note_route(path: MatchedPath, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.extensions_mut().insert(path);
    response
}

async fn nothing(request: Request) -> Response {
    Failure::no_such_path(request.uri().path()).answer(request.uri().path())
}

/// All routes of [`router`] that have no table answer GET; for those under `/v1` see [`v1::explain_method`].
async fn wrong_method(request: Request) -> Response {
    match is_under_v1(request.uri().path()) {
        true => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        false => Failure::wrong_method(request.uri().path(), "GET, HEAD").into_response(),
    }
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
    let state = site.app.emulators.first().emulator.state();
    Json(Health { status: "ok", connected: state.connected, run: state.run })
}

async fn screen(State(site): State<Arc<Site>>, extensions: Extensions) -> Result<Response, Failure> {
    match site.call(&Caller::of(&extensions), Op::Screenshot {}, None).await? {
        Value::Bytes(png) => {
            Ok(([(CONTENT_TYPE, "image/png"), (CACHE_CONTROL, "no-store")], png).into_response())
        }
        _ => Err(Failure::new(
            StatusCode::BAD_GATEWAY,
            "the emulator answered with something else than a picture",
        )),
    }
}

async fn metrics(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    let accepts = headers.get(ACCEPT).and_then(|kinds| kinds.to_str().ok()).unwrap_or_default();
    let open_metrics = accepts.contains("application/openmetrics-text");
    let kind = match open_metrics {
        true => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        false => "text/plain; version=0.0.4; charset=utf-8",
    };
    ([(CONTENT_TYPE, kind)], site.meter.text(&site, open_metrics)).into_response()
}

async fn document() -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi::json()).into_response()
}
