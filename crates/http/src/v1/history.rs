//! The history of an emulator: the past frames to which it can go back.

use std::time::{Duration, SystemTime};

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use framewire_emulator::History;
use framewire_emulator::history::{Beginning, LineOverview, Overview};
use framewire_media::{Image, png};
use framewire_protocol::{Keys, Op, OpError, Status, Value};
use framewire_recording::Recordings;
use framewire_states::{Name, Snapshots, time};

use crate::routing::prelude::*;
use crate::storage::blocking;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(history)).routes(routes!(picture)).routes(routes!(rewind))
}

/// The tolerance in comparisons with the times of snapshots and recordings, which are whole seconds in older files.
const SECOND: Duration = Duration::from_secs(1);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct HistoryQuery {
    /// Leaves out the frames before this one.
    #[serde(default)]
    #[param(default = 0)]
    first: u32,
    /// Whether to look for snapshots and recordings of these frames.
    #[serde(default = "yes")]
    #[param(default = true)]
    marks: bool,
}

/// The history of an emulator.
#[derive(Serialize, ToSchema)]
#[schema(as = History)]
struct HistoryResponse {
    /// The frame counter now.
    frame: u32,
    /// The number of the current line; null if nothing is kept yet.
    line: Option<u32>,
    /// The largest number of bytes that the history may use. The oldest states are dropped first.
    budget: usize,
    /// How many bytes it uses.
    used: usize,
    /// The lines, the oldest first.
    lines: Vec<HistoryLine>,
}

/// A sequence of frames without gaps.
#[derive(Serialize, ToSchema)]
struct HistoryLine {
    /// Its number.
    line: u32,
    /// Why a new line began: `game`, `reset`, `state` or `rewind`.
    began: &'static str,
    /// If the line began with `rewind`: the frame after which it begins; null otherwise.
    follows: Option<HistoryPlace>,
    /// The frames whose states are kept.
    states: Vec<u32>,
    /// The frames that also have a small picture, for GET /v1/timeline/picture.
    pictures: Vec<u32>,
    /// The keys that were held.
    keys: Vec<HistoryKeys>,
    /// Frames at which something other than keys changed the game, such as a write to memory or a frozen value; at most
    /// one after each state. Empty for a stock mGBA.
    changes: Vec<u32>,
    /// The snapshots of frames of this line.
    snapshots: Vec<HistoryMark>,
    /// The recordings that began on this line.
    recordings: Vec<HistoryMark>,
}

/// A frame of a line.
#[derive(Serialize, ToSchema)]
struct HistoryPlace {
    /// Number of the line.
    line: u32,
    /// The frame counter.
    frame: u32,
}

/// A change of the keys: after the frame `frame`, exactly these keys were held.
#[derive(Serialize, ToSchema)]
struct HistoryKeys {
    /// The frame counter before the first frame with these keys.
    frame: u32,
    /// The keys.
    #[schema(value_type = Vec<String>)]
    keys: Vec<&'static str>,
}

/// A snapshot or a recording of a frame.
#[derive(Serialize, ToSchema)]
struct HistoryMark {
    /// Its name.
    name: String,
    /// The frame counter.
    frame: u32,
}

/// A snapshot or a recording that may belong to a frame of the history.
struct Candidate {
    name: String,
    frame: u32,
    time: SystemTime,
}

impl Candidate {
    /// Whether the file was made while the emulator was at the file's frame on this line. A paused game can stay at a
    /// frame for a long time, and the history may store the state of that frame at any moment during this pause: an
    /// embedded core stores it when the game continues. So the file's time must lie between the times of the states
    /// before and after the frame.
    fn belongs_to(&self, line: &LineOverview) -> bool {
        let (before, rest) =
            line.states.split_at(line.states.partition_point(|state| state.frame < self.frame));
        let (same, after) = rest.split_at(rest.partition_point(|state| state.frame == self.frame));
        let Some(from) = before.last().or(same.first()) else { return false };
        from.time <= self.time + SECOND && after.first().is_none_or(|next| self.time <= next.time + SECOND)
    }
}

/// The files of the running game.
#[derive(Default)]
struct Candidates {
    snapshots: Vec<Candidate>,
    recordings: Vec<Candidate>,
}

impl Candidates {
    fn find(
        snapshots: Option<Arc<Snapshots>>,
        recordings: Option<Arc<Recordings>>,
        checksum: u32,
    ) -> Result<Candidates> {
        let snapshots = snapshots.map(|snapshots| snapshots.list()).transpose()?.unwrap_or_default();
        let recordings = recordings.map(|recordings| recordings.list()).transpose()?.unwrap_or_default();
        let candidate = |name: &Name, game: u32, frame: u32, text: &str| {
            if game != checksum {
                return None;
            }
            Some(Candidate { name: name.to_string(), frame, time: time::parse(text)? })
        };
        let snapshot = |framewire_states::Listed { entry, about }: framewire_states::Listed| {
            candidate(&entry.name, about.checksum, about.frame, &about.time)
        };
        let recording = |framewire_recording::Listed { entry, head }: framewire_recording::Listed| {
            candidate(&entry.name, head.checksum, head.frame, &head.time)
        };
        Ok(Candidates {
            snapshots: snapshots.into_iter().filter_map(snapshot).collect(),
            recordings: recordings.into_iter().filter_map(recording).collect(),
        })
    }
}

/// Takes the candidates that belong to this line out of the list, and returns them as marks. Does not remove any files.
fn take_marks(candidates: &mut Vec<Candidate>, line: &LineOverview) -> Vec<HistoryMark> {
    let taken = candidates.extract_if(.., |candidate| candidate.belongs_to(line));
    taken.map(|Candidate { name, frame, .. }| HistoryMark { name, frame }).collect()
}

impl HistoryLine {
    fn new(line: &LineOverview, candidates: &mut Candidates) -> HistoryLine {
        let (began, follows) = match line.beginning {
            Beginning::Game => ("game", None),
            Beginning::Reset => ("reset", None),
            Beginning::State => ("state", None),
            Beginning::Rewind { line, frame } => ("rewind", Some(HistoryPlace { line, frame })),
        };
        let held = |(frame, mask): &(u32, u16)| {
            let keys = Keys::from_mask(*mask).unwrap_or_default();
            HistoryKeys { frame: *frame, keys: keys.iter().map(framewire_protocol::Key::name).collect() }
        };
        HistoryLine {
            line: line.id,
            began,
            follows,
            states: line.states.iter().map(|state| state.frame).collect(),
            pictures: line.states.iter().filter(|state| state.pictured).map(|state| state.frame).collect(),
            keys: line.keys.iter().map(held).collect(),
            changes: line.changes.clone(),
            snapshots: take_marks(&mut candidates.snapshots, line),
            recordings: take_marks(&mut candidates.recordings, line),
        }
    }
}

fn history_of(selected: &SelectedEmulator) -> Result<Arc<History>> {
    selected.emulator.history().ok_or_else(|| {
        let detail = "with mGBA-http's script, there is no history, because this script does not report resets and loaded \
                      states; load Framewire's script, or use mGBA's own key for rewind";
        Problem::unsupported(detail)
    })
}

/// Returns the history of the emulator: states, small pictures, and keys.
///
/// The history of an embedded core has at least one state for each half second of the game, a picture for each second,
/// and the keys of each frame. The history of a stock mGBA has a state for each second of real time, with a
/// picture and the keys of that frame; it grows only during the 10 minutes after a request for it. A sequence of frames
/// without gaps is a *line*. A reset, loading a state, or going back begins a new line. Up to 64 lines are kept, as
/// long as there is memory for them. Another game removes all lines.
#[utoipa::path(get, path = "/v1/timeline", operation_id = "history", tag = "history",
    params(EmulatorParam, HistoryQuery), responses((status = 200, description = "The history.", body = HistoryResponse)))]
async fn history(
    State(snapshots): State<Storage<Snapshots>>,
    State(recordings): State<Storage<Recordings>>,
    selected: SelectedEmulator,
    Query(HistoryQuery { first, marks }): Query<HistoryQuery>,
) -> Result<Json<HistoryResponse>> {
    let history = history_of(&selected)?;
    let mut candidates = match selected.emulator.checksum() {
        Some(checksum) if marks => {
            let (snapshots, recordings) = (snapshots.get().ok(), recordings.get().ok());
            blocking(move || Candidates::find(snapshots, recordings, checksum)).await?
        }
        _ => Candidates::default(),
    };
    let Overview { budget, used, current, lines } = history.overview(first);
    // A file that could belong to several lines belongs to the newest.
    let newest_first = lines.iter().rev().map(|line| HistoryLine::new(line, &mut candidates));
    let mut lines: Vec<HistoryLine> = newest_first.collect();
    lines.reverse();
    Ok(Json(HistoryResponse { frame: selected.emulator.state().frame, line: current, budget, used, lines }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct PictureQuery {
    /// Number of the line.
    line: u32,
    /// The frame counter, one of `pictures`.
    frame: u32,
}

/// Returns the small picture of a frame of the history.
///
/// It has a third of the width and the height of the screen.
#[utoipa::path(get, path = "/v1/timeline/picture", operation_id = "historyPicture", tag = "history",
    params(EmulatorParam, PictureQuery),
    responses((status = 200, description = "The picture.", body = Vec<u8>, content_type = "image/png")))]
async fn picture(
    selected: SelectedEmulator,
    Query(PictureQuery { line, frame }): Query<PictureQuery>,
) -> Result<Response> {
    let picture = history_of(&selected)?.thumbnail(line, frame).ok_or_else(|| {
        let detail = format!(
            "there is no picture of frame {frame} of line {line}; GET /v1/timeline lists all pictures"
        );
        Problem::not_found(detail)
    })?;
    let pixels = picture.to_rgb();
    let image = Image::new(picture.width, picture.height, &pixels);
    let image = image.map_err(|error| Problem::new(StatusCode::BAD_GATEWAY, error.to_string()))?;
    // A cache must not keep the picture: after a restart of the server, another line gets the same number.
    Ok(([(CONTENT_TYPE, "image/png"), (CACHE_CONTROL, "no-store")], png::encode(image)).into_response())
}

/// The frame to go back to.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RewindTo, example = json!({"frame": 600}))]
struct RewindTo {
    /// The frame counter.
    frame: u32,
    /// Number of the line. If it is missing or 0: the current line and the lines that it continues.
    #[serde(default)]
    line: Option<u32>,
}

/// The frame that the emulator reached.
#[derive(Serialize, ToSchema)]
struct WentBack {
    /// The frame counter now.
    frame: u32,
    /// Whether that is the requested frame.
    exact: bool,
}

/// Takes the emulator back to a frame of its history, exactly as the game was then.
///
/// An embedded core loads the last state before the frame, and then runs the frames up to it with the same keys. If
/// something else changed the game in these frames, such as a write to memory, it goes to the frame of the first such
/// change. If the frozen values, the cheats or the sensors were different from now, it goes to the requested frame if
/// its state is kept, or else to the last frame before it that has a state. A stock mGBA always goes to one of these
/// two frames. Keys that are held stay held, and a running game continues from there. While a recording, a replay or a
/// key timeline is under way, the reply is a 409.
#[utoipa::path(post, path = "/v1/rewind", operation_id = "rewind", tag = "history", params(EmulatorParam),
    request_body = RewindTo, responses((status = 200, description = "The emulator has gone back.", body = WentBack)))]
async fn rewind(
    selected: SelectedEmulator,
    Payload(RewindTo { frame, line }): Payload<RewindTo>,
) -> Result<Json<WentBack>> {
    let op = Op::Rewind { frame, line: line.unwrap_or(0) };
    let outcome = selected.perform(selected.keyed(op)).await?;
    let now = outcome.single().map_err(|error| match error.status {
        Status::Busy => Problem::conflict(error.message),
        _ => error.into(),
    })?;
    let Value::Int(now) = now else {
        return Err(OpError::failed("the reply does not hold a frame").into());
    };
    let now = now as u32;
    Ok(Json(WentBack { frame: now, exact: now == frame }))
}
