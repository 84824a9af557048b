//! The tools for pausing, speed and resets, for snapshots, ROMs and recordings, and for Lua code.

use std::cmp::Reverse;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{Reply, ToolError, check_uses, set};
use crate::backend::Object;
use crate::session::{Session, arguments};

/// The largest number of differing ranges that `compare` lists.
const MAX_DIFFERENCES: u32 = 40;
/// The largest number of snapshots or recordings that `list` lists.
const MAX_LISTED: u32 = 100;
/// The largest number of snapshots that one call of the method `snapshots` returns.
const SNAPSHOTS_PER_CALL: u32 = 1000;
/// The fields of a snapshot or a recording in a list.
const LISTED_FIELDS: [&str; 5] = ["name", "title", "frame", "time", "note"];
/// An mGBA window cannot be paused, so it is put into lockstep with this timeout, in milliseconds.
const LOCKSTEP: u32 = 60_000;

// What follows are the schemas of the tools' arguments, for `Tool::arguments`.

pub(super) const SNAPSHOT: &str = r#"
"action":{"type":"string","enum":["save","load","list","compare","delete"]},
"name":{"type":"string"},"to":{"type":"string"},"note":{"type":"string"},
"replace":{"type":"boolean","description":"Overwrite"},
"force":{"type":"boolean"}"#;

pub(super) const CONTROL: &str = r#"
"action":{"type":"string","enum":["pause","resume","reset","speed"]},"speed":{"type":"number"}"#;

pub(super) const RECORD: &str = r#"
"action":{"type":"string","enum":["start","stop","status","list","replay"]},
"name":{"type":"string"},"note":{"type":"string"},
"power_on":{"type":"boolean","description":"Start with a reset"}"#;

pub(super) const LOAD: &str = r#"
"path":{"type":"string","description":"On the emulator's machine"}"#;

pub(super) const SCRIPT: &str = r#"
"code":{"type":"string"}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotArguments {
    action: SnapshotAction,
    name: Option<String>,
    to: Option<String>,
    note: Option<String>,
    #[serde(default)]
    replace: bool,
    #[serde(default)]
    force: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SnapshotAction {
    Save,
    Load,
    List,
    Compare,
    Delete,
}

/// The name that an action needs, or an error if it is missing.
fn needed(name: Option<String>) -> Result<String, ToolError> {
    name.ok_or_else(|| {
        ToolError("name is missing; this action needs one, and list shows the names".to_owned())
    })
}

/// The fields of an object that have these names and are not empty.
fn only(object: &Json, names: &[&str]) -> Json {
    let mut part = json!({});
    for name in names {
        let value = &object[*name];
        if !value.is_null() && value != "" {
            part[*name] = value.clone();
        }
    }
    part
}

/// The list `name` in a reply, with only these fields of each entry.
pub(super) fn listed(reply: &Json, name: &str, fields: &[&str]) -> Json {
    let all = reply[name].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|each| only(each, fields)).collect()
}

/// The first snapshots or recordings, which the method `name` returns in a list with the same name.
async fn list(session: &Session, name: &str) -> Result<Json, ToolError> {
    let reply = session.call(name, json!({"limit": MAX_LISTED})).await?;
    Ok(json!({name: listed(&reply, name, &LISTED_FIELDS), "total": reply["total"]}))
}

pub(super) async fn snapshot(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    check_uses(
        &given,
        &[
            ("save", &["name", "note", "replace"]),
            ("load", &["name", "force"]),
            ("list", &[]),
            ("compare", &["name", "to"]),
            ("delete", &["name"]),
        ],
    )?;
    let SnapshotArguments { action, name, to, note, replace, force } = arguments(given)?;
    let json = match action {
        SnapshotAction::Save => {
            let mut body = json!({"replace": replace, "note": note.unwrap_or_default()});
            set(&mut body, "name", name);
            only(&session.call("saveSnapshot", body).await?, &["name", "frame"])
        }
        SnapshotAction::Load => {
            session.call("loadSnapshot", json!({"name": needed(name)?, "force": force})).await?
        }
        SnapshotAction::List => list(&session, "snapshots").await?,
        SnapshotAction::Compare => {
            let mut body = json!({"from": needed(name)?, "encoding": "hex", "limit": MAX_DIFFERENCES});
            set(&mut body, "to", to);
            let reply = session.call("diffSnapshots", body).await?;
            let mut json = only(&reply, &["from", "to", "total", "bytes"]);
            json["ranges"] = listed(&reply, "ranges", &["watch", "symbol", "old", "new"]);
            json
        }
        SnapshotAction::Delete => {
            session.call("deleteSnapshot", json!({"name": needed(name)?})).await?;
            json!({"deleted": true})
        }
    };
    Ok(json.into())
}

/// The last `count` snapshots that were made, the latest first.
pub(super) async fn latest_snapshots(session: &Session, count: usize) -> Result<Vec<Json>, ToolError> {
    let (mut all, mut offset) = (Vec::new(), json!(0));
    // The server sorts its list by name.
    while !offset.is_null() {
        let params = json!({"offset": offset, "limit": SNAPSHOTS_PER_CALL});
        let reply = session.call("snapshots", params).await?;
        all.extend(reply["snapshots"].as_array().into_iter().flatten().cloned());
        offset = reply["next"].clone();
    }
    let text = |snapshot: &Json, field: &str| snapshot[field].as_str().unwrap_or_default().to_owned();
    // All times are in UTC, so the order of their texts is their order in time. Older versions wrote times without
    // milliseconds. Their snapshots of the same second have equal times, and are sorted by name: default names contain
    // the time.
    all.sort_by_cached_key(|snapshot| Reverse((text(snapshot, "time"), text(snapshot, "name"))));
    Ok(all.iter().take(count).map(|snapshot| only(snapshot, &LISTED_FIELDS)).collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ControlArguments {
    action: ControlAction,
    speed: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ControlAction {
    Pause,
    Resume,
    Reset,
    Speed,
}

pub(super) async fn control(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    check_uses(&given, &[("pause", &[]), ("resume", &[]), ("reset", &[]), ("speed", &["speed"])])?;
    let ControlArguments { action, speed } = arguments(given)?;
    let json = match action {
        ControlAction::Pause => {
            let state = session.call("emulatorState", json!({})).await?;
            if state["kind"] == "attached" {
                let reply = session.call("v1.lockstep", json!({"timeout": LOCKSTEP})).await?;
                json!({"frame": reply["frame"], "note": "a window cannot be paused; it is in lockstep until 60 s pass without a call"})
            } else {
                session.call("v1.pause", json!({})).await?
            }
        }
        ControlAction::Resume => session.call("v1.resume", json!({})).await?,
        ControlAction::Reset => session.call("v1.reset", json!({})).await?,
        ControlAction::Speed => {
            let speed = speed.ok_or_else(|| {
                ToolError("speed is missing; use a factor such as 2, or 0 for unlimited".into())
            })?;
            let speed = if speed == 0.0 { json!("unlimited") } else { json!(speed) };
            session.call("speed", json!({"speed": speed})).await?
        }
    };
    Ok(json.into())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordArguments {
    action: RecordAction,
    name: Option<String>,
    note: Option<String>,
    #[serde(default)]
    power_on: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RecordAction {
    Start,
    Stop,
    Status,
    List,
    Replay,
}

pub(super) async fn record(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    check_uses(
        &given,
        &[
            ("start", &["name", "note", "power_on"]),
            ("stop", &["name"]),
            ("status", &["name"]),
            ("list", &[]),
            ("replay", &["name"]),
        ],
    )?;
    let RecordArguments { action, name, note, power_on } = arguments(given)?;
    let json = match action {
        RecordAction::Start => {
            let start = if power_on { "power-on" } else { "state" };
            let body = json!({"name": needed(name)?, "start": start, "note": note.unwrap_or_default()});
            session.call("startRecording", body).await.map_err(without_replace)?
        }
        RecordAction::Stop => {
            check_running(&session, name).await?;
            session.call("stopRecording", json!({})).await?
        }
        RecordAction::Status => session.call("recordingUnderWay", json!({})).await?,
        RecordAction::List => list(&session, "recordings").await?,
        RecordAction::Replay => {
            let name = needed(name)?;
            let _playing = session.playing.lock().await;
            session.call("replayRecording", json!({"name": name})).await?
        }
    };
    Ok(json.into())
}

/// Returns an error if a name is given and the recording that would be stopped has another name. That recording may
/// have ended by itself.
async fn check_running(session: &Session, name: Option<String>) -> Result<(), ToolError> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(()) };
    let status = session.call("recordingUnderWay", json!({})).await?;
    let running = status["name"].as_str().unwrap_or_default();
    // Names that differ only in case are the same name.
    if running.eq_ignore_ascii_case(&name) {
        return Ok(());
    }
    Err(ToolError(format!("name is {name:?}, but the recording is {running}; use that name, or no name")))
}

/// The error without the advice to use the field `replace`, which the tool `record` does not have.
fn without_replace(ToolError(text): ToolError) -> ToolError {
    ToolError(text.replace(", or replace it with \"replace\": true", ""))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadArguments {
    path: String,
}

pub(super) async fn load(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let LoadArguments { path } = arguments(given)?;
    session.call("load", json!({"path": path})).await?;
    let state = session.call("emulatorState", json!({})).await?;
    Ok(only(&state, &["title", "code", "run", "frame"]).into())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptArguments {
    code: String,
}

pub(super) async fn script(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let ScriptArguments { code } = arguments(given)?;
    let _playing = session.playing.lock().await;
    let reply = session.call("v1.script", json!({"code": code})).await?;
    // The error contains the whole reply, because the output before an error helps to find its cause.
    if reply["error"].is_string() {
        return Err(ToolError(reply.to_string()));
    }
    Ok(reply.into())
}
