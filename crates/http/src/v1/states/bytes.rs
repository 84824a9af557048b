//! The state of the machine as bytes.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use framewire_protocol::{Op, Value};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::load::{LoadOptions, USUAL, check_flags, load, unexpected_reply};
use crate::headers::FRAME;
use crate::operations::Operations;
use crate::problem::Problem;
use crate::routing::extract::{EmulatorParam, Query, RequestKey, SelectedEmulator};
use crate::routing::state::AppState;
use crate::transport::incoming::BodyReader;
use crate::v1::control::AtFrame;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(save, restore))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct SaveQuery {
    /// What goes in, added up: 1 picture, 2 battery save, 4 cheats, 8 clock, 16 metadata. With a picture the state is a PNG
    /// file.
    #[serde(default = "everything")]
    #[param(default = 31, maximum = 31)]
    flags: u8,
}

fn everything() -> u8 {
    31
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct RestoreQuery {
    /// What to load, added up: 1 picture, 2 battery save (it overwrites the game's save file), 4 cheats, 8 clock.
    #[serde(default = "usual")]
    #[param(default = 29, maximum = 31)]
    flags: u8,
    /// Whether to load it although it is another game's.
    #[serde(default)]
    #[param(default = false)]
    force: bool,
}

fn usual() -> u8 {
    USUAL
}

/// The state of the machine, in the form of mGBA's own files.
#[utoipa::path(get, path = "/v1/state", operation_id = "saveState", tag = "states", params(EmulatorParam, SaveQuery), responses(
    (status = 200, description = "The state. The header Framewire-Frame has the frame counter.", content(
        (Vec<u8> = "image/png"), (Vec<u8> = "application/octet-stream")))))]
async fn save(
    State(operations): State<Arc<Operations>>,
    SelectedEmulator(served): SelectedEmulator,
    Query(SaveQuery { flags }): Query<SaveQuery>,
) -> Result<Response, Problem> {
    let op = Op::SaveState { flags: check_flags(flags)? };
    let share = operations.replies.share(&op)?;
    let outcome = operations.perform(&served, op.into()).await?;
    let frame = outcome.frame;
    let Value::Bytes(state) = outcome.single()? else { return Err(unexpected_reply()) };
    let kind = if flags & 1 != 0 { "image/png" } else { "application/octet-stream" };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (FRAME, HeaderValue::from(frame)),
    ];
    Ok((headers, share.body(state)).into_response())
}

/// Puts the machine into a state.
///
/// The body is a state as GET gives it, or one of mGBA's own files, bare or as a PNG.
#[utoipa::path(put, path = "/v1/state", operation_id = "loadState", tag = "states", params(EmulatorParam, RestoreQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "It was loaded.", body = AtFrame)))]
async fn restore(
    State(operations): State<Arc<Operations>>,
    State(bodies): State<Arc<BodyReader>>,
    SelectedEmulator(served): SelectedEmulator,
    RequestKey(key): RequestKey,
    Query(RestoreQuery { flags, force }): Query<RestoreQuery>,
    body: Body,
) -> Result<Json<AtFrame>, Problem> {
    let bytes = bodies.read(body).await?;
    load(&operations, &served, key, bytes.into(), LoadOptions { flags, force }).await.map(Json)
}
