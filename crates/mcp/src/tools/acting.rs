//! The tools for playing and for observing the game: act, observe, screenshot, wait and watch.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::{Value as Json, json};

use super::{Reply, ToolError, set};
use crate::backend::Object;
use crate::notes;
use crate::picture::{Picture, PictureOptions};
use crate::play::{self, Ended, Run, RunResult};
use crate::session::{ObjectOnly, Session, arguments};

/// The largest number of changes that `watch` lists.
const MAX_CHANGES: usize = 200;
/// The largest number of frames that `watch` plays: ten minutes of the game.
const MAX_WATCHED: u32 = 36_000;
/// How many frames `watch` plays in one batch, which has two operations for each frame.
const BATCH_FRAMES: u32 = 1_000;

// What follows are the schemas of the tools' arguments, for `Tool::arguments`.

pub(super) const ACT: &str = r#"
"keys":{"type":"string","description":"Sequence of presses KEYS:FRAMES. A pause at its end counts."},
"steps":{"type":"array","items":{"type":"object","properties":{
"hold":{"type":"string","description":"Such as Up+B; none if left out"},
"until":{"type":"string","description":"Condition that ends the step, such as y < 40"},
"frames":{"type":"integer",
"description":"Maximum number of frames (default with until: 600). If until does not hold by then, act ends"}},
"additionalProperties":false}},
"stop":{"type":"array","items":{"type":"string"},
"description":"Conditions, any of which ends act at once, such as lives < 3"},
"values":{"type":"array","items":{"type":"string"},"description":"Expressions to return: score, u16[0x02000038], x - 8"},
"picture":{"type":"object","properties":{"scale":{"type":"number","description":"0.25, 0.5, 1, 2, 3 or 4"},
"crop":{"type":"array","items":{"type":"integer"},"description":"[x, y, width, height]"},"grey":{"type":"boolean"},
"always":{"type":"boolean","description":"Even if unchanged"},
"unless":{"type":"string","description":"Mark of a picture that you have"}},"additionalProperties":false,
"description":"{} returns a picture if it changed"},
"note":{"type":"string","description":"Kept for resume"},
"key":{"type":"string","description":"A new UUID. If the reply is lost, repeat the call with it: nothing is played twice"}"#;

pub(super) const OBSERVE: &str = r#"
"values":{"type":"array","items":{"type":"string"},"description":"Expressions"}"#;

pub(super) const SCREENSHOT: &str = r#"
"scale":{"type":"number"},"crop":{"type":"array","items":{"type":"integer"},"description":"[x, y, width, height]"},
"grey":{"type":"boolean"}"#;

pub(super) const WATCH: &str = r#"
"values":{"type":"array","items":{"type":"string"},"description":"Expressions; [] ends the watch"},
"frames":{"type":"integer"}"#;

pub(super) const WAIT: &str = r#"
"until":{"type":"string","description":"Such as lives < 3 or frame > 5000"},
"frames":{"type":"integer","description":"Maximum number of frames (default: 600)"}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActArguments {
    keys: Option<String>,
    #[serde(default)]
    steps: Vec<StepArguments>,
    #[serde(default)]
    stop: Vec<String>,
    #[serde(default)]
    values: Vec<String>,
    picture: Option<PictureOptions>,
    note: Option<String>,
    key: Option<String>,
}

#[derive(Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, expecting = "an object with hold, until and frames")]
struct StepArguments {
    #[serde(default)]
    hold: String,
    until: Option<String>,
    frames: Option<u32>,
}

impl<'de> Deserialize<'de> for StepArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StepArguments, D::Error> {
        StepArguments::deserialize(ObjectOnly(deserializer))
    }
}

pub(super) async fn act(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let ActArguments { keys, steps, stop, values, picture, note, key } = arguments(given)?;
    let has_keys = keys.is_some();
    let steps: Vec<Json> = match (keys, steps) {
        (Some(_), steps) if !steps.is_empty() => {
            return Err(ToolError("keys and steps are both given; use one of them".to_owned()));
        }
        (Some(keys), _) => play::sequence_step(&keys)?.into_iter().collect(),
        (None, steps) => steps.into_iter().map(StepArguments::into_step).collect(),
    };
    if steps.is_empty() {
        let message =
            "there is nothing to play; give keys, such as \".:60\" for a second without keys, or steps";
        return Err(ToolError(message.to_owned()));
    }
    if let Some(picture) = &picture {
        picture.check()?;
    }
    if let Some(note) = &note {
        notes::check(&session, note)?;
    }
    // A key identifies the whole request, and another connection may repeat the call. So a call with a key does not
    // depend on what this connection remembers.
    let watched = if key.is_some() { Vec::new() } else { session.memory.lock().watched.clone() };
    let has_several_steps = steps.len() > 1;
    let run = Run {
        steps,
        stop: &stop,
        values: &values,
        watched: &watched,
        picture: picture.as_ref(),
        key: key.as_deref(),
    };
    let played = run.perform(&session).await.map_err(|error| about_keys(error, has_keys))?;
    let mut json = json!({"frame": played.frame, "frames": played.frames});
    json["ended"] = match &played.ended {
        Ended::Done => "all steps played".into(),
        Ended::Until(condition) => condition.as_str().into(),
        Ended::Stop(condition) => format!("stop: {condition}").into(),
        Ended::Timeout => "timeout: until did not hold".into(),
    };
    if has_several_steps && !matches!(played.ended, Ended::Done) {
        json["step"] = played.steps.into();
    }
    if !values.is_empty() {
        json["values"] = played.values;
    }
    if !watched.is_empty() {
        let [before, after] = &played.watched;
        json["changed"] = play::changes(before, after);
    }
    // The note comes first: `unless_known` counts the picture as sent, so nothing may fail after that.
    if let Some(note) = note {
        notes::add(&session, played.frame, &note, key.as_deref()).await?;
    }
    let picture = match picture {
        Some(options) => {
            let picture = options.picture(&played.picture)?;
            unless_known(&session, &options, picture, key.as_deref(), &mut json)
        }
        None => None,
    };
    Ok(Reply { json, picture })
}

/// The error in the words of the client. If the client wrote `keys`, the error is about `keys` and not about steps.
fn about_keys(ToolError(text): ToolError, has_keys: bool) -> ToolError {
    if !has_keys {
        return ToolError(text);
    }
    match text.strip_prefix("steps[0].") {
        Some(problem) => ToolError(format!("keys: {problem}")),
        None => ToolError(text.replacen("the steps take up to", "keys take", 1)),
    }
}

impl StepArguments {
    /// The step as the method `run` takes it.
    fn into_step(self) -> Json {
        let StepArguments { hold, until, frames } = self;
        let mut step = json!({});
        if !matches!(hold.trim(), "" | ".") {
            step["hold"] = hold.into();
        }
        set(&mut step, "until", until);
        set(&mut step, "frames", frames);
        step
    }
}

/// Writes the picture's mark to the reply. Returns the picture, unless the client has it already.
fn unless_known(
    session: &Session,
    options: &PictureOptions,
    picture: Picture,
    key: Option<&str>,
    json: &mut Json,
) -> Option<Picture> {
    let now = (picture.mark.clone(), key.map(str::to_owned));
    let before = session.memory.lock().picture.replace(now);
    // If a call is repeated with its key, the reply to the first one was lost, with its picture.
    let was_sent =
        before.is_some_and(|(mark, last)| mark == picture.mark && (key.is_none() || last.as_deref() != key));
    let known = options.unless.as_ref() == Some(&picture.mark) || was_sent;
    if known && !options.always {
        json["picture"] = format!("{} unchanged", picture.mark).into();
        return None;
    }
    json["picture"] = picture.mark.as_str().into();
    Some(picture)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ObserveArguments {
    #[serde(default)]
    values: Vec<String>,
}

pub(super) async fn observe(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let ObserveArguments { values } = arguments(given)?;
    let state = session.call("emulatorState", json!({})).await?;
    let mut json = json!({});
    for name in
        ["title", "code", "kind", "connected", "run", "speed", "lockstep", "frame", "problem", "save_problem"]
    {
        if !matches!(state[name], Json::Null | Json::Bool(false)) {
            json[name] = state[name].clone();
        }
    }
    if !values.is_empty() {
        let (frame, values, _) = play::look(&session, &values, false).await?;
        json["frame"] = frame.into();
        json["values"] = values;
    }
    let watched = session.memory.lock().watched.clone();
    if !watched.is_empty() {
        json["watched"] = watched.into();
    }
    Ok(json.into())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScreenshotArguments {
    scale: Option<f64>,
    crop: Option<[u32; 4]>,
    #[serde(default)]
    grey: bool,
}

pub(super) async fn screenshot(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let ScreenshotArguments { scale, crop, grey } = arguments(given)?;
    let options = PictureOptions { scale, crop, grey, always: true, unless: None };
    options.check()?;
    let (frame, _, shot) = play::look(&session, &[], true).await?;
    let mut json = json!({"frame": frame});
    let picture = unless_known(&session, &options, options.picture(&shot)?, None, &mut json);
    Ok(Reply { json, picture })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WatchArguments {
    values: Vec<String>,
    frames: Option<u32>,
}

pub(super) async fn watch(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let WatchArguments { values: texts, frames } = arguments(given)?;
    if let Some(frames) = frames
        && !(1..=MAX_WATCHED).contains(&frames)
    {
        return Err(ToolError(format!("frames is {frames}; use 1 to {MAX_WATCHED}")));
    }
    // No other tool may run frames between the first values and the first frame that is played here.
    let _playing = if frames.is_some() { Some(session.playing.lock().await) } else { None };
    // This call also refuses invalid expressions.
    let (frame, mut before, _) = play::look(&session, &texts, false).await?;
    session.memory.lock().watched.clone_from(&texts);
    let Some(frames) = frames else {
        return Ok(json!({"frame": frame, "values": before}).into());
    };
    let (mut frame, mut changes, mut total) = (frame, Vec::new(), 0_usize);
    for played in (0..frames).step_by(BATCH_FRAMES as usize) {
        let count = BATCH_FRAMES.min(frames - played);
        let each_frame = [json!({"op": "run", "steps": [{"frames": 1}]}), play::evaluate(&texts)];
        let ops = each_frame.iter().cycle().take(2 * count as usize).cloned().collect();
        let (_, results) = session.batch(ops).await?;
        for result in results.chunks_exact(2) {
            let [ran, after] = result else { continue };
            frame =
                ran["steps"][0]["frame"].as_u64().and_then(|frame| frame.try_into().ok()).unwrap_or(frame);
            if *after != before {
                total += 1;
                if total <= MAX_CHANGES {
                    changes.push(json!({"frame": frame, "changed": play::changes(&before, after)}));
                }
                before = after.clone();
            }
        }
    }
    let mut json = json!({"frame": frame, "changes": changes});
    if total > MAX_CHANGES {
        json["left_out"] = (total - MAX_CHANGES).into();
    }
    Ok(json.into())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitArguments {
    until: String,
    frames: Option<u32>,
}

pub(super) async fn wait(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let WaitArguments { until, frames } = arguments(given)?;
    let step = StepArguments { hold: String::new(), until: Some(until), frames };
    let steps = vec![step.into_step()];
    let run = Run { steps, stop: &[], values: &[], watched: &[], picture: None, key: None };
    // The client wrote no steps, so an error must not name one.
    let own = |ToolError(text): ToolError| ToolError(text.trim_start_matches("steps[0].").to_owned());
    let RunResult { frame, frames, ended, .. } = run.perform(&session).await.map_err(own)?;
    Ok(json!({"held": matches!(ended, Ended::Until(_)), "frame": frame, "frames": frames}).into())
}
