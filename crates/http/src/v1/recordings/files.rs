//! Routes for recordings as files.

use axum::body::Body;
use axum::http::header::CONTENT_DISPOSITION;
use framewire_recording::{Ending, Entry, Head, Listed, Recording, Recordings};
use framewire_states::Name;

use super::RecordingStart;
use crate::operations::Operations;
use crate::routing::prelude::*;
use crate::storage::{blocking, unwritten};
use crate::transport::incoming::BodyReader;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(one, remove)).routes(routes!(download, upload))
}

/// A recording.
#[derive(Serialize, ToSchema)]
#[schema(as = Recording)]
struct RecordingResponse {
    /// Its name.
    name: String,
    /// The game's title.
    title: String,
    /// The game's code.
    code: String,
    /// The CRC-32 of the ROM, eight hex digits.
    checksum: String,
    /// Where the recording begins.
    start: RecordingStart,
    /// The frame counter before its first frame.
    frame: u32,
    /// The number of frames from one hash of the picture to the next; 0 if it has no such hashes.
    every: u32,
    /// When it was made, in UTC (RFC 3339).
    time: String,
    /// The note that the client gave.
    note: String,
    /// The time of the game's clock before the first frame (RFC 3339); from there, the clock advances with the frames.
    /// `wall` if the clock was not recorded, as in a stock mGBA.
    clock: String,
    /// Whether the server ended during the recording, and a later run of the server completed the file.
    recovered: bool,
    /// The size of its file in bytes.
    size: u64,
}

impl RecordingResponse {
    fn new(name: &Name, size: u64, head: &Head) -> RecordingResponse {
        RecordingResponse {
            name: name.to_string(),
            title: head.title.clone(),
            code: head.code.clone(),
            checksum: format!("{:08x}", head.checksum),
            start: head.start.into(),
            frame: head.frame,
            every: head.picture_interval,
            time: head.time.clone(),
            note: head.note.clone(),
            clock: head.clock.clone(),
            recovered: head.recovered,
            size,
        }
    }
}

impl From<Listed> for RecordingResponse {
    fn from(Listed { entry, head }: Listed) -> RecordingResponse {
        RecordingResponse::new(&entry.name, entry.size, &head)
    }
}

/// A part of the list of recordings.
#[derive(Serialize, ToSchema)]
#[schema(as = Recordings)]
struct RecordingList {
    /// The recordings, sorted by name.
    recordings: Vec<RecordingResponse>,
    /// The total number of recordings.
    total: usize,
    /// The `offset` of the next part; null if this is the last one.
    next: Option<usize>,
}

/// A recording, read to its end.
#[derive(Serialize, ToSchema)]
struct RecordingInFull {
    #[serde(flatten)]
    recording: RecordingResponse,
    /// The number of frames that can be played.
    frames: u64,
    /// The number of hashes of pictures.
    pictures: usize,
    /// The number of hashes of memory.
    memories: usize,
    /// Why it ends; null if it is damaged.
    ended: Option<String>,
    /// Where it is damaged; null if it is not. It can be played up to this place.
    damage: Option<String>,
}

impl RecordingInFull {
    fn new(name: &Name, file: &[u8]) -> Result<RecordingInFull> {
        let recording = Recording::read(file)?;
        let (ended, damage) = match recording.ending() {
            Ending::Whole(reason) => (Some(reason.clone()), None),
            Ending::Damaged(damage) => (None, Some(damage.to_string())),
        };
        let memories = recording.entries().iter().filter(|entry| matches!(entry, Entry::Memory(_))).count();
        Ok(RecordingInFull {
            recording: RecordingResponse::new(name, file.len() as u64, recording.head()),
            frames: recording.frames(),
            pictures: recording.pictures(),
            memories,
            ended,
            damage,
        })
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Upload {
    /// Whether to replace an existing recording that has this name.
    #[serde(default)]
    #[param(default = false)]
    replace: bool,
}

/// Lists the recordings.
#[utoipa::path(get, path = "/v1/recordings", operation_id = "recordings", tag = "recordings", params(Page),
    responses((status = 200, description = "A part of the list.", body = RecordingList)))]
async fn list(
    State(recordings): State<Storage<Recordings>>,
    Query(page): Query<Page>,
) -> Result<Json<RecordingList>> {
    let recordings = recordings.get()?;
    let all = blocking(move || recordings.list()).await?;
    let total = all.len();
    let (recordings, next) = page.part(all);
    Ok(Json(RecordingList { recordings, total, next }))
}

/// Describes a recording.
#[utoipa::path(get, path = "/v1/recordings/{name}", operation_id = "recording", tag = "recordings",
    params(("name" = String, Path, description = "The recording.")),
    responses((status = 200, description = "The recording.", body = RecordingInFull)))]
async fn one(
    State(operations): State<Arc<Operations>>,
    recording: StoredFile<Recordings>,
) -> Result<Json<RecordingInFull>> {
    // Memory for the file's content, reserved until this function returns.
    let _share = recording.share(&operations).await?;
    let read =
        |recordings: &Recordings, name: &Name| RecordingInFull::new(name, &recordings.folder().read(name)?);
    recording.with(read).await.map(Json)
}

/// Deletes a recording.
#[utoipa::path(delete, path = "/v1/recordings/{name}", operation_id = "deleteRecording", tag = "recordings",
    params(("name" = String, Path, description = "The recording.")),
    responses((status = 204, description = "The recording was deleted.")))]
async fn remove(recording: StoredFile<Recordings>) -> Result<StatusCode> {
    recording.remove().await
}

/// Returns the file of a recording.
#[utoipa::path(get, path = "/v1/recordings/{name}/file", operation_id = "downloadRecording", tag = "recordings",
    params(("name" = String, Path, description = "The recording.")), responses((status = 200,
    description = "The file, in the format of docs/recordings.md.", body = Vec<u8>, content_type = "application/octet-stream")))]
async fn download(
    State(operations): State<Arc<Operations>>,
    recording: StoredFile<Recordings>,
) -> Result<Response> {
    let attachment = format!("attachment; filename=\"{}.fwr\"", recording.name);
    let share = recording.share(&operations).await?;
    let bytes = recording.with(|recordings, name| recordings.folder().read(name)).await?;
    let reply = share.bytes("application/octet-stream", bytes);
    Ok(([(CONTENT_DISPOSITION, attachment)], reply).into_response())
}

/// Stores the file of a recording.
///
/// A damaged file is refused, and the problem says where the damage begins.
#[utoipa::path(put, path = "/v1/recordings/{name}/file", operation_id = "uploadRecording", tag = "recordings",
    params(("name" = String, Path, description = "The name of the new recording."), Upload),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 201, description = "The file was stored.", body = RecordingInFull),
        (status = 200, description = "The file replaced the recording that had this name.", body = RecordingInFull)))]
async fn upload(
    State(bodies): State<Arc<BodyReader>>,
    recording: StoredFile<Recordings>,
    Query(Upload { replace }): Query<Upload>,
    body: Body,
) -> Result<(StatusCode, Json<RecordingInFull>)> {
    let file = bodies.read(body).await?;
    let kept = recording.with(move |recordings, name| {
        let recording = RecordingInFull::new(name, &file)?;
        if let Some(damage) = recording.damage {
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, damage));
        }
        let existed = recordings.folder().size(name).is_ok();
        let written = recordings.folder().write(name, &file, replace);
        written.map_err(|error| unwritten(error, "?replace=true"))?;
        Ok((if existed { StatusCode::OK } else { StatusCode::CREATED }, Json(recording)))
    });
    kept.await
}
