//! Playing and looking.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{Reply, ToolError};
use crate::backend::Object;
use crate::notes;
use crate::picture::{Picture, PictureOptions};
use crate::play::{self, Ended, MAX_FRAMES, Run, Step};
use crate::session::{Session, arguments};
use crate::values::Values;

/// Most changes that `watch` lists.
const MAX_CHANGES: usize = 200;
/// Frames that `wait` and steps with a condition take at most, where nothing else is said.
const USUAL_FRAMES: u32 = 600;

pub(super) const ACT: &str = r#"
"keys":{"type":"string","description":"Sequence of presses KEYS:FRAMES. A pause at its end counts."},
"steps":{"type":"array","items":{"type":"object","properties":{
"hold":{"type":"string","description":"Such as Up+B; none if left out"},
"until":{"type":"string","description":"Condition that ends the step, such as y < 40"},
"frames":{"type":"integer","description":"Most frames (600 with until). If until does not hold by then, act ends"}},
"additionalProperties":false}},
"stop":{"type":"array","items":{"type":"string"},"description":"Conditions of which any ends act at once, such as lives < 3"},
"values":{"type":"array","items":{"type":"string"},"description":"Expressions to return: score, u16[0x02000038], x - 8"},
"picture":{"type":"object","properties":{"scale":{"type":"number","description":"0.25, 0.5, 1, 2, 3 or 4"},
"crop":{"type":"array","items":{"type":"integer"},"description":"[x, y, width, height]"},"grey":{"type":"boolean"},
"always":{"type":"boolean","description":"Also if unchanged"},
"unless":{"type":"string","description":"Mark of a picture that you have"}},"additionalProperties":false,
"description":"{} returns a picture if it changed"},
"note":{"type":"string","description":"Kept for resume"}"#;

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
"frames":{"type":"integer","description":"At most (600)"}"#;

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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepArguments {
    #[serde(default)]
    hold: String,
    until: Option<String>,
    frames: Option<u32>,
}

pub(super) async fn act(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let ActArguments { keys, steps, stop, values, picture, note } = arguments(given)?;
    let steps = match (keys, steps) {
        (Some(_), steps) if !steps.is_empty() => {
            return Err(ToolError("keys and steps are both given; use one of them".to_owned()));
        }
        (Some(keys), _) => play::sequence(&keys)?,
        (None, steps) => compile_steps(&session, steps).await?,
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
    let watched = session.memory.lock().watched.clone();
    let all: Vec<String> = values.iter().chain(&watched).cloned().collect();
    let stop = Values::compile(&session, "stop", &stop).await?;
    let values = Values::compile(&session, "values", &values).await?;
    let watched = Values::compile(&session, "watch", &watched).await?;
    let run = Run {
        steps,
        stop,
        watched: Values::compile(&session, "values", &all).await?,
        each_frame: false,
        picture: picture.is_some(),
    };
    run.check()?;
    let played = run.perform(&session).await?;
    let mut json = json!({"frame": played.frame, "frames": played.frames});
    json["ended"] = match &played.ended {
        Ended::Done => "all steps played".into(),
        Ended::Until(condition) => condition.as_str().into(),
        Ended::Stop(condition) => format!("stop: {condition}").into(),
        Ended::Timeout => "timeout: until did not hold".into(),
    };
    if run.steps.len() > 1 && !matches!(played.ended, Ended::Done) {
        json["step"] = played.step.into();
    }
    if let [first, last] = &played.watched[..] {
        if !values.is_empty() {
            json["values"] = values.to_json(&run.watched.part(&values, last));
        }
        if !watched.is_empty() {
            let [before, after] = [first, last].map(|numbers| run.watched.part(&watched, numbers));
            json["changed"] = watched.changes(&before, &after);
        }
    }
    let picture = match picture {
        Some(options) => unless_known(&session, &options, options.picture(&played.picture)?, &mut json),
        None => None,
    };
    if let Some(note) = note {
        notes::add(&session, played.frame, &note).await?;
    }
    Ok(Reply { json, picture })
}

async fn compile_steps(session: &Session, steps: Vec<StepArguments>) -> Result<Vec<Step>, ToolError> {
    let mut compiled = Vec::with_capacity(steps.len());
    for (index, StepArguments { hold, until, frames }) in steps.into_iter().enumerate() {
        let frames = match (frames, &until) {
            (Some(frames @ 1..=MAX_FRAMES), _) => frames,
            (None, Some(_)) => USUAL_FRAMES,
            (None, None) => {
                return Err(ToolError(format!(
                    "steps[{index}] has neither frames nor until; give one of them"
                )));
            }
            (Some(frames), _) => {
                return Err(ToolError(format!("steps[{index}].frames is {frames}; use 1 to {MAX_FRAMES}")));
            }
        };
        let until = match until {
            Some(until) => Some(Values::compile(session, &format!("steps[{index}].until"), &[until]).await?),
            None => None,
        };
        compiled.push(Step { keys: play::mask(&hold)?, frames, until });
    }
    Ok(compiled)
}

/// The picture, and its mark in the reply; no picture if the client has it.
fn unless_known(
    session: &Session,
    options: &PictureOptions,
    picture: Picture,
    json: &mut Json,
) -> Option<Picture> {
    let before = session.memory.lock().picture.replace(picture.mark.clone());
    let known = options.unless.as_ref() == Some(&picture.mark) || before.as_ref() == Some(&picture.mark);
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
    let values = Values::compile(&session, "values", &values).await?;
    let mut json = json!({});
    for name in
        ["title", "code", "kind", "connected", "run", "speed", "lockstep", "frame", "problem", "save_problem"]
    {
        if !matches!(state[name], Json::Null | Json::Bool(false)) {
            json[name] = state[name].clone();
        }
    }
    if !values.is_empty() {
        let (numbers, _) = play::look(&session, &values, false).await?;
        json["frame"] = numbers.frame.into();
        json["values"] = values.to_json(&numbers);
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
    let none = Values::compile(&session, "values", &[]).await?;
    let (numbers, shot) = play::look(&session, &none, true).await?;
    let mut json = json!({"frame": numbers.frame});
    let picture = unless_known(&session, &options, options.picture(&shot)?, &mut json);
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
    let values = Values::compile(&session, "values", &texts).await?;
    session.memory.lock().watched = texts;
    let Some(frames) = frames else {
        let (numbers, _) = play::look(&session, &values, false).await?;
        return Ok(json!({"frame": numbers.frame, "values": values.to_json(&numbers)}).into());
    };
    if !(1..=MAX_FRAMES).contains(&frames) {
        return Err(ToolError(format!("frames is {frames}; use 1 to {MAX_FRAMES}")));
    }
    let stop = Values::compile(&session, "stop", &[]).await?;
    let steps = vec![Step { keys: 0, frames, until: None }];
    let run = Run { steps, stop, watched: values, each_frame: true, picture: false };
    let played = run.perform(&session).await?;
    let mut changes = Vec::new();
    for pair in played.watched.windows(2) {
        if let [before, after] = pair {
            changes.push(json!({"frame": after.frame, "changed": run.watched.changes(before, after)}));
        }
    }
    let total = changes.len();
    changes.truncate(MAX_CHANGES);
    let mut json = json!({"frame": played.frame, "changes": changes});
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
    let state = session.call("emulatorState", json!({})).await?;
    let frames = frames.unwrap_or(USUAL_FRAMES);
    if state["run"] == "running" && state["lockstep"] != true {
        return Ok(session.call("wait", json!({"until": until, "frames": frames})).await?.into());
    }
    let steps = vec![StepArguments { hold: String::new(), until: Some(until), frames: Some(frames) }];
    let run = Run {
        steps: compile_steps(&session, steps).await?,
        stop: Values::compile(&session, "stop", &[]).await?,
        watched: Values::compile(&session, "values", &[]).await?,
        each_frame: false,
        picture: false,
    };
    let played = run.perform(&session).await?;
    let held = matches!(played.ended, Ended::Until(_));
    Ok(json!({"held": held, "frame": played.frame, "frames": played.frames}).into())
}
