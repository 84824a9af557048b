//! Controls which game runs, and when its frames run.

use framewire_protocol::{MAX_ADVANCE, Op, OpError, Outcome, Status};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};

use crate::reading::fields::check_path;
use crate::reading::{Whole, refusal};
use crate::routing::prelude::*;

/// The longest time for which lockstep can last without a request, in milliseconds.
const MAX_LOCKSTEP: u32 = 60_000;

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

/// The reply to a request that changes something.
#[derive(Serialize, ToSchema)]
pub(crate) struct AtFrame {
    /// The frame counter at the time of the change.
    pub(crate) frame: u32,
}

/// Performs an operation whose result is not part of the reply. If the emulator refuses the operation because of an
/// address, the problem names the parameter `address`.
pub(crate) async fn change(selected: &SelectedEmulator, op: Op) -> Result<Json<AtFrame>> {
    let outcome = selected.perform_checked(selected.keyed(op)).await?;
    let frame = outcome.frame;
    outcome.single()?;
    Ok(Json(AtFrame { frame }))
}

/// Pauses the game. The emulator still answers requests.
///
/// A stock mGBA answers 501, because its scripts cannot pause it. Pause it in its window, or use POST /v1/lockstep.
#[utoipa::path(post, path = "/v1/pause", operation_id = "pause", tag = "control", params(EmulatorParam),
    responses((status = 200, description = "The game is paused.", body = AtFrame)))]
async fn pause(selected: SelectedEmulator) -> Result<Json<AtFrame>> {
    change(&selected, Op::Pause {}).await
}

/// Continues the game: ends a pause or lockstep.
#[utoipa::path(post, path = "/v1/resume", operation_id = "resume", tag = "control", params(EmulatorParam),
    responses((status = 200, description = "The game runs.", body = AtFrame)))]
async fn resume(selected: SelectedEmulator) -> Result<Json<AtFrame>> {
    change(&selected, Op::Resume {}).await
}

/// Resets the console.
#[utoipa::path(post, path = "/v1/reset", operation_id = "reset", tag = "control", params(EmulatorParam),
    responses((status = 200, description = "The console was reset.", body = AtFrame)))]
async fn reset(selected: SelectedEmulator) -> Result<Json<AtFrame>> {
    change(&selected, Op::Reset {}).await
}

/// How many frames to run.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Advance {
    /// The number of frames.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 3600, default = 1)]
    frames: Option<Whole<1, MAX_ADVANCE>>,
}

/// The frame that the emulator reached.
#[derive(Serialize, ToSchema)]
struct Advanced {
    /// The frame counter after the last of the frames.
    frame: i64,
}

/// Runs the requested number of frames now; 1 by default.
///
/// An embedded core can do this at any time, and stays paused or continues as before. An attached mGBA must be in
/// lockstep, and runs the frames at the speed of its window. The reply comes when the frames have run, and later
/// requests wait until then. Each frame adds 50 ms to the time after which the reply is a 504.
#[utoipa::path(post, path = "/v1/advance", operation_id = "advance", tag = "control", params(EmulatorParam),
    request_body = Advance, responses((status = 200, description = "The frames have run.", body = Advanced)))]
async fn advance(selected: SelectedEmulator, Payload(advance): Payload<Advance>) -> Result<Json<Advanced>> {
    let frames = advance.frames.map_or(1, Whole::get);
    let outcome = selected.perform(selected.keyed(Op::Advance { frames })).await?;
    Ok(Json(Advanced { frame: outcome.single()?.try_into()? }))
}

/// The settings of lockstep.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Lockstep {
    /// Required. Lockstep ends after this many milliseconds without a request, 1 to 60,000. With 0, it ends now.
    #[schema(value_type = u32, minimum = 0, maximum = 60000)]
    timeout: Whole<0, MAX_LOCKSTEP>,
}

/// Begins lockstep: frames run only when a request needs them, such as POST /v1/advance or POST /v1/run.
#[utoipa::path(post, path = "/v1/lockstep", operation_id = "lockstep", tag = "control", params(EmulatorParam),
    request_body = Lockstep, responses((status = 200, description = "Lockstep has begun or ended.", body = AtFrame)))]
async fn lockstep(
    selected: SelectedEmulator,
    Payload(Lockstep { timeout }): Payload<Lockstep>,
) -> Result<Json<AtFrame>> {
    change(&selected, Op::Lockstep { timeout: timeout.get() }).await
}

/// A speed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Speed {
    /// A multiple of the console's speed, from 0.01 to 1000, or `unlimited`.
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
            _ => Err(refusal(&value, "a number from 0.01 to 1000, or \"unlimited\"")),
        }
    }
}

fn rate_schema() -> Schema {
    let times = ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0.01)).maximum(Some(1000));
    let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["unlimited"]));
    OneOfBuilder::new().item(times).item(name).into()
}

/// Changes how fast frames run.
#[utoipa::path(post, path = "/v1/speed", operation_id = "speed", tag = "control", params(EmulatorParam),
    request_body = Speed, responses((status = 200, description = "The speed was changed.", body = AtFrame)))]
async fn speed(
    selected: SelectedEmulator,
    Payload(Speed { speed }): Payload<Speed>,
) -> Result<Json<AtFrame>> {
    change(&selected, Op::SetSpeed { thousandths: speed.thousandths }).await
}

/// The problem with a game, a state or cheats that the emulator does not accept.
pub(crate) fn not_taken(error: OpError) -> Problem {
    match error.status {
        Status::Failed | Status::NotFound => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.message),
        _ => error.into(),
    }
}

/// The reply to an operation whose result says whether the emulator accepts a game or a state. `refusal` is the detail
/// of the problem if it does not.
pub(crate) fn taken(outcome: Outcome, refusal: impl Into<String>) -> Result<Json<AtFrame>> {
    let frame = outcome.frame;
    if bool::try_from(outcome.single().map_err(not_taken)?)? {
        return Ok(Json(AtFrame { frame }));
    }
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, refusal))
}

/// A game to load.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Load {
    /// The path of the ROM on the emulator's machine.
    #[schema(min_length = 1)]
    path: String,
}

/// Loads another game and resets the console.
#[utoipa::path(post, path = "/v1/load", operation_id = "load", tag = "control", params(EmulatorParam), request_body = Load,
    responses((status = 200, description = "The game was loaded.", body = AtFrame)))]
async fn load(selected: SelectedEmulator, Payload(Load { path }): Payload<Load>) -> Result<Json<AtFrame>> {
    check_path("path", &path)?;
    let outcome = selected.perform(selected.keyed(Op::LoadRom { path: path.clone() })).await?;
    let refusal = format!(
        "the emulator cannot read {path:?}, or it is not a ROM of this console; the current game continues"
    );
    taken(outcome, refusal)
}
