//! Where every request goes, except those for mGBA-http's routes.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};

use crate::failure::Failure;
use crate::problem::is_under_v1;
use crate::routing::catalog::{self, Catalog};
use crate::routing::state::AppState;
use crate::rpc::routes::RouteMethods;
use crate::{console, docs, plain, rpc, v1};

/// All routes over these services, and what is known of those under `/v1`.
pub(crate) fn router(state: AppState) -> (Router, Arc<Catalog>) {
    let described = v1::router().merge(rpc::router()).into_openapi();
    let catalog = Arc::new(Catalog::new(&described));
    let known = catalog.clone();
    let check = from_fn(move |path, request, next| catalog::check_query(known.clone(), path, request, next));
    let v1 = v1::router().split_for_parts().0.route_layer(check.clone());
    let methods = RouteMethods::new(v1.clone().with_state(state.clone()), &described, catalog.clone());
    let rpc = rpc::router().split_for_parts().0.route_layer(check).layer(Extension(Arc::new(methods)));
    let router = Router::new()
        .merge(v1)
        .merge(rpc)
        .merge(plain::router())
        .merge(docs::router())
        .merge(console::router())
        .route_layer(from_fn(note_route))
        .method_not_allowed_fallback(wrong_method)
        .fallback(nothing)
        .with_state(state);
    (router, catalog)
}

/// Notes in the reply which route answered, for the counters.
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
    let path = request.uri().path();
    if is_under_v1(path) {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    Failure::wrong_method(path, "GET, HEAD").into_response()
}
