//! Makes recordings, at most one per emulator at a time, stores them as files, and replays them.

use axum::http::header::LOCATION;
use framewire_recording::{Active, Options, RecordError, Recordings, Start, Summary};
use framewire_states::Name;

use crate::reading::Whole;
use crate::routing::prelude::*;
use crate::storage::{checked_note, unwritten};

mod files;
mod replay;

/// The largest number of frames from one hash of the picture to the next: a minute.
const MAX_EVERY: u32 = 3600;

pub(super) fn router() -> OpenApiRouter<AppState> {
    let own = OpenApiRouter::new().routes(routes!(start)).routes(routes!(under_way, stop));
    own.merge(files::router()).merge(replay::router())
}

/// A recording to begin.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewRecording {
    /// Its name: 1 to 64 letters, digits, `-`, `_` and `.`.
    name: String,
    /// Where it begins: at the current state, or with a reset of the console.
    #[serde(default)]
    start: RecordingStart,
    /// The number of frames from one hash of the picture and of memory to the next. For an attached mGBA, only memory
    /// is hashed, about as often.
    #[serde(default = "Whole::constant::<60>")]
    #[schema(value_type = u32, default = 60, minimum = 1, maximum = 3600)]
    every: Whole<1, MAX_EVERY>,
    /// A note that is stored in the recording.
    #[serde(default)]
    #[schema(max_length = 1024)]
    note: String,
    /// Whether to replace a recording with this name.
    #[serde(default)]
    replace: bool,
}

/// Where a recording begins.
#[derive(Clone, Copy, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum RecordingStart {
    /// At the current state of the game.
    #[default]
    State,
    /// After a reset of the console.
    PowerOn,
}

impl From<Start> for RecordingStart {
    fn from(start: Start) -> RecordingStart {
        match start {
            Start::State => RecordingStart::State,
            Start::PowerOn => RecordingStart::PowerOn,
        }
    }
}

/// A recording being made, or one that has ended.
#[derive(Serialize, ToSchema)]
struct RecordingUnderWay {
    /// Its name.
    name: String,
    /// The emulator that is recorded.
    emulator: String,
    /// The number of recorded frames.
    frames: u64,
    /// The size of its file in bytes.
    size: u64,
    /// Why the recording has ended; null while it is being made.
    ended: Option<String>,
}

impl RecordingUnderWay {
    /// The recording that is being made of an emulator, or the last one, if it ended by itself.
    async fn find(recordings: &Recordings, emulator: &str) -> Result<RecordingUnderWay> {
        match recordings.active(emulator).await {
            Some(active) => Ok(RecordingUnderWay::of(active, emulator)),
            None => Err(Problem::not_found(format!("{emulator} is not being recorded"))),
        }
    }

    fn of(active: Active, emulator: &str) -> RecordingUnderWay {
        let ended = active.ended.map(|ended| match ended {
            Ok(summary) => summary.reason,
            Err(error) => error.to_string(),
        });
        RecordingUnderWay {
            name: active.name.to_string(),
            emulator: emulator.to_owned(),
            frames: active.progress.frames,
            size: active.progress.bytes,
            ended,
        }
    }

    fn ended(emulator: &str, summary: Summary) -> RecordingUnderWay {
        RecordingUnderWay {
            name: summary.name.to_string(),
            emulator: emulator.to_owned(),
            frames: summary.frames,
            size: summary.bytes,
            ended: Some(summary.reason),
        }
    }
}

/// Begins to record an emulator: every key press with its frame, until the recording ends.
///
/// A reset, a loaded state or game, or a broken connection ends the recording at that frame. `ended` then says which of
/// these it was.
#[utoipa::path(post, path = "/v1/recordings", operation_id = "startRecording", tag = "recordings", params(EmulatorParam),
    request_body = NewRecording, responses((status = 201, description = "The recording has begun.", body = RecordingUnderWay,
        headers(("location" = String, description = "The path of the recording when it is complete.")))))]
async fn start(
    State(recordings): State<Storage<Recordings>>,
    selected: SelectedEmulator,
    Payload(request): Payload<NewRecording>,
) -> Result<Created<RecordingUnderWay>> {
    let NewRecording { name, start, every, note, replace } = request;
    let name: Name = name.parse()?;
    let note = checked_note(note)?;
    let start = match start {
        RecordingStart::State => Start::State,
        RecordingStart::PowerOn => Start::PowerOn,
    };
    let recordings = recordings.get()?;
    let options = Options { start, every: every.get(), note, replace };
    let started = recordings.start(&selected.name, selected.emulator.clone(), name, options).await;
    let started = started.map_err(|error| match error {
        RecordError::Folder(error) => unwritten(error, "\"replace\": true"),
        other => other.into(),
    })?;
    // Another client may have ended this recording by now, and begun another one.
    let recording = RecordingUnderWay::of(started, &selected.name);
    let location = [(LOCATION, format!("/v1/recordings/{}", recording.name))];
    Ok((StatusCode::CREATED, location, Json(recording)))
}

/// Returns the recording that is being made of an emulator, or the last one, if it ended by itself.
#[utoipa::path(get, path = "/v1/recording", operation_id = "recordingUnderWay", tag = "recordings", params(EmulatorParam),
    responses((status = 200, description = "The progress of the recording.", body = RecordingUnderWay)))]
async fn under_way(
    State(recordings): State<Storage<Recordings>>,
    selected: SelectedEmulator,
) -> Result<Json<RecordingUnderWay>> {
    let recordings = recordings.get()?;
    RecordingUnderWay::find(&recordings, &selected.name).await.map(Json)
}

/// Ends the recording of an emulator after the current frame.
#[utoipa::path(delete, path = "/v1/recording", operation_id = "stopRecording", tag = "recordings", params(EmulatorParam),
    responses((status = 200, description = "The recording is complete.", body = RecordingUnderWay)))]
async fn stop(
    State(recordings): State<Storage<Recordings>>,
    selected: SelectedEmulator,
) -> Result<Json<RecordingUnderWay>> {
    let summary = recordings.get()?.stop(&selected.name).await?;
    Ok(Json(RecordingUnderWay::ended(&selected.name, summary)))
}
