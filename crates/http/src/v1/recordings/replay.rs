//! Replays recordings on embedded cores. An attached mGBA cannot replay, because Framewire cannot pause it.

use framewire_recording::replay::{Divergence, PlayOptions, ReplayError, Report};
use framewire_recording::{Damage, Recording, Recordings, ReplayTask, Replays};

use crate::routing::prelude::*;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(start)).routes(routes!(last, cancel))
}

/// The options of a replay.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReplayOptions {
    /// The speed, as a multiple of the console's speed: 0.01 to 1000. Default: as fast as possible.
    #[schema(minimum = 0.01, maximum = 1000)]
    speed: Option<f64>,
    /// Whether the state from before the replay is restored when the replay ends, unless another client has changed the
    /// emulator meanwhile.
    #[serde(default)]
    restore: bool,
    /// Whether to continue after a difference.
    #[serde(default)]
    through: bool,
    /// Whether the reply comes when the replay has ended. Otherwise it comes at once.
    #[serde(default = "yes")]
    #[schema(default = true)]
    wait: bool,
}

/// A replay.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = Replay)]
struct ReplayResponse {
    /// The name of the recording.
    recording: String,
    /// The number of frames of the recording.
    frames: u64,
    /// The number of frames played so far.
    played: u64,
    /// Whether it has ended.
    over: bool,
    /// Whether the whole recording was played, and everything that could be compared is equal; null until the replay
    /// has ended.
    equal: Option<bool>,
    /// How many pictures were compared; null until the replay has ended, and if it failed.
    pictures: Option<u64>,
    /// How many hashes of memory were compared; null until the replay has ended, and if it failed.
    memories: Option<u64>,
    /// Where it first differs from the recording; null if there is no difference, and until the replay has ended.
    diverged: Option<Diverged>,
    /// `recorded`, or `unknown` if the recording does not contain the console's clock: then a game that reads the clock
    /// may differ. Null until the replay has ended, and if it failed.
    clock: Option<&'static str>,
    /// Where the recording is damaged; null if it is not damaged, and until the replay has ended.
    damage: Option<Damaged>,
    /// Whether it was cancelled.
    cancelled: bool,
    /// Why the replay failed; null if it did not fail. A difference, damage or a cancellation is not a failure.
    problem: Option<Problem>,
}

/// Where a replay first differs from its recording.
#[derive(Serialize, ToSchema)]
struct Diverged {
    /// The frame after which they differ, counted from 1 at the beginning of the recording.
    frame: u64,
    /// The last frame after which they were compared and equal; 0 is the state before the first frame.
    agreed: u64,
    /// `picture` or `memory`.
    what: &'static str,
    /// The CRC-32 in the recording, eight hex digits.
    recorded: String,
    /// The CRC-32 in the replay, eight hex digits.
    played: String,
}

/// Where a recording is damaged.
#[derive(Serialize, ToSchema)]
struct Damaged {
    /// The frame whose keys or picture cannot be trusted, counted from 1.
    frame: u64,
    /// The position in the file, in bytes.
    offset: usize,
    /// What is wrong there.
    detail: String,
}

impl ReplayResponse {
    fn new(task: &ReplayTask) -> ReplayResponse {
        let mut response = ReplayResponse {
            recording: task.name.to_string(),
            frames: task.frames,
            played: task.played(),
            ..ReplayResponse::default()
        };
        let Some(result) = task.result() else { return response };
        response.over = true;
        match result {
            Ok(report) => response.report(report),
            Err(error) => {
                response.equal = Some(false);
                response.problem = Some(Problem::from(&*error));
            }
        }
        response
    }

    fn report(&mut self, report: Report) {
        self.equal = Some(report.is_equal());
        let Report { frames, pictures, memories, divergence, damage, cancelled, clock_known, .. } = report;
        self.clock = Some(if clock_known { "recorded" } else { "unknown" });
        (self.played, self.pictures, self.memories) = (frames, Some(pictures), Some(memories));
        self.diverged = divergence.map(Diverged::from);
        self.damage = damage.map(Damaged::from);
        self.cancelled = cancelled;
    }
}

impl From<Divergence> for Diverged {
    fn from(Divergence { frame, agreed, what, recorded, played }: Divergence) -> Diverged {
        let hex = |hash: u32| format!("{hash:08x}");
        Diverged { frame, agreed, what: what.name(), recorded: hex(recorded), played: hex(played) }
    }
}

impl From<Damage> for Damaged {
    fn from(damage: Damage) -> Damaged {
        Damaged { frame: damage.frame, offset: damage.offset, detail: damage.to_string() }
    }
}

impl From<&ReplayError> for Problem {
    fn from(error: &ReplayError) -> Problem {
        let status = match error {
            ReplayError::Emulator(error) => return error.clone().into(),
            ReplayError::OtherGame { .. } | ReplayError::Disturbed(_) => StatusCode::CONFLICT,
            ReplayError::State(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ReplayError::NoPictures(_) => StatusCode::BAD_GATEWAY,
        };
        Problem::new(status, error.to_string())
    }
}

/// Replays a recording on an embedded core, and compares pictures and memory.
///
/// After the replay, the core has the state and the battery save of the recording, unless `restore` is true. The reply
/// comes when the replay is over. If `wait` is false, it comes at once, with the status 202. A stock mGBA answers 501,
/// because its scripts cannot pause it.
#[utoipa::path(post, path = "/v1/recordings/{name}/replay", operation_id = "replayRecording", tag = "recordings",
    params(EmulatorParam, ("name" = String, Path, description = "The recording.")), request_body = ReplayOptions, responses(
    (status = 200, description = "The replay is over. `equal` says whether it matches the recording.", body = ReplayResponse),
    (status = 202, description = "The replay has begun. GET /v1/replay returns its progress.", body = ReplayResponse)))]
async fn start(
    State(replays): State<Arc<Replays>>,
    selected: SelectedEmulator,
    recording: StoredFile<Recordings>,
    Payload(ReplayOptions { speed, restore, through, wait }): Payload<ReplayOptions>,
) -> Result<(StatusCode, Json<ReplayResponse>)> {
    if let Some(speed) = speed
        && !(0.01..=1000.0).contains(&speed)
    {
        return Err(Problem::parameter("speed", &format!("is {speed}"), "a number from 0.01 to 1000"));
    }
    // Memory for the recording, reserved until this function returns.
    let _share = recording.share(&selected.operations).await?;
    let name = recording.name.clone();
    let read = |recordings: &Recordings, name: &_| -> Result<_> {
        Ok(Recording::read(&recordings.folder().read(name)?)?)
    };
    let recording = recording.with(read).await?;
    let options = PlayOptions { speed, restore, through, ..PlayOptions::default() };
    let task = replays.start(&selected.name, selected.emulator.clone(), name, recording, options);
    let task = task.map_err(|busy| {
        Problem::conflict(format!(
            "{} is busy with a replay of {} (frame {} of {}); wait for it, or end it with DELETE /v1/replay",
            selected.name,
            busy.name,
            busy.played(),
            busy.frames
        ))
    })?;
    if !wait {
        return Ok((StatusCode::ACCEPTED, Json(ReplayResponse::new(&task))));
    }
    tokio::select! {
        () = task.wait() => {}
        () = selected.operations.stopping.wait() => task.cancel(),
    }
    task.wait().await;
    match task.result() {
        Some(Err(error)) => Err(Problem::from(&*error)),
        _ => Ok((StatusCode::OK, Json(ReplayResponse::new(&task)))),
    }
}

/// Returns the current replay on an emulator, or the last one.
#[utoipa::path(get, path = "/v1/replay", operation_id = "replay", tag = "recordings", params(EmulatorParam),
    responses((status = 200, description = "The progress or the result of the replay.", body = ReplayResponse)))]
async fn last(
    State(replays): State<Arc<Replays>>,
    selected: SelectedEmulator,
) -> Result<Json<ReplayResponse>> {
    find(&replays, &selected.name).map(|task| Json(ReplayResponse::new(&task)))
}

/// Ends the current replay on an emulator. A few more frames may run.
#[utoipa::path(delete, path = "/v1/replay", operation_id = "cancelReplay", tag = "recordings", params(EmulatorParam),
    responses((status = 200, description = "The replay has ended.", body = ReplayResponse)))]
async fn cancel(
    State(replays): State<Arc<Replays>>,
    selected: SelectedEmulator,
) -> Result<Json<ReplayResponse>> {
    let task = find(&replays, &selected.name)?;
    task.cancel();
    task.wait().await;
    Ok(Json(ReplayResponse::new(&task)))
}

fn find(replays: &Replays, emulator: &str) -> Result<Arc<ReplayTask>> {
    replays.latest(emulator).ok_or_else(|| {
        Problem::not_found(format!(
            "nothing was replayed on {emulator}; start a replay with POST /v1/recordings/NAME/replay"
        ))
    })
}
