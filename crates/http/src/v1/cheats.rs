//! Cheats of an embedded core.

use framewire_protocol::{Op, OpError, Value};
use utoipa::openapi::schema::{ArrayBuilder, OneOfBuilder, Schema};

use super::control::{AtFrame, change, not_taken};
use super::schemas::string;
use crate::reading::fields::check_path;
use crate::routing::prelude::*;

/// How many strings the result of the operation `cheats` has for each cheat.
const TEXTS: usize = 5;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, add, remove_all)).routes(routes!(switch, remove))
}

/// A list of cheats.
#[derive(Serialize, ToSchema)]
struct CheatList {
    /// The cheats in the order in which they were added. Their codes are applied in the same order.
    cheats: Vec<Cheat>,
}

/// A cheat.
#[derive(Serialize, ToSchema)]
struct Cheat {
    /// Its number.
    id: u32,
    name: String,
    /// The format of its codes, such as `codebreaker`.
    kind: String,
    /// Its codes, as they were given.
    codes: Vec<String>,
    /// Whether it is on.
    enabled: bool,
}

impl Cheat {
    fn read(texts: &[Value]) -> Option<Cheat> {
        let text = |index: usize| match texts.get(index)? {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        };
        Some(Cheat {
            id: text(0)?.parse().ok()?,
            enabled: text(1)? == "on",
            kind: text(2)?.to_owned(),
            name: text(3)?.to_owned(),
            codes: text(4)?.lines().map(str::to_owned).collect(),
        })
    }
}

/// The cheats of the game. They are removed when another game is loaded. A reset or a loaded state does not change
/// them.
///
/// A stock mGBA answers 501, because its scripts cannot use cheats.
#[utoipa::path(get, path = "/v1/cheats", operation_id = "cheats", tag = "cheats", params(EmulatorParam),
    responses((status = 200, description = "All cheats.", body = CheatList)))]
async fn list(selected: SelectedEmulator) -> Result<Response> {
    let op = Op::Cheats {};
    let share = selected.share(&op)?;
    let cheats = match selected.perform(op).await?.single()? {
        Value::List(texts) => texts.chunks(TEXTS).map(Cheat::read).collect(),
        _ => None,
    };
    let cheats = cheats.ok_or_else(|| OpError::failed("the emulator's list of cheats cannot be read"))?;
    Ok(share.json(&CheatList { cheats }))
}

/// A cheat, or a file of cheats.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "Nine lives", "kind": "raw", "codes": ["0200004C:0009"]}))]
struct NewCheat {
    /// The path of a file of cheats in mGBA's format, on the emulator's machine. No other field may be given with it.
    path: Option<String>,
    /// The name to display. Default: `cheat`.
    name: Option<String>,
    /// The format of its codes: `gameshark`, `gameshark_raw`, `action_replay`, `action_replay_raw`, `codebreaker`,
    /// `game_genie` or `raw`; or `auto`, which detects the format of each code. Default: `auto`.
    kind: Option<String>,
    /// Its codes: a list, or a string with one code on each line.
    #[schema(schema_with = codes_schema)]
    codes: Option<Codes>,
    /// Whether it is on. Default: true.
    enabled: Option<bool>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "has a wrong type; accepted is a list of codes, or a text with one on each line"
)]
enum Codes {
    Text(String),
    List(Vec<String>),
}

fn codes_schema() -> Schema {
    OneOfBuilder::new().item(string()).item(ArrayBuilder::new().items(string())).into()
}

/// The cheats that were added.
#[derive(Serialize, ToSchema)]
struct Added {
    /// The number of the cheat. Absent for a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    /// How many cheats were added.
    count: i64,
    /// The frame counter when they were added.
    frame: u32,
}

/// Adds a cheat, or the cheats of a file. The codes of a cheat that is on are applied at once, and then after each
/// frame.
///
/// If a code is not valid, nothing is added, and the problem names the line and the reason.
#[utoipa::path(post, path = "/v1/cheats", operation_id = "addCheat", tag = "cheats", params(EmulatorParam),
    request_body = NewCheat, responses((status = 200, description = "The cheat was added.", body = Added)))]
async fn add(
    selected: SelectedEmulator,
    Payload(NewCheat { path, name, kind, codes, enabled }): Payload<NewCheat>,
) -> Result<Json<Added>> {
    let op = match (path, codes) {
        (Some(path), None) if name.is_none() && kind.is_none() && enabled.is_none() => {
            check_path("path", &path)?;
            Op::LoadCheats { path }
        }
        (None, Some(codes)) => Op::AddCheat {
            name: name.unwrap_or_else(|| "cheat".to_owned()),
            kind: kind.unwrap_or_else(|| "auto".to_owned()),
            codes: match codes {
                Codes::Text(text) => text,
                Codes::List(lines) => lines.join("\n"),
            },
            enabled: enabled.unwrap_or(true),
        },
        (None, None) => {
            let accepts = "a list of codes; or `path`, a file of cheats";
            return Err(Problem::parameter("codes", "is missing", accepts));
        }
        (Some(_), _) => {
            let accepts = "`path` alone, or `codes` with `name`, `kind` and `enabled`";
            return Err(Problem::parameter("path", "is given together with other fields", accepts));
        }
    };
    let single = matches!(op, Op::AddCheat { .. });
    let outcome = selected.perform(selected.keyed(op)).await?;
    let (frame, number) = (outcome.frame, outcome.single().map_err(not_taken)?.try_into()?);
    let (id, count) = if single { (Some(number), 1) } else { (None, number) };
    Ok(Json(Added { id, count, frame }))
}

/// Whether a cheat is on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Switch {
    enabled: bool,
}

/// Switches a cheat on or off. When it is switched off, the bytes of the ROM that it changed are restored at once, but
/// not the bytes of RAM.
#[utoipa::path(put, path = "/v1/cheats/{id}", operation_id = "switchCheat", tag = "cheats",
    params(("id" = u32, Path, description = "The number of the cheat."), EmulatorParam), request_body = Switch,
    responses((status = 200, description = "The cheat was switched.", body = AtFrame)))]
async fn switch(
    selected: SelectedEmulator,
    Path(id): Path<u32>,
    Payload(Switch { enabled }): Payload<Switch>,
) -> Result<Json<AtFrame>> {
    change(&selected, Op::EnableCheat { id, enabled }).await
}

/// Removes a cheat.
#[utoipa::path(delete, path = "/v1/cheats/{id}", operation_id = "removeCheat", tag = "cheats",
    params(("id" = u32, Path, description = "The number of the cheat."), EmulatorParam),
    responses((status = 200, description = "The cheat was removed.", body = AtFrame)))]
async fn remove(selected: SelectedEmulator, Path(id): Path<u32>) -> Result<Json<AtFrame>> {
    if id == 0 {
        return Err(Problem::not_found("there is no cheat 0; DELETE /v1/cheats removes all cheats"));
    }
    change(&selected, Op::RemoveCheat { id }).await
}

/// Removes all cheats.
#[utoipa::path(delete, path = "/v1/cheats", operation_id = "removeCheats", tag = "cheats", params(EmulatorParam),
    responses((status = 200, description = "All cheats were removed.", body = AtFrame)))]
async fn remove_all(selected: SelectedEmulator) -> Result<Json<AtFrame>> {
    change(&selected, Op::RemoveCheat { id: 0 }).await
}
