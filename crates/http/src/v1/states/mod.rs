//! Savestates as bytes and as named snapshots, the differences between two snapshots, and battery saves.

use axum::body::Body;
use framewire_protocol::{Op, OpError, Value};

use super::control::{AtFrame, taken};
use crate::headers::FRAME;
use crate::operations::budget::BudgetShare;
use crate::routing::prelude::*;
use crate::transport::incoming::BodyReader;

pub(super) mod diff;
mod saves;
mod snapshots;

/// All of mGBA's flags for parts of a state, added up.
const MOST: u8 = 31;

pub(super) fn router() -> OpenApiRouter<AppState> {
    let own = OpenApiRouter::new().routes(routes!(save, restore));
    own.merge(saves::router()).merge(snapshots::router()).merge(diff::router())
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct SaveQuery {
    /// The parts to include, added up: 1 picture, 2 battery save, 4 cheats, 8 clock, 16 metadata. With a picture, the
    /// state is a PNG file.
    #[serde(default = "everything")]
    #[param(default = 31, maximum = 31)]
    flags: u8,
}

fn everything() -> u8 {
    MOST
}

/// Returns the state of the machine, in the format of mGBA's own files.
#[utoipa::path(get, path = "/v1/state", operation_id = "saveState", tag = "states", params(EmulatorParam, SaveQuery), responses(
    (status = 200, description = "The state. The header Framewire-Frame has the frame counter.", content(
        (Vec<u8> = "image/png"), (Vec<u8> = "application/octet-stream")))))]
async fn save(selected: SelectedEmulator, Query(SaveQuery { flags }): Query<SaveQuery>) -> Result<Response> {
    let (share, frame, state) = saved(&selected, check_flags(flags)?).await?;
    let kind = if flags & 1 != 0 { "image/png" } else { "application/octet-stream" };
    Ok(([(FRAME, frame.to_string())], share.bytes(kind, state)).into_response())
}

/// A state with these parts, its frame, and the memory that is reserved for the reply.
async fn saved(selected: &SelectedEmulator, flags: u8) -> Result<(BudgetShare, u32, Vec<u8>)> {
    let op = Op::SaveState { flags };
    let share = selected.share(&op)?;
    let outcome = selected.perform(op).await?;
    Ok((share, outcome.frame, outcome.single()?.try_into()?))
}

/// Loads a state.
///
/// The body is a state from GET /v1/state, or one of mGBA's own state files, with or without a picture.
#[utoipa::path(put, path = "/v1/state", operation_id = "loadState", tag = "states", params(EmulatorParam, LoadOptions),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "The state was loaded.", body = AtFrame)))]
async fn restore(
    State(bodies): State<Arc<BodyReader>>,
    selected: SelectedEmulator,
    Query(how): Query<LoadOptions>,
    body: Body,
) -> Result<Json<AtFrame>> {
    let bytes = bodies.read(body).await?;
    load(&selected, bytes.into(), how).await
}

/// How to load a state.
#[derive(Clone, Copy, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
#[schema(as = How)]
struct LoadOptions {
    /// The parts to load, added up: 1 picture, 2 battery save (it overwrites the game's save file), 4 cheats, 8 clock,
    /// 16 metadata.
    #[serde(default = "usual")]
    #[schema(default = 29, maximum = 31)]
    #[param(default = 29, maximum = 31)]
    flags: u8,
    /// Whether to load the state even if it is of another game.
    #[serde(default)]
    #[param(default = false)]
    force: bool,
}

/// The parts that are loaded by default: everything except the battery save, as in mGBA.
fn usual() -> u8 {
    29
}

fn check_flags(flags: u8) -> Result<u8> {
    if flags <= MOST {
        return Ok(flags);
    }
    let accepts = "the sum of any of 1 (picture), 2 (battery save), 4 (cheats), 8 (clock), 16 (metadata)";
    Err(Problem::parameter("flags", &format!("is {flags}"), accepts))
}

/// Loads a state if it is of the running game, or if the caller forces it.
async fn load(selected: &SelectedEmulator, bytes: Vec<u8>, how: LoadOptions) -> Result<Json<AtFrame>> {
    check_flags(how.flags)?;
    let state = framewire_states::State::read(&bytes)?;
    let mut ops = vec![Op::Checksum {}, Op::GameTitle {}];
    if how.force {
        ops.push(Op::SaveState { flags: 0 });
    }
    let mut results = selected.perform(ops).await?.results.into_iter();
    let (checksum, title): (i64, String) =
        (next_result(&mut results)?.try_into()?, next_result(&mut results)?.try_into()?);
    let same_game = checksum as u32 == state.checksum();
    let data = match results.next() {
        _ if same_game => bytes,
        // The caller forces it. The state gets the title and the checksum of the running game, so that mGBA accepts it.
        Some(now) => {
            let now: Vec<u8> = now?.try_into()?;
            state.as_of(&framewire_states::State::read(&now)?)?
        }
        None => {
            let detail = format!(
                "the state is of {} (checksum {:08x}), and {title} (checksum {checksum:08x}) is running; with \"force\" it \
                 is loaded all the same, and the game may crash",
                state.title(),
                state.checksum(),
            );
            return Err(Problem::conflict(detail));
        }
    };
    // `keyed` adds the request's `Idempotency-Key`, so that a repeated request does not load the state again.
    let batch = selected.keyed(Op::LoadState { data, flags: how.flags });
    let refusal = "the emulator does not accept this state: it is damaged, or of another game or version";
    taken(selected.perform(batch).await?, refusal)
}

/// The next result of a batch. A missing result is an error.
pub(super) fn next_result(
    results: &mut impl Iterator<Item = Result<Value, OpError>>,
) -> Result<Value, OpError> {
    results.next().unwrap_or_else(|| Err(OpError::failed("the reply does not hold all results")))
}
