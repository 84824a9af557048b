//! Keys: taps, holds, releases, and timelines that the emulator plays frame by frame.

use std::time::Duration;

use framewire_emulator::{EmulatorError, Event, EventKind, SetSpeed};
use framewire_protocol::{Keys, Op, Status, Value};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use super::control::{AtFrame, change};
use super::timeline::{Input, KeySet, PlannedPress, Timeline, unplayed};
use crate::failure::STOPPING;
use crate::reading::Whole;
use crate::routing::prelude::*;

/// Longest wait for a timeline's end, in milliseconds: an hour.
const MAX_WAIT: u32 = 3_600_000;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(play, cancel_all))
        .routes(routes!(timeline, cancel))
        .routes(routes!(tap))
        .routes(routes!(hold))
        .routes(routes!(release))
}

/// The frames in which a timeline is played.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Planned {
    /// The number of the timeline, with which it can be cancelled.
    id: i64,
    /// The frame counter in the first frame of the timeline, which has the offset 0.
    first: u64,
    /// The last frame of the timeline, including a pause at its end.
    last: u64,
    /// The frames of each press, in the order in which they begin.
    presses: Vec<PlannedPress>,
}

impl Planned {
    /// The frames of `timeline`, which was begun or appended between `frame` and the next one. `begun` is the result of
    /// the operation that [`Timeline::op`] returns: the timeline's number and, if the timeline was appended, how many
    /// frames come before it.
    pub(crate) fn new(timeline: &Timeline, frame: i64, begun: &Value) -> Planned {
        let (id, before) = match begun {
            Value::Int(id) => (*id, 0),
            Value::List(words) => {
                let number = |index: usize| match words.get(index) {
                    Some(Value::Text(word)) => word.parse().unwrap_or_default(),
                    _ => 0,
                };
                (number(0), number(1))
            }
            _ => (0, 0),
        };
        // A script can send any numbers.
        let first = frame.unsigned_abs().saturating_add(1).saturating_add(before.unsigned_abs());
        let last = first.saturating_add(timeline.frames().into()) - 1;
        Planned { id, first, last, presses: timeline.planned_presses(first) }
    }
}

/// A timeline that was begun.
#[derive(Serialize, ToSchema)]
struct Played {
    /// The frame counter when the timeline was begun.
    frame: u32,
    #[serde(flatten)]
    planned: Planned,
    /// How it ended, if the request waited for the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<Over>,
}

/// How a timeline ended.
#[derive(Serialize, ToSchema)]
struct Over {
    /// The frame counter at that time.
    frame: u32,
    /// Whether it was cancelled, or another request took over its keys, before its last step.
    cancelled: bool,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct WaitQuery {
    /// Whether the reply comes only when the timeline has ended.
    #[serde(default)]
    wait: bool,
    /// The longest wait in milliseconds. Default: twice the time of the frames, and a few seconds more.
    #[param(value_type = Option<u32>, minimum = 0, maximum = 3_600_000)]
    timeout: Option<Whole<0, MAX_WAIT>>,
}

/// Presses keys at exact frames.
///
/// The emulator itself plays the timeline, so a delay on the network does not move a press. The reply has the frames of
/// each press. A running timeline owns its keys: holds of these keys wait, and another timeline with one of them gets a
/// 409. With `append`, the timeline begins after all timelines that are playing or waiting.
#[utoipa::path(post, path = "/v1/input", operation_id = "input", tag = "input", params(EmulatorParam, WaitQuery),
    request_body = Input,
    responses((status = 200, description = "The timeline plays. With wait=true, it has ended.", body = Played)))]
async fn play(
    selected: SelectedEmulator,
    Query(wait): Query<WaitQuery>,
    Payload(input): Payload<Input>,
) -> Result<Json<Played>> {
    let append = input.append;
    begin(&selected, wait, input.try_into()?, append).await
}

/// Keys to press together.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tap {
    /// The keys.
    pub(super) keys: KeySet,
    /// How many frames to hold them.
    #[schema(value_type = Option<u32>, minimum = 1, default = 1)]
    pub(super) frames: Option<Whole<1, { u32::MAX }>>,
}

/// Presses keys together from the next frame on, for 1 frame or more, and releases them.
#[utoipa::path(post, path = "/v1/tap", operation_id = "tap", tag = "input", params(EmulatorParam, WaitQuery), request_body = Tap,
    responses((status = 200, description = "The keys are pressed. With wait=true, they are released again.", body = Played)))]
async fn tap(
    selected: SelectedEmulator,
    Query(wait): Query<WaitQuery>,
    Payload(tap): Payload<Tap>,
) -> Result<Json<Played>> {
    begin(&selected, wait, Timeline::press(tap.keys.0, tap.frames)?, false).await
}

/// Keys to hold together.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Hold {
    /// The keys.
    keys: KeySet,
}

/// Holds keys from the next frame on, until POST /v1/release. For a number of frames, see POST /v1/tap.
#[utoipa::path(post, path = "/v1/hold", operation_id = "hold", tag = "input", params(EmulatorParam), request_body = Hold,
    responses((status = 200, description = "The keys are held.", body = AtFrame)))]
async fn hold(selected: SelectedEmulator, Payload(hold): Payload<Hold>) -> Result<Json<AtFrame>> {
    change(&selected, Op::AddKeys { keys: hold.keys.0.mask() }).await
}

/// Keys to release.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Release {
    /// The keys. Default: all keys.
    keys: Option<KeySet>,
}

/// Releases keys from the next frame on, even those that a timeline or a hold presses.
#[utoipa::path(post, path = "/v1/release", operation_id = "release", tag = "input", params(EmulatorParam),
    request_body = Release, responses((status = 200, description = "The keys are released.", body = AtFrame)))]
async fn release(selected: SelectedEmulator, Payload(release): Payload<Release>) -> Result<Json<AtFrame>> {
    let keys = release.keys.map_or(Keys::MASK, |keys| keys.0.mask());
    change(&selected, Op::ClearKeys { keys }).await
}

/// The result of a cancellation.
#[derive(Serialize, ToSchema)]
struct Cancelled {
    /// The frame counter at that time. The keys are up from the next frame on.
    frame: u32,
    /// Whether anything was running or waiting.
    cancelled: bool,
}

/// Ends all timelines and holds, including those that wait, and releases their keys.
#[utoipa::path(delete, path = "/v1/input", operation_id = "cancelAllInput", tag = "input", params(EmulatorParam),
    responses((status = 200, description = "No timeline and no hold is running.", body = Cancelled)))]
async fn cancel_all(selected: SelectedEmulator) -> Result<Json<Cancelled>> {
    end(&selected, 0).await.map(Json)
}

/// The state of a timeline.
#[derive(Serialize, ToSchema)]
struct Progress {
    /// Its number.
    id: u32,
    /// How it ended; null while it is played.
    over: Option<Over>,
}

/// Returns whether a timeline is still playing, or how it ended. The last 16,384 timelines that ended are remembered.
#[utoipa::path(get, path = "/v1/input/{id}", operation_id = "inputProgress", tag = "input",
    params(("id" = u32, Path, description = "Number of the timeline.", minimum = 1), EmulatorParam),
    responses((status = 200, description = "The state of the timeline.", body = Progress)))]
async fn timeline(selected: SelectedEmulator, Path(id): Path<u32>) -> Result<Json<Progress>> {
    let over = ask(&selected, id).await?;
    Ok(Json(Progress { id, over }))
}

/// Ends a timeline and releases its keys.
#[utoipa::path(delete, path = "/v1/input/{id}", operation_id = "cancelInput", tag = "input",
    params(("id" = u32, Path, description = "Number of the timeline.", minimum = 1), EmulatorParam),
    responses((status = 200, description = "The timeline has ended.", body = Cancelled)))]
async fn cancel(selected: SelectedEmulator, Path(id): Path<u32>) -> Result<Json<Cancelled>> {
    if id == 0 {
        return Err(Problem::parameter("id", "is 0", "the number of a timeline; DELETE /v1/input ends all"));
    }
    match end(&selected, id).await? {
        Cancelled { cancelled: false, .. } => Err(Problem::not_found(format!("no timeline {id} is running"))),
        cancelled => Ok(Json(cancelled)),
    }
}

async fn end(selected: &SelectedEmulator, id: u32) -> Result<Cancelled> {
    let outcome = selected.perform(selected.keyed(Op::CancelKeys { id })).await?;
    Ok(Cancelled { frame: outcome.frame, cancelled: outcome.single()? == Value::Bool(true) })
}

async fn begin(
    selected: &SelectedEmulator,
    wait: WaitQuery,
    timeline: Timeline,
    append: bool,
) -> Result<Json<Played>> {
    let events = if wait.wait { Some(selected.emulator.events()) } else { None };
    let outcome = selected.perform(selected.keyed(timeline.op(append))).await?;
    let frame = outcome.frame;
    let planned = Planned::new(&timeline, frame.into(), &outcome.single().map_err(unplayed)?);
    let over = match events {
        None => None,
        Some(events) => {
            let usual =
                || selected.operations.deadline + usual_time(selected, planned.last - u64::from(frame));
            let given = wait.timeout.map(|timeout| Duration::from_millis(timeout.get().into()));
            Some(wait_for_end(selected, events, planned.id, given.unwrap_or_else(usual)).await?)
        }
    };
    Ok(Json(Played { frame, planned, over }))
}

/// Twice the time that this number of frames takes at the current rate, but at most [`MAX_WAIT`].
fn usual_time(selected: &SelectedEmulator, frames: u64) -> Duration {
    let state = selected.emulator.state();
    let rate = if state.frames_per_second < 1.0 { 60.0 } else { state.frames_per_second };
    // The measured rate is that of the last second, in which the speed may have been higher.
    let rate = if let Some(SetSpeed::Times(times)) = state.speed { rate.min(60.0 * times) } else { rate };
    Duration::from_secs_f64((2.0 * frames as f64 / rate).min(f64::from(MAX_WAIT) / 1000.0))
}

/// Waits for the event at the end of a timeline. If the event may have come earlier or was lost, asks the emulator.
async fn wait_for_end(
    selected: &SelectedEmulator,
    mut events: Receiver<Event>,
    id: i64,
    limit: Duration,
) -> Result<Over> {
    // If the request is repeated, the timeline may be over already.
    let mut may_be_over = selected.key.is_some();
    let end = sleep_until(Instant::now() + limit);
    let mut end = std::pin::pin!(end);
    loop {
        if std::mem::take(&mut may_be_over)
            && let Some(over) = over_already(selected, id).await?
        {
            return Ok(over);
        }
        tokio::select! {
            () = &mut end => return Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, format!(
                "timeline {id} is not over after {} ms: few frames run, or none. It is still being played; \
                 DELETE /v1/input/{id} ends it", limit.as_millis()
            ))),
            () = selected.operations.stopping.wait() => return Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE, format!("{STOPPING}; the keys are still played"),
            )),
            event = events.recv() => match event {
                Ok(Event { frame, kind: EventKind::TimelineOver { id: ended, cancelled } }) if i64::from(ended) == id => {
                    return Ok(Over { frame, cancelled });
                }
                Ok(Event { kind: EventKind::Connected | EventKind::Missed { .. } | EventKind::Running, .. })
                | Err(RecvError::Lagged(_)) => may_be_over = true,
                Ok(_) => {}
                Err(RecvError::Closed) => return Err(EmulatorError::Stopped.into()),
            },
        }
    }
}

/// How a timeline ended. `None` if it has not ended, or the emulator cannot be asked now.
async fn over_already(selected: &SelectedEmulator, id: i64) -> Result<Option<Over>> {
    match ask(selected, id.try_into().unwrap_or_default()).await {
        Ok(over) => Ok(over),
        Err(problem) if problem.status() == StatusCode::NOT_FOUND => Err(Problem::new(
            StatusCode::BAD_GATEWAY,
            format!("it is unknown how timeline {id} ended: mGBA or its script was started again meanwhile"),
        )),
        // An event will say when the emulator can be asked again.
        Err(_) => Ok(None),
    }
}

/// Asks the emulator how a timeline ended; `None` while it is played.
async fn ask(selected: &SelectedEmulator, id: u32) -> Result<Option<Over>> {
    let outcome = selected.perform(Op::Timeline { id }).await?;
    let value = outcome.single().map_err(|error| match error.status {
        Status::BadArgument => Problem::not_found(error.message),
        _ => error.into(),
    })?;
    let words: Vec<Value> = value.try_into()?;
    let (Some(Value::Text(how)), Some(Value::Text(frame))) = (words.first(), words.get(1)) else {
        return Ok(None);
    };
    Ok(Some(Over { frame: frame.parse().unwrap_or_default(), cancelled: how == "cancelled" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_numbers_of_a_script_do_not_overflow() {
        let input: Input = crate::reading::body(br#"{"sequence": "A:2 .:3 B"}"#).unwrap();
        let timeline: Timeline = input.try_into().unwrap();
        let begun = Value::List(vec![Value::Text("1".to_owned()), Value::Text(i64::MIN.to_string())]);
        let planned = Planned::new(&timeline, i64::MIN, &begun);
        assert_eq!((planned.id, planned.first), (1, u64::MAX));
        assert_eq!(planned.presses.len(), 2);
    }
}
