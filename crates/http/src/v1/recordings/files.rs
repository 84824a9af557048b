//! Recordings as files.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use framewire_recording::{Ending, Entry, Head, Listed, Recording, Recordings};
use framewire_states::Name;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::making::Beginning;
use crate::operations::Operations;
use crate::operations::budget::BudgetShare;
use crate::problem::Problem;
use crate::routing::extract::{Path, Query};
use crate::routing::state::AppState;
use crate::storage::{Storage, blocking, unwritten};
use crate::transport::incoming::BodyReader;
use crate::v1::page::Page;

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
    /// Where it begins.
    start: Beginning,
    /// The frame counter before its first frame.
    frame: u32,
    /// Frames from one hash of the picture to the next; 0 if it has none.
    every: u32,
    /// When it was made, in UTC (RFC 3339).
    time: String,
    /// Whatever its maker wanted to remember.
    note: String,
    /// `wall` if its game's clock was that of a stock mGBA, which is not recorded; otherwise the time (RFC 3339) with which
    /// the clock began, from which on it advances with the frames.
    clock: String,
    /// Whether the server that made it ended in the middle, and a later start completed what was written.
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
            every: head.pictures,
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
    /// Sorted by name.
    recordings: Vec<RecordingResponse>,
    /// How many there are in all.
    total: usize,
    /// The `offset` of those that follow; null if none do.
    next: Option<usize>,
}

/// A recording, read to its end.
#[derive(Serialize, ToSchema)]
#[schema(as = RecordingInFull)]
struct RecordingInFull {
    #[serde(flatten)]
    recording: RecordingResponse,
    /// Frames that can be played.
    frames: u64,
    /// Hashes of pictures in it.
    pictures: usize,
    /// Hashes of memory in it.
    memories: usize,
    /// Why it ends; null if it is damaged.
    ended: Option<String>,
    /// Where it is damaged; null if it is not. It can be played up to there.
    damage: Option<String>,
}

impl RecordingInFull {
    fn new(name: &Name, file: &[u8]) -> Result<RecordingInFull, Problem> {
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
    /// Whether one of this name is replaced.
    #[serde(default)]
    #[param(default = false)]
    replace: bool,
}

/// The recordings that are kept.
#[utoipa::path(get, path = "/v1/recordings", operation_id = "recordings", tag = "recordings", params(Page),
    responses((status = 200, description = "A part of the list.", body = RecordingList)))]
async fn list(
    State(recordings): State<Storage<Recordings>>,
    Query(page): Query<Page>,
) -> Result<Json<RecordingList>, Problem> {
    page.check()?;
    let recordings = recordings.get()?;
    let all = blocking(move || recordings.list()).await?;
    let total = all.len();
    let part: Vec<RecordingResponse> =
        all.into_iter().skip(page.offset).take(page.limit).map(RecordingResponse::from).collect();
    let next = page.next(part.len(), total).filter(|_| !part.is_empty());
    Ok(Json(RecordingList { recordings: part, total, next }))
}

/// What a recording holds.
#[utoipa::path(get, path = "/v1/recordings/{name}", operation_id = "recording", tag = "recordings",
    params(("name" = String, Path, description = "The recording.")),
    responses((status = 200, description = "The recording.", body = RecordingInFull)))]
async fn one(
    State(operations): State<Arc<Operations>>,
    State(recordings): State<Storage<Recordings>>,
    Path(name): Path<String>,
) -> Result<Json<RecordingInFull>, Problem> {
    let (recordings, name) = complete(&recordings, &name).await?;
    let _share = share(&operations, &recordings, &name).await?;
    blocking(move || RecordingInFull::new(&name, &recordings.folder().read(&name)?)).await.map(Json)
}

/// Deletes a recording.
#[utoipa::path(delete, path = "/v1/recordings/{name}", operation_id = "deleteRecording", tag = "recordings",
    params(("name" = String, Path, description = "The recording.")),
    responses((status = 204, description = "It is gone.")))]
async fn remove(
    State(recordings): State<Storage<Recordings>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let (recordings, name) = complete(&recordings, &name).await?;
    blocking(move || recordings.folder().remove(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The file of a recording.
#[utoipa::path(get, path = "/v1/recordings/{name}/file", operation_id = "downloadRecording", tag = "recordings",
    params(("name" = String, Path, description = "The recording.")), responses((status = 200,
    description = "The file, as docs/recordings.md has it.", body = Vec<u8>, content_type = "application/octet-stream")))]
async fn download(
    State(operations): State<Arc<Operations>>,
    State(recordings): State<Storage<Recordings>>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let (recordings, name) = complete(&recordings, &name).await?;
    let attachment = format!("attachment; filename=\"{name}.fwr\"");
    let share = share(&operations, &recordings, &name).await?;
    let bytes = blocking(move || recordings.folder().read(&name)).await?;
    let headers = [
        (CONTENT_TYPE, "application/octet-stream"),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_DISPOSITION, &attachment),
    ];
    Ok((headers, share.body(bytes)).into_response())
}

/// The folder, and the name of a recording in it that is not being made just now.
pub(super) async fn complete(
    recordings: &Storage<Recordings>,
    name: &str,
) -> Result<(Arc<Recordings>, Name), Problem> {
    let (recordings, name) = (recordings.get()?, name.parse::<Name>()?);
    match recordings.subject_of(&name).await {
        None => Ok((recordings, name)),
        Some(emulator) => {
            let detail = format!(
                "the recording {name} is being made; DELETE /v1/recording?emulator={emulator} completes it, and GET says \
                 how far it is"
            );
            Err(Problem::new(StatusCode::CONFLICT, detail))
        }
    }
}

/// The memory that a recording's file takes.
pub(super) async fn share(
    operations: &Operations,
    recordings: &Arc<Recordings>,
    name: &Name,
) -> Result<BudgetShare, Problem> {
    let (recordings, name) = (recordings.clone(), name.clone());
    let size = blocking(move || recordings.folder().size(&name)).await?;
    Ok(operations.replies.share_bytes(size as usize)?)
}

/// Keeps a recording's file.
///
/// One that is damaged is refused, and the problem names the frame.
#[utoipa::path(put, path = "/v1/recordings/{name}/file", operation_id = "uploadRecording", tag = "recordings",
    params(("name" = String, Path, description = "What to call it."), Upload),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 201, description = "It is kept.", body = RecordingInFull),
        (status = 200, description = "It is kept in place of one of its name.", body = RecordingInFull)))]
async fn upload(
    State(recordings): State<Storage<Recordings>>,
    State(bodies): State<Arc<BodyReader>>,
    Path(name): Path<String>,
    Query(Upload { replace }): Query<Upload>,
    body: Body,
) -> Result<(StatusCode, Json<RecordingInFull>), Problem> {
    let (recordings, name) = complete(&recordings, &name).await?;
    let file = bodies.read(body).await?;
    let told = blocking(move || {
        let told = RecordingInFull::new(&name, &file)?;
        if let Some(damage) = told.damage {
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, damage));
        }
        let before = recordings.folder().size(&name).is_ok();
        let written = recordings.folder().write(&name, &file, replace);
        written.map_err(|error| unwritten(error, "?replace=true"))?;
        Ok((told, before))
    });
    let (told, before) = told.await?;
    Ok((if before { StatusCode::OK } else { StatusCode::CREATED }, Json(told)))
}
