//! Snapshots: states with a name, a picture and what they are of, kept on disk.

use std::sync::Arc;
use std::time::SystemTime;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use framewire_protocol::{Batch, Op, Value};
use framewire_states::{About, Listed, Name, Snapshot, Snapshots, time};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::load::{LoadOptions, load, next, unexpected_reply};
use crate::operations::Operations;
use crate::operations::budget::BudgetShare;
use crate::problem::Problem;
use crate::routing::extract::{EmulatorParam, Path, Payload, Query, RequestKey, SelectedEmulator};
use crate::routing::state::AppState;
use crate::storage::Storage;
use crate::storage::{blocking, unwritten};
use crate::v1::control::AtFrame;
use crate::v1::page::Page;

/// How a caller has a snapshot replaced.
const REPLACE: &str = "\"replace\": true";
/// Longest note in bytes.
const MAX_NOTE: usize = 1024;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, save))
        .routes(routes!(one, change, remove))
        .routes(routes!(picture))
        .routes(routes!(file))
        .routes(routes!(restore))
}

/// A snapshot.
#[derive(Serialize, ToSchema)]
#[schema(as = Snapshot)]
struct SnapshotResponse {
    /// Its name.
    name: String,
    /// The game's title.
    title: String,
    /// The game's code.
    code: String,
    /// The CRC-32 of the ROM, eight hex digits.
    checksum: String,
    /// The frame counter.
    frame: u32,
    /// When it was made, in UTC (RFC 3339).
    time: String,
    /// Whatever its maker wanted to remember.
    note: String,
    /// The size of its file in bytes.
    size: u64,
    /// Where its picture is.
    picture: String,
}

impl From<Listed> for SnapshotResponse {
    fn from(Listed { entry, about }: Listed) -> SnapshotResponse {
        SnapshotResponse {
            picture: format!("/v1/snapshots/{}/picture", entry.name),
            name: entry.name.to_string(),
            title: about.title,
            code: about.code,
            checksum: format!("{:08x}", about.checksum),
            frame: about.frame,
            time: about.time,
            note: about.note,
            size: entry.size,
        }
    }
}

/// A part of the list of snapshots.
#[derive(Serialize, ToSchema)]
#[schema(as = Snapshots)]
struct SnapshotList {
    /// Sorted by name.
    snapshots: Vec<SnapshotResponse>,
    /// How many there are in all.
    total: usize,
    /// The `offset` of those that follow; null if none do.
    next: Option<usize>,
}

/// A snapshot to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Save)]
struct NewSnapshot {
    /// What to call it: 1 to 64 letters, digits, `-`, `_` and `.`; left out, the time.
    name: Option<String>,
    /// Whatever is to be remembered.
    #[serde(default)]
    #[schema(max_length = 1024)]
    note: String,
    /// Whether one of this name is replaced.
    #[serde(default)]
    replace: bool,
}

/// What to change; what is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Edit)]
struct SnapshotEdit {
    /// The new name.
    name: Option<String>,
    /// The new note.
    #[schema(max_length = 1024)]
    note: Option<String>,
}

/// The snapshots that are kept.
#[utoipa::path(get, path = "/v1/snapshots", operation_id = "snapshots", tag = "states", params(Page),
    responses((status = 200, description = "A part of the list.", body = SnapshotList)))]
async fn list(
    State(snapshots): State<Storage<Snapshots>>,
    Query(page): Query<Page>,
) -> Result<Json<SnapshotList>, Problem> {
    page.check()?;
    let snapshots = snapshots.get()?;
    let all = blocking(move || snapshots.list()).await?;
    let total = all.len();
    let part: Vec<SnapshotResponse> =
        all.into_iter().skip(page.offset).take(page.limit).map(SnapshotResponse::from).collect();
    Ok(Json(SnapshotList { next: page.next(part.len(), total), snapshots: part, total }))
}

/// Makes a snapshot of an emulator.
#[utoipa::path(post, path = "/v1/snapshots", operation_id = "saveSnapshot", tag = "states", params(EmulatorParam),
    request_body = NewSnapshot, responses(
    (status = 201, description = "It was made.", body = SnapshotResponse, headers(("location" = String, description = "Where it is."))),
    (status = 200, description = "It was made in place of one of its name.", body = SnapshotResponse, headers(("location" = String, description = "Where it is.")))))]
async fn save(
    State(operations): State<Arc<Operations>>,
    State(snapshots): State<Storage<Snapshots>>,
    SelectedEmulator(served): SelectedEmulator,
    Payload(request): Payload<NewSnapshot>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<SnapshotResponse>), Problem> {
    let NewSnapshot { name, note, replace } = request;
    let note = checked_note(note)?;
    let now = SystemTime::now();
    let name: Name = name.unwrap_or_else(|| name_of(now)).parse()?;
    let snapshots = snapshots.get()?;
    let (folder, place) = (snapshots.clone(), name.clone());
    let before = blocking(move || -> Result<bool, Problem> {
        folder.check_free(&place, replace).map_err(|error| unwritten(error, REPLACE))?;
        Ok(folder.size(&place).is_ok())
    })
    .await?;

    let ops = vec![Op::GameTitle {}, Op::GameCode {}, Op::Checksum {}, Op::SaveState { flags: 31 }];
    let _share = operations.replies.share(&ops[3])?;
    let outcome = operations.perform(&served, Batch::new(ops)).await?;
    let mut results = outcome.results.into_iter();
    let mut value = || next(&mut results);
    let (Value::Text(title), Value::Text(code), Value::Int(checksum), Value::Bytes(state)) =
        (value()?, value()?, value()?, value()?)
    else {
        return Err(unexpected_reply());
    };
    let time = time::seconds(now);
    let about = About { title, code, checksum: checksum as u32, frame: outcome.frame, time, note };
    let listed = blocking(move || -> Result<Listed, Problem> {
        let written = snapshots.write(&name, &Snapshot::new(&state, about)?, replace);
        written.map_err(|error| unwritten(error, REPLACE))?;
        Ok(snapshots.listed(&name)?)
    });
    let response = SnapshotResponse::from(listed.await?);
    let status = if before { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, [(LOCATION, format!("/v1/snapshots/{}", response.name))], Json(response)))
}

/// A name that sorts by time, such as `2026-11-21T17-04-05.123Z`.
fn name_of(time: SystemTime) -> String {
    time::millis(time).replace(':', "-")
}

fn checked_note(note: String) -> Result<String, Problem> {
    if note.len() <= MAX_NOTE {
        return Ok(note);
    }
    let problem = format!("has {} bytes", note.len());
    Err(Problem::parameter("note", &problem, format!("a text of at most {MAX_NOTE} bytes")))
}

/// What a snapshot is of.
#[utoipa::path(get, path = "/v1/snapshots/{name}", operation_id = "snapshot", tag = "states",
    params(("name" = String, Path, description = "The snapshot.")),
    responses((status = 200, description = "The snapshot.", body = SnapshotResponse)))]
async fn one(
    State(snapshots): State<Storage<Snapshots>>,
    Path(name): Path<String>,
) -> Result<Json<SnapshotResponse>, Problem> {
    let (snapshots, name) = (snapshots.get()?, name.parse::<Name>()?);
    Ok(Json(blocking(move || snapshots.listed(&name)).await?.into()))
}

/// Gives a snapshot another name or note.
#[utoipa::path(patch, path = "/v1/snapshots/{name}", operation_id = "changeSnapshot", tag = "states",
    params(("name" = String, Path, description = "The snapshot.")), request_body = SnapshotEdit,
    responses((status = 200, description = "The snapshot as it is now.", body = SnapshotResponse)))]
async fn change(
    State(snapshots): State<Storage<Snapshots>>,
    Path(name): Path<String>,
    Payload(SnapshotEdit { name: new, note }): Payload<SnapshotEdit>,
) -> Result<Json<SnapshotResponse>, Problem> {
    let (snapshots, name) = (snapshots.get()?, name.parse::<Name>()?);
    let new = new.map(|new| new.parse::<Name>()).transpose()?;
    let note = note.map(checked_note).transpose()?;
    let listed = blocking(move || -> Result<Listed, Problem> {
        snapshots.change(&name, new.as_ref(), note)?;
        Ok(snapshots.listed(new.as_ref().unwrap_or(&name))?)
    });
    Ok(Json(listed.await?.into()))
}

/// Deletes a snapshot.
#[utoipa::path(delete, path = "/v1/snapshots/{name}", operation_id = "deleteSnapshot", tag = "states",
    params(("name" = String, Path, description = "The snapshot.")),
    responses((status = 204, description = "It is gone.")))]
async fn remove(
    State(snapshots): State<Storage<Snapshots>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let (snapshots, name) = (snapshots.get()?, name.parse::<Name>()?);
    blocking(move || snapshots.remove(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The picture of a snapshot.
#[utoipa::path(get, path = "/v1/snapshots/{name}/picture", operation_id = "snapshotPicture", tag = "states",
    params(
        ("name" = String, Path, description = "The snapshot."),
        ("time" = Option<String>, Query, description = "Any text, such as the snapshot's time: browsers that hold the picture \
            of a snapshot that was replaced since ask again under another address."),
    ),
    responses((status = 200, description = "The picture.", body = Vec<u8>, content_type = "image/png")))]
async fn picture(
    State(operations): State<Arc<Operations>>,
    State(snapshots): State<Storage<Snapshots>>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let (snapshots, name) = (snapshots.get()?, name.parse::<Name>()?);
    let share = share(&operations, &snapshots, &name).await?;
    let png = blocking(move || -> Result<_, Problem> { Ok(snapshots.read(&name)?.picture()?) }).await?;
    Ok(as_png(share, png))
}

/// The file of a snapshot, which mGBA loads as a state.
#[utoipa::path(get, path = "/v1/snapshots/{name}/file", operation_id = "snapshotFile", tag = "states",
    params(("name" = String, Path, description = "The snapshot.")),
    responses((status = 200, description = "A PNG with the state inside.", body = Vec<u8>, content_type = "image/png")))]
async fn file(
    State(operations): State<Arc<Operations>>,
    State(snapshots): State<Storage<Snapshots>>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let (snapshots, name) = (snapshots.get()?, name.parse::<Name>()?);
    let share = share(&operations, &snapshots, &name).await?;
    let snapshot = blocking(move || snapshots.read(&name)).await?;
    Ok(as_png(share, snapshot.into_file()))
}

/// The memory that a snapshot's file takes.
async fn share(
    operations: &Operations,
    snapshots: &Arc<Snapshots>,
    name: &Name,
) -> Result<BudgetShare, Problem> {
    let (snapshots, name) = (snapshots.clone(), name.clone());
    let size = blocking(move || snapshots.size(&name)).await?;
    Ok(operations.replies.share_bytes(size as usize)?)
}

fn as_png(share: BudgetShare, bytes: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "image/png"), (CACHE_CONTROL, "no-store")], share.body(bytes)).into_response()
}

/// Puts an emulator into the state of a snapshot.
///
/// One of another game is refused, unless `force` is true.
#[utoipa::path(post, path = "/v1/snapshots/{name}/load", operation_id = "loadSnapshot", tag = "states",
    params(EmulatorParam, ("name" = String, Path, description = "The snapshot.")), request_body = LoadOptions,
    responses((status = 200, description = "It was loaded.", body = AtFrame)))]
async fn restore(
    State(operations): State<Arc<Operations>>,
    State(snapshots): State<Storage<Snapshots>>,
    SelectedEmulator(served): SelectedEmulator,
    Path(name): Path<String>,
    RequestKey(key): RequestKey,
    Payload(how): Payload<LoadOptions>,
) -> Result<Json<AtFrame>, Problem> {
    let (snapshots, name) = (snapshots.get()?, name.parse::<Name>()?);
    let _share = share(&operations, &snapshots, &name).await?;
    let snapshot = blocking(move || snapshots.read(&name)).await?;
    load(&operations, &served, key, snapshot.into_file(), how).await.map(Json)
}
