//! Everything under `/v1`: JSON in, JSON out, [`Problem`]s where something is wrong.
//!
//! Each submodule holds a few routes and gives them by a function `router()`, made of handlers with `#[utoipa::path]`,
//! so that a route and its description are one thing. A handler takes [`extract::Chosen`] for the emulator that
//! `?emulator=` names, [`extract::Payload`] for a JSON body, [`extract::Query`] and [`extract::Path`] for parameters, and
//! returns `Result<_, Problem>`. The statuses that any route may answer with are added to each description by
//! [`crate::docs::openapi`].

pub(crate) mod batch;
pub(crate) mod bounds;
pub(crate) mod control;
pub(crate) mod convenience;
mod emulators;
mod events;
mod input;
pub(crate) mod json;
mod media;
mod memory;
mod operations;
mod page;
pub(crate) mod plan;
pub(crate) mod recordings;
pub(crate) mod schemas;
mod search;
mod sse;
mod states;
mod symbols;
pub(crate) mod timeline;
pub(crate) mod wait;
mod watches;

use std::sync::Arc;

use axum::http::header::ALLOW;
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;

use crate::app::Site;
use crate::problem::{Problem, is_under_v1};

/// All routes with their descriptions.
pub(crate) fn router() -> OpenApiRouter<Arc<Site>> {
    #[rustfmt::skip] // one a line
    let all = [
        batch::router(),
        control::router(),
        emulators::router(),
        events::router(),
        input::router(),
        media::router(),
        memory::router(),
        operations::router(),
        recordings::router(),
        search::router(),
        states::router(),
        symbols::router(),
        wait::router(),
        watches::router(),
    ];
    all.into_iter().fold(OpenApiRouter::new(), OpenApiRouter::merge)
}

/// Puts a problem in place of an answer to a request for `path` that only says that the method is wrong.
pub(crate) fn explain_method(path: &str, response: Response) -> Response {
    match response.headers().get(ALLOW).filter(|_| is_under_v1(path)) {
        Some(allow) => Problem::wrong_method(path, allow.clone()).into_response(),
        None => response,
    }
}
