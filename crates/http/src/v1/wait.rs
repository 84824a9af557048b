//! Waits for a condition on memory.

use framewire_emulator::{EmulatorError, Watch, WatchEnd};
use framewire_symbols::Symbols;
use tokio::time::timeout;

use crate::failure::{Failure, STOPPING};
use crate::feeds::definition::{Subjects, WatchedMemory};
use crate::feeds::registry::Feeds;
use crate::reading::Whole;
use crate::routing::prelude::*;
use crate::transport::streams::StreamKind;

/// The default number of frames to wait: ten seconds.
const FRAMES: u32 = 600;
/// The largest number of frames to wait for: an hour.
const MAX_FRAMES: u32 = 216_000;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(wait).changes_nothing().counted_as(StreamKind::Wait))
}

/// What to wait for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    /// A condition on memory, such as `score > 10` or `lives == 0 or frame > 5000`; docs/watches.md describes
    /// conditions. A number counts as true if it is not 0.
    until: String,
    /// The largest number of frames to wait. Default: 600.
    #[serde(default = "Whole::constant::<FRAMES>")]
    #[schema(value_type = u32, minimum = 1, maximum = 216_000)]
    frames: Whole<1, MAX_FRAMES>,
}

/// The result of a wait.
#[derive(Serialize, ToSchema)]
pub(crate) struct Waited {
    /// Whether the condition holds. If not, all the frames have passed.
    held: bool,
    /// The frame counter when the condition held, or after the last frame of the wait.
    frame: u32,
    /// The number of frames that passed during the wait; 0 if the condition held at once.
    frames: u64,
}

/// Waits until a condition on memory holds, or `frames` frames have passed.
///
/// The condition is checked after each frame. If no frame runs for the time that a request may take (`--deadline`), the
/// reply is 504.
#[utoipa::path(post, path = "/v1/wait", operation_id = "wait", tag = "watches", params(EmulatorParam), request_body = Condition,
    responses((status = 200, description = "The condition holds, or the frames have passed.", body = Waited)))]
async fn wait(
    State(feeds): State<Arc<Feeds>>,
    selected: SelectedEmulator,
    stream: OpensStream,
    Payload(request): Payload<Condition>,
) -> Result<Json<Waited>> {
    // The symbol files are read first, so that the wait begins as soon as the metrics count it as an open stream.
    let symbols = selected.symbols().await;
    let _open = stream.open()?;
    until(&selected, &feeds, symbols, request).await.map(Json)
}

/// Waits for a condition. `symbols` are those of the emulator's game. The first poll of the returned future sends the
/// watch to the emulator. So the wait begins before any operation that is sent after that poll.
pub(crate) async fn until(
    selected: &SelectedEmulator,
    feeds: &Feeds,
    symbols: Arc<Symbols>,
    request: Condition,
) -> Result<Waited> {
    let condition = Subjects::only(&request.until, &symbols, "until")?;
    drop(symbols);
    let held_at_once = |frame| Waited { held: true, frame, frames: 0 };
    if condition.is_always_true() {
        return Ok(held_at_once(selected.emulator.state().frame));
    }
    let frames = request.frames.get();
    // After `frames` frames, the watch reports even if no memory has changed. So the wait ends then.
    let (mut watch, frame, mut memory) = feeds.watch(selected, condition.into(), frames).await?;
    if holds(&memory, frame) {
        return Ok(held_at_once(frame));
    }
    tokio::select! {
        waited = wait_until_held(selected, &mut watch, &mut memory, frames.into()) => waited,
        () = selected.operations.stopping.wait() => Err(Failure::busy(STOPPING.to_owned()).into()),
    }
}

fn holds(memory: &WatchedMemory, frame: u32) -> bool {
    memory.number(0, frame).is_some_and(|number| number != 0)
}

/// Waits until the condition holds, for at most `frames` frames. Returns an error if no frame runs within the time that
/// a request may take (`--deadline`).
async fn wait_until_held(
    selected: &SelectedEmulator,
    watch: &mut Watch,
    memory: &mut WatchedMemory,
    frames: u64,
) -> Result<Waited> {
    let mut last = selected.emulator.state().frame;
    loop {
        let Ok(event) = timeout(selected.operations.deadline, watch.next()).await else {
            last = selected.check_alive(last)?;
            continue;
        };
        let Some(event) = event else { return Err(ended(watch)) };
        memory.apply(event.changes);
        let held = holds(memory, event.frame);
        if held || event.ticks >= frames {
            return Ok(Waited { held, frame: event.frame, frames: event.ticks });
        }
    }
}

fn ended(watch: &Watch) -> Problem {
    match watch.end() {
        Some(WatchEnd::OtherGame) => Problem::conflict(
            "another game was loaded during the wait, and in it the same addresses mean something else; to wait in that game, send a new request",
        ),
        _ => EmulatorError::Stopped.into(),
    }
}
