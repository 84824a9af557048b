//! Controls when frames run, and of which game.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use framewire_protocol::{Batch, Op, OpError, Status, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::operations::Operations;
use crate::operations::emulators::Served;
use crate::problem::Problem;
use crate::reading::Whole;
use crate::reading::fields::shown;
use crate::routing::extract::{EmulatorParam, Payload, RequestKey, SelectedEmulator};
use crate::routing::state::AppState;

/// Most frames that are run at once.
const MAX_FRAMES: u32 = 3600;
/// Longest lockstep without a request, in milliseconds.
const MAX_LOCKSTEP: u32 = 60_000;
/// How long a frame may take, when several are run at once: a third of a window's own speed.
const FRAME: Duration = Duration::from_millis(50);

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(advance))
        .routes(routes!(lockstep))
        .routes(routes!(speed))
        .routes(routes!(reset))
        .routes(routes!(load))
}

/// It was done.
#[derive(Serialize, ToSchema)]
pub(crate) struct AtFrame {
    /// The frame counter then.
    pub(crate) frame: u32,
}

/// Does one operation that has no result.
pub(crate) async fn change(
    operations: &Operations,
    served: &Served,
    key: Option<String>,
    op: Op,
) -> Result<Json<AtFrame>, Problem> {
    let outcome = operations.perform(served, Batch { key, ..op.into() }).await?;
    let frame = outcome.frame;
    outcome.single()?;
    Ok(Json(AtFrame { frame }))
}

/// Stops frames. Requests are answered all the same.
///
/// An mGBA in its window answers 501: its scripts cannot pause it. Pause it there, or use POST /v1/lockstep.
#[utoipa::path(post, path = "/v1/pause", operation_id = "pause", tag = "control", params(EmulatorParam),
    responses((status = 200, description = "No frame goes by.", body = AtFrame)))]
async fn pause(
    State(operations): State<Arc<Operations>>,
    SelectedEmulator(served): SelectedEmulator,
    RequestKey(key): RequestKey,
) -> Result<Json<AtFrame>, Problem> {
    change(&operations, &served, key, Op::Pause {}).await
}

/// Lets frames go by again: ends a pause, and lockstep.
#[utoipa::path(post, path = "/v1/resume", operation_id = "resume", tag = "control", params(EmulatorParam),
    responses((status = 200, description = "Frames go by.", body = AtFrame)))]
async fn resume(
    State(operations): State<Arc<Operations>>,
    SelectedEmulator(served): SelectedEmulator,
    RequestKey(key): RequestKey,
) -> Result<Json<AtFrame>, Problem> {
    change(&operations, &served, key, Op::Resume {}).await
}

/// Resets the console.
#[utoipa::path(post, path = "/v1/reset", operation_id = "reset", tag = "control", params(EmulatorParam),
    responses((status = 200, description = "It was reset.", body = AtFrame)))]
async fn reset(
    State(operations): State<Arc<Operations>>,
    SelectedEmulator(served): SelectedEmulator,
    RequestKey(key): RequestKey,
) -> Result<Json<AtFrame>, Problem> {
    change(&operations, &served, key, Op::Reset {}).await
}

/// How much longer than others operations may take that run frames.
pub(crate) fn time_of(ops: &[Op]) -> Duration {
    let frames = |op: &Op| if let Op::Advance { frames } = op { (*frames).min(MAX_FRAMES) } else { 0 };
    FRAME * ops.iter().map(frames).sum::<u32>().min(MAX_FRAMES)
}

/// How far to go.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Advance {
    /// Number of frames.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 3600, default = 1)]
    frames: Option<Whole<1, MAX_FRAMES>>,
}

/// How far it went.
#[derive(Serialize, ToSchema)]
struct Advanced {
    /// The frame counter after the last of the frames.
    frame: i64,
}

/// Runs frames now: 1, or as many as asked for.
///
/// An embedded core does so at any time, and stays paused or goes on as before. An attached mGBA needs lockstep, and runs them
/// at the speed of its window. The reply comes when they were run; requests that follow wait for it. It may take 50 ms a frame
/// longer than other requests before it is answered with 504.
#[utoipa::path(post, path = "/v1/advance", operation_id = "advance", tag = "control", params(EmulatorParam),
    request_body = Advance, responses((status = 200, description = "They were run.", body = Advanced)))]
async fn advance(
    State(operations): State<Arc<Operations>>,
    SelectedEmulator(served): SelectedEmulator,
    RequestKey(key): RequestKey,
    Payload(advance): Payload<Advance>,
) -> Result<Json<Advanced>, Problem> {
    let frames = advance.frames.map_or(1, Whole::get);
    let batch = Batch { key, ..Op::Advance { frames }.into() };
    let deadline = Instant::now() + operations.deadline + time_of(&batch.ops);
    match operations.perform_until(&served, batch, deadline).await?.single()? {
        Value::Int(frame) => Ok(Json(Advanced { frame })),
        _ => Err(Problem::new(StatusCode::BAD_GATEWAY, "the emulator did not say how far it went")),
    }
}

/// When lockstep ends by itself.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Lockstep {
    /// Required: milliseconds after which it ends if nobody asks for anything, 1 to 60,000; 0 ends it now.
    #[schema(value_type = u32, minimum = 0, maximum = 60000)]
    timeout: Whole<0, MAX_LOCKSTEP>,
}

/// Has each frame wait until POST /v1/advance asks for it.
#[utoipa::path(post, path = "/v1/lockstep", operation_id = "lockstep", tag = "control", params(EmulatorParam),
    request_body = Lockstep, responses((status = 200, description = "Frames wait.", body = AtFrame)))]
async fn lockstep(
    State(operations): State<Arc<Operations>>,
    SelectedEmulator(served): SelectedEmulator,
    RequestKey(key): RequestKey,
    Payload(Lockstep { timeout }): Payload<Lockstep>,
) -> Result<Json<AtFrame>, Problem> {
    change(&operations, &served, key, Op::Lockstep { timeout: timeout.get() }).await
}

/// A speed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Speed {
    /// How many times the console's rate, from 0.01 to 1000, or `unlimited`.
    #[schema(schema_with = rate_schema)]
    speed: Rate,
}

#[derive(Deserialize)]
#[serde(try_from = "serde_json::Value")]
struct Rate {
    thousandths: u32,
}

impl TryFrom<serde_json::Value> for Rate {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Rate, String> {
        if value == "unlimited" {
            return Ok(Rate { thousandths: 0 });
        }
        match value.as_f64() {
            Some(times) if (0.01..=1000.0).contains(&times) => {
                Ok(Rate { thousandths: (times * 1000.0).round() as u32 })
            }
            _ => {
                Err(format!("is {}; accepted is a number from 0.01 to 1000, or \"unlimited\"", shown(&value)))
            }
        }
    }
}

fn rate_schema() -> Schema {
    let times = ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0.01)).maximum(Some(1000));
    let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["unlimited"]));
    OneOfBuilder::new().item(times).item(name).into()
}

/// Changes how fast frames go by.
#[utoipa::path(post, path = "/v1/speed", operation_id = "speed", tag = "control", params(EmulatorParam),
    request_body = Speed, responses((status = 200, description = "They do.", body = AtFrame)))]
async fn speed(
    State(operations): State<Arc<Operations>>,
    SelectedEmulator(served): SelectedEmulator,
    RequestKey(key): RequestKey,
    Payload(Speed { speed }): Payload<Speed>,
) -> Result<Json<AtFrame>, Problem> {
    change(&operations, &served, key, Op::SetSpeed { thousandths: speed.thousandths }).await
}

/// The problem with a game or a state that the emulator does not take.
pub(crate) fn not_taken(error: OpError) -> Problem {
    match error.status {
        Status::Failed => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.message),
        _ => error.into(),
    }
}

/// A game.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Load {
    /// The ROM on the emulator's machine.
    #[schema(min_length = 1)]
    path: String,
}

/// Puts in another game and resets.
#[utoipa::path(post, path = "/v1/load", operation_id = "load", tag = "control", params(EmulatorParam), request_body = Load,
    responses((status = 200, description = "It is running.", body = AtFrame)))]
async fn load(
    State(operations): State<Arc<Operations>>,
    SelectedEmulator(served): SelectedEmulator,
    RequestKey(key): RequestKey,
    Payload(Load { path }): Payload<Load>,
) -> Result<Json<AtFrame>, Problem> {
    if path.is_empty() || path.contains('\0') {
        return Err(Problem::parameter(
            "path",
            "is empty or holds a NUL",
            "the path of a file on the emulator's machine",
        ));
    }
    let outcome =
        operations.perform(&served, Batch { key, ..Op::LoadRom { path: path.clone() }.into() }).await?;
    let frame = outcome.frame;
    match outcome.single() {
        Ok(Value::Bool(true)) => Ok(Json(AtFrame { frame })),
        Err(error) => Err(not_taken(error)),
        Ok(_) => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!(
                "{path:?} cannot be read there, or is not a ROM of this console; the game goes on as before"
            ),
        )),
    }
}
