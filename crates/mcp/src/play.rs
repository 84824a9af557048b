//! Plays the game through the method `run`: the emulator itself presses keys, evaluates conditions after each frame,
//! and reads values and the picture in exactly the frame in which the run ends.

use framewire_protocol::{Keys, sequence};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::backend::Problem;
use crate::picture::PictureOptions;
use crate::session::Session;
use crate::tools::{ToolError, set};

pub(crate) struct Run<'a> {
    /// The steps, as the method `run` takes them.
    pub(crate) steps: Vec<Json>,
    /// The run ends as soon as one of these conditions holds.
    pub(crate) stop: &'a [String],
    /// Expressions to evaluate at the end.
    pub(crate) values: &'a [String],
    /// Expressions to evaluate at the beginning and at the end.
    pub(crate) watched: &'a [String],
    /// How to change the picture that is taken at the end. If it is `None`, no picture is taken.
    pub(crate) picture: Option<&'a PictureOptions>,
    /// The idempotency key. A run that is repeated with the same key is performed only once.
    pub(crate) key: Option<&'a str>,
}

pub(crate) struct RunResult {
    /// The frame counter at the end.
    pub(crate) frame: u32,
    /// The number of frames that were run.
    pub(crate) frames: u64,
    /// The number of steps that were begun.
    pub(crate) steps: usize,
    pub(crate) ended: Ended,
    /// The values at the end, by the texts of their expressions.
    pub(crate) values: Json,
    /// The watched values before the first frame and at the end, by the texts of their expressions.
    pub(crate) watched: [Json; 2],
    /// A PNG in base64, or null.
    pub(crate) picture: Json,
}

/// Why a run ended.
pub(crate) enum Ended {
    /// All steps are over.
    Done,
    /// This condition of the last step holds.
    Until(String),
    /// This condition of `stop` holds.
    Stop(String),
    /// The condition of a step did not hold within the frames of the step.
    Timeout,
}

/// The reply of the method `run`, without the results of `ops` and `then`.
#[derive(Deserialize)]
struct RunReply {
    frame: u32,
    why: String,
    condition: Option<HeldCondition>,
    frames: u64,
    steps: Vec<Json>,
    #[serde(default)]
    values: Json,
}

#[derive(Deserialize)]
struct HeldCondition {
    text: String,
}

/// The step that plays a sequence such as `A:2 .:10 Up+B:30`. `None` if the sequence is empty.
pub(crate) fn sequence_step(text: &str) -> Result<Option<Json>, ToolError> {
    let presses = sequence::parse(text).map_err(|sequence::WrongPress(word)| {
        ToolError(format!(
            "keys: {word:?} is not a press; use A, B, Select, Start, Right, Left, Up, Down, R or L with + between, or . for none, \
             and the number of frames after a colon, such as Up+B:30"
        ))
    })?;
    if presses.is_empty() {
        return Ok(None);
    }
    // The method `run` does not accept a sequence that presses no key.
    if presses.iter().all(|(keys, _)| *keys == Keys::default()) {
        let frames: u32 = presses.iter().map(|(_, frames)| frames).sum();
        return Ok(Some(json!({"frames": frames})));
    }
    Ok(Some(json!({"sequence": text})))
}

/// Evaluates expressions, without running a frame. Also takes a picture if `picture` is true. Returns the frame
/// counter, the values, and the picture or null.
pub(crate) async fn look(
    session: &Session,
    values: &[String],
    picture: bool,
) -> Result<(u32, Json, Json), ToolError> {
    let mut ops = vec![evaluate(values)];
    if picture {
        ops.push(json!({"op": "screenshot"}));
    }
    let (frame, mut results) = session.batch(ops).await?;
    let shot = if picture { results.pop().unwrap_or_default() } else { Json::Null };
    Ok((frame, results.pop().unwrap_or_default(), shot))
}

/// The operation that evaluates expressions.
pub(crate) fn evaluate(values: &[String]) -> Json {
    json!({"op": "evaluate", "values": values})
}

/// The values that have changed, each as `[before, after]`.
pub(crate) fn changes(before: &Json, after: &Json) -> Json {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else { return json!({}) };
    let differs = |(name, new): (&String, &Json)| {
        let old = before.get(name).unwrap_or(&Json::Null);
        if old == new { None } else { Some((name.clone(), json!([old, new]))) }
    };
    Json::Object(after.iter().filter_map(differs).collect())
}

impl Run<'_> {
    pub(crate) async fn perform(self, session: &Session) -> Result<RunResult, ToolError> {
        let Run { steps, stop, values, watched, picture, key } = self;
        let mut then = Vec::new();
        let mut params = json!({"steps": steps, "values": values});
        if !stop.is_empty() {
            params["stop"] = json!(stop);
        }
        if !watched.is_empty() {
            params["ops"] = json!([evaluate(watched)]);
            then.push(evaluate(watched));
        }
        if picture.is_some() {
            then.push(json!({"op": "screenshot"}));
        }
        params["then"] = then.into();
        set(&mut params, "idempotency_key", key);
        // This is awaited before anything else, so that calls run their frames in the order in which they began.
        let _playing = session.playing.lock().await;
        // The size of the picture depends on the game. A wrong `crop` must fail before the frames are played.
        if let Some(options) = picture.filter(|options| options.crop.is_some()) {
            options.check_for(&look(session, &[], true).await?.2)?;
        }
        let mut reply = session.call("run", params).await.map_err(about_watch)?;
        let (mut before, mut after) = (take_values(&mut reply, "ops")?, take_values(&mut reply, "then")?);
        let picture = if picture.is_some() { after.pop().unwrap_or_default() } else { Json::Null };
        let watched = [&mut before, &mut after].map(|values| values.pop().unwrap_or_default());
        let reply: RunReply = serde_json::from_value(reply)
            .map_err(|error| ToolError(format!("the server's reply to run cannot be read: {error}")))?;
        let RunReply { frame, why, condition, frames, steps, values } = reply;
        let ended = match (why.as_str(), condition) {
            ("condition", Some(condition)) => Ended::Until(condition.text),
            ("stop", Some(condition)) => Ended::Stop(condition.text),
            ("timeout", _) => Ended::Timeout,
            _ => Ended::Done,
        };
        Ok(RunResult { frame, frames, steps: steps.len(), ended, values, watched, picture })
    }
}

/// Rewrites an error about the expressions of the tool `watch`. They are the only operation before a run, so such an
/// error begins with `ops[0]`. That says nothing to the client, which did not write these expressions in this call.
fn about_watch(ToolError(text): ToolError) -> ToolError {
    match text.strip_prefix("ops[0]") {
        Some(why) => ToolError(format!(
            "the expressions of the tool watch cannot be evaluated: {}; call watch with other values, or with [] to end it",
            why.trim_start_matches(['.', ':', ' '])
        )),
        None => ToolError(text),
    }
}

/// Takes the results of operations from this field of a reply. Returns their values.
pub(crate) fn take_values(reply: &mut Json, field: &str) -> Result<Vec<Json>, ToolError> {
    let results = reply[field].as_array_mut().map(std::mem::take).unwrap_or_default();
    results.into_iter().map(value_of).collect()
}

/// The value in the result of an operation.
fn value_of(mut result: Json) -> Result<Json, ToolError> {
    match result.get("error") {
        Some(problem) => Err(Problem::from_json(problem).into()),
        None => Ok(result["value"].take()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_of_pauses_is_a_number_of_frames() {
        assert_eq!(sequence_step(" ").unwrap(), None);
        assert_eq!(sequence_step(".:60 .").unwrap(), Some(json!({"frames": 61})));
        assert_eq!(sequence_step("A:2 .:60").unwrap(), Some(json!({"sequence": "A:2 .:60"})));
    }

    #[test]
    fn invalid_presses_are_refused() {
        for word in ["A:0", "A:x", "Q:2", "A+:2"] {
            let error = sequence_step(&format!("B {word}")).err().unwrap().0;
            assert!(error.contains(&format!("{word:?} is not a press")), "{word}: {error}");
        }
    }

    #[test]
    fn an_error_about_watched_expressions_names_the_tool_watch() {
        let ToolError(text) =
            about_watch(ToolError("ops[0].values.score: no symbol is called \"score\"".into()));
        assert!(
            text.starts_with("the expressions of the tool watch cannot be evaluated: values.score: no"),
            "{text}"
        );
        let other = "steps[0].until: no symbol is called \"score\"";
        assert_eq!(about_watch(ToolError(other.into())).0, other);
    }

    #[test]
    fn changes_are_only_the_values_that_differ() {
        let (before, after) = (json!({"a": 1, "b": null, "c": 3}), json!({"a": 1, "b": 2, "c": 4}));
        assert_eq!(changes(&before, &after), json!({"b": [null, 2], "c": [3, 4]}));
    }
}
