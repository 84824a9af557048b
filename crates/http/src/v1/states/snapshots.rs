//! Snapshots: states with a name, a picture and data about their game, kept on disk.

use std::time::SystemTime;

use axum::http::header::LOCATION;
use framewire_protocol::Op;
use framewire_states::{About, Listed, Name, Snapshot, Snapshots, time};

use super::{LoadOptions, load, next_result};
use crate::operations::Operations;
use crate::routing::prelude::*;
use crate::storage::{blocking, checked_note, unwritten};
use crate::v1::control::AtFrame;

/// The field that a client adds to a request to replace an existing snapshot.
const REPLACE: &str = "\"replace\": true";

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
    /// The note that the client gave.
    note: String,
    /// The size of its file in bytes.
    size: u64,
    /// The path of its picture.
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
    /// The snapshots, sorted by name.
    snapshots: Vec<SnapshotResponse>,
    /// The total number of snapshots.
    total: usize,
    /// The `offset` of the next part; null if this is the last one.
    next: Option<usize>,
}

/// A snapshot to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Save)]
struct NewSnapshot {
    /// Its name: 1 to 64 letters, digits, `-`, `_` and `.`. Default: the time.
    name: Option<String>,
    /// A note that is stored in the snapshot.
    #[serde(default)]
    #[schema(max_length = 1024)]
    note: String,
    /// Whether to replace a snapshot with this name.
    #[serde(default)]
    replace: bool,
}

/// The changes to a snapshot. Fields that are left out do not change.
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

/// Lists the snapshots.
#[utoipa::path(get, path = "/v1/snapshots", operation_id = "snapshots", tag = "states", params(Page),
    responses((status = 200, description = "A part of the list.", body = SnapshotList)))]
async fn list(
    State(snapshots): State<Storage<Snapshots>>,
    Query(page): Query<Page>,
) -> Result<Json<SnapshotList>> {
    let snapshots = snapshots.get()?;
    let all = blocking(move || snapshots.list()).await?;
    let total = all.len();
    let (snapshots, next) = page.part(all);
    Ok(Json(SnapshotList { snapshots, total, next }))
}

/// Makes a snapshot of an emulator.
#[utoipa::path(post, path = "/v1/snapshots", operation_id = "saveSnapshot", tag = "states", params(EmulatorParam),
    request_body = NewSnapshot, responses(
    (status = 201, description = "The snapshot was made.", body = SnapshotResponse, headers(("location" = String, description = "Its path."))),
    (status = 200, description = "It replaced one with the same name.", body = SnapshotResponse, headers(("location" = String, description = "Its path.")))))]
async fn save(
    State(snapshots): State<Storage<Snapshots>>,
    selected: SelectedEmulator,
    Payload(request): Payload<NewSnapshot>,
) -> Result<Created<SnapshotResponse>> {
    let NewSnapshot { name, note, replace } = request;
    let note = checked_note(note)?;
    let now = SystemTime::now();
    let name: Name = name.unwrap_or_else(|| name_of(now)).parse()?;
    let snapshots = snapshots.get()?;
    let (files, place) = (snapshots.clone(), name.clone());
    let existed = blocking(move || -> Result<bool> {
        files.folder().check_free(&place, replace).map_err(|error| unwritten(error, REPLACE))?;
        Ok(files.folder().size(&place).is_ok())
    })
    .await?;

    let ops = vec![Op::GameTitle {}, Op::GameCode {}, Op::Checksum {}, Op::SaveState { flags: 31 }];
    let _share = selected.share(&ops[3])?;
    let outcome = selected.perform(ops).await?;
    let mut results = outcome.results.into_iter();
    let mut value = || next_result(&mut results);
    let (title, code) = (value()?.try_into()?, value()?.try_into()?);
    let (checksum, state): (i64, Vec<u8>) = (value()?.try_into()?, value()?.try_into()?);
    let time = time::millis(now);
    let about = About { title, code, checksum: checksum as u32, frame: outcome.frame, time, note };
    let listed = blocking(move || -> Result<Listed> {
        let written = snapshots.write(&name, &Snapshot::new(&state, about)?, replace);
        written.map_err(|error| unwritten(error, REPLACE))?;
        Ok(snapshots.listed(&name)?)
    });
    let response = SnapshotResponse::from(listed.await?);
    let status = if existed { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, [(LOCATION, format!("/v1/snapshots/{}", response.name))], Json(response)))
}

/// A name that sorts by time, such as `2026-11-21T17-04-05.123Z`.
fn name_of(time: SystemTime) -> String {
    time::millis(time).replace(':', "-")
}

/// Returns the game, the time and the note of a snapshot.
#[utoipa::path(get, path = "/v1/snapshots/{name}", operation_id = "snapshot", tag = "states",
    params(("name" = String, Path, description = "The snapshot.")),
    responses((status = 200, description = "The snapshot.", body = SnapshotResponse)))]
async fn one(snapshot: StoredFile<Snapshots>) -> Result<Json<SnapshotResponse>> {
    Ok(Json(snapshot.with(Snapshots::listed).await?.into()))
}

/// Changes the name or the note of a snapshot.
#[utoipa::path(patch, path = "/v1/snapshots/{name}", operation_id = "changeSnapshot", tag = "states",
    params(("name" = String, Path, description = "The snapshot.")), request_body = SnapshotEdit,
    responses((status = 200, description = "The snapshot as it is now.", body = SnapshotResponse)))]
async fn change(
    snapshot: StoredFile<Snapshots>,
    Payload(SnapshotEdit { name: new, note }): Payload<SnapshotEdit>,
) -> Result<Json<SnapshotResponse>> {
    let new = new.map(|new| new.parse::<Name>()).transpose()?;
    let note = note.map(checked_note).transpose()?;
    let listed = snapshot.with(move |snapshots, name| -> Result<Listed> {
        snapshots.change(name, new.as_ref(), note)?;
        Ok(snapshots.listed(new.as_ref().unwrap_or(name))?)
    });
    Ok(Json(listed.await?.into()))
}

/// Deletes a snapshot.
#[utoipa::path(delete, path = "/v1/snapshots/{name}", operation_id = "deleteSnapshot", tag = "states",
    params(("name" = String, Path, description = "The snapshot.")),
    responses((status = 204, description = "The snapshot was deleted.")))]
async fn remove(snapshot: StoredFile<Snapshots>) -> Result<StatusCode> {
    snapshot.remove().await
}

/// Returns the picture of a snapshot.
#[utoipa::path(get, path = "/v1/snapshots/{name}/picture", operation_id = "snapshotPicture", tag = "states",
    params(
        ("name" = String, Path, description = "The snapshot."),
        ("time" = Option<String>, Query, description = "Any text, such as the snapshot's time. A different text makes a \
            browser fetch the picture again after the snapshot was replaced."),
    ),
    responses((status = 200, description = "The picture.", body = Vec<u8>, content_type = "image/png")))]
async fn picture(
    State(operations): State<Arc<Operations>>,
    snapshot: StoredFile<Snapshots>,
) -> Result<Response> {
    let share = snapshot.share(&operations).await?;
    let png = snapshot.with(|snapshots, name| -> Result<_> { Ok(snapshots.read(name)?.picture()?) });
    Ok(share.bytes("image/png", png.await?))
}

/// Returns the file of a snapshot, which mGBA can load as a state.
#[utoipa::path(get, path = "/v1/snapshots/{name}/file", operation_id = "snapshotFile", tag = "states",
    params(("name" = String, Path, description = "The snapshot.")),
    responses((status = 200, description = "A PNG with the state inside.", body = Vec<u8>, content_type = "image/png")))]
async fn file(
    State(operations): State<Arc<Operations>>,
    snapshot: StoredFile<Snapshots>,
) -> Result<Response> {
    let share = snapshot.share(&operations).await?;
    let snapshot = snapshot.with(Snapshots::read).await?;
    Ok(share.bytes("image/png", snapshot.into_file()))
}

/// Loads the state of a snapshot.
///
/// A snapshot of another game is refused, unless `force` is true.
#[utoipa::path(post, path = "/v1/snapshots/{name}/load", operation_id = "loadSnapshot", tag = "states",
    params(EmulatorParam, ("name" = String, Path, description = "The snapshot.")), request_body = LoadOptions,
    responses((status = 200, description = "The snapshot was loaded.", body = AtFrame)))]
async fn restore(
    selected: SelectedEmulator,
    snapshot: StoredFile<Snapshots>,
    Payload(how): Payload<LoadOptions>,
) -> Result<Json<AtFrame>> {
    let _share = snapshot.share(&selected.operations).await?;
    let snapshot = snapshot.with(Snapshots::read).await?;
    load(&selected, snapshot.into_file(), how).await
}
