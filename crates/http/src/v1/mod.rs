//! Everything under `/v1`: requests and replies in JSON, and [`Problem`]s for errors.
//!
//! Most submodules hold a few routes and return them from a function `router()`. Handlers have `#[utoipa::path]`, so a
//! route and its description are in one place. `router()` also adds the routes' other properties (see
//! [`Declare`](crate::routing::declare::Declare)). A handler takes its services as `State`, takes parts of the request
//! with the types in [`extract`](crate::routing::extract), and returns a [`Result`](crate::problem::Result).
//! [`crate::docs::openapi`] adds to each description the statuses that every route can return.

pub(crate) mod batch;
mod cheats;
pub(crate) mod control;
pub(crate) mod convenience;
mod emulators;
mod freeze;
mod history;
mod input;
mod layers;
mod machine;
mod media;
mod memory;
pub(crate) mod operations;
mod recordings;
mod rom;
pub(crate) mod run;
pub(crate) mod schemas;
mod script;
mod search;
mod sensors;
mod states;
mod symbols;
pub(crate) mod timeline;
pub(crate) mod wait;
mod watches;

use axum::http::header::ALLOW;
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;

use crate::problem::{Problem, is_under_v1};
use crate::routing::catalog;
use crate::routing::state::AppState;

/// The routers, in the order in which the page `/docs` shows their groups.
fn routers() -> [OpenApiRouter<AppState>; 22] {
    [
        batch::router(),
        operations::router(),
        memory::router(),
        freeze::router(),
        symbols::router(),
        input::router(),
        control::router(),
        rom::router(),
        history::router(),
        machine::router(),
        cheats::router(),
        sensors::router(),
        emulators::router(),
        media::router(),
        layers::router(),
        watches::router(),
        run::router(),
        wait::router(),
        recordings::router(),
        search::router(),
        states::router(),
        script::router(),
    ]
}

/// All routes with their descriptions.
pub(crate) fn router() -> OpenApiRouter<AppState> {
    routers().into_iter().fold(OpenApiRouter::new(), OpenApiRouter::merge)
}

/// The groups of routes without duplicates, in the order of the routers.
pub(crate) fn groups() -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    for router in routers() {
        for item in router.into_openapi().paths.paths.values() {
            for (_, operation) in catalog::operations(item) {
                let group = operation.tags.iter().flatten().next();
                if let Some(group) = group.filter(|group| !groups.contains(group)) {
                    groups.push(group.clone());
                }
            }
        }
    }
    groups
}

/// If `response` only says that `path` does not accept this method, replaces it with a problem.
pub(crate) fn explain_method(path: &str, response: Response) -> Response {
    if !is_under_v1(path) {
        return response;
    }
    match response.headers().get(ALLOW) {
        Some(allow) => Problem::wrong_method(path, allow.clone()).into_response(),
        None => response,
    }
}
