//! Everything under `/v1`: JSON in, JSON out, [`Problem`]s where something is wrong.
//!
//! Each submodule holds a few routes and gives them by a function `router()`, made of handlers with `#[utoipa::path]`,
//! so that a route and its description are one thing. A handler takes [`extract::Chosen`] for the emulator that
//! `?emulator=` names, [`extract::Payload`] for a JSON body, [`extract::Query`] and [`extract::Path`] for parameters, and
//! returns `Result<_, Problem>`. The statuses that any route may answer with are added to each description by
//! [`crate::openapi`].

mod batch;
mod bounds;
mod control;
pub(crate) mod convenience;
mod emulators;
pub(crate) mod extract;
pub(crate) mod fields;
mod input;
pub(crate) mod json;
pub(crate) mod live;
pub(crate) mod media;
mod memory;
mod operations;
pub(crate) mod parameters;
mod plan;
pub(crate) mod problem;
pub(crate) mod reading;
pub(crate) mod recordings;
mod socket;
mod states;
mod symbols;
mod timeline;

use std::sync::Arc;

use axum::http::header::ALLOW;
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;

use crate::app::Site;
pub(crate) use problem::Problem;
pub(crate) use timeline::{Input, KeySet, Press, Step};

/// All routes, with their descriptions.
pub(crate) fn router() -> OpenApiRouter<Arc<Site>> {
    routes().merge(live::rpc::router())
}

/// The routes that JSON-RPC can ask for, and its streams: all but its own.
pub(crate) fn routes() -> OpenApiRouter<Arc<Site>> {
    #[rustfmt::skip] // one a line
    let all = [
        batch::router(),
        control::router(),
        emulators::router(),
        input::router(),
        live::router(),
        media::router(),
        memory::router(),
        operations::router(),
        recordings::router(),
        states::router(),
        symbols::router(),
    ];
    all.into_iter().fold(OpenApiRouter::new(), OpenApiRouter::merge)
}

/// Whether a path is answered with problems rather than plain text.
pub(crate) fn is_under(path: &str) -> bool {
    path.strip_prefix("/v1").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Puts a problem in place of an answer to a request for `path` that only says that the method is wrong.
pub(crate) fn explain_method(path: &str, response: Response) -> Response {
    match response.headers().get(ALLOW).filter(|_| is_under(path)) {
        Some(allow) => Problem::wrong_method(path, allow.clone()).into_response(),
        None => response,
    }
}
