//! Watches and events over HTTP, as server-sent events. A client reads a watch by its definition, or creates it first
//! and reads it by its id.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::http::HeaderMap;
use axum::http::header::LOCATION;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::StreamExt;
use futures_util::stream::{iter, unfold};

use crate::access::caller::Owner;
use crate::failure::STOPPING;
use crate::feeds::definition::{BUFFER, Definition};
use crate::feeds::feed::Reader;
use crate::feeds::registry::{Feeds, Listed};
use crate::reading::fields::Encoding;
use crate::routing::prelude::*;
use crate::transport::Stopping;
use crate::transport::activity::StreamControl;
use crate::transport::streams::{OpenStream, StreamKind};

/// After this time without an event, a comment is sent, so that each end notices when the other is gone.
const SILENCE: Duration = Duration::from_secs(5);
/// How long clients wait before they connect again after a break.
const RETRY: Duration = Duration::from_secs(1);

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(read).counted_as(StreamKind::Events))
        .routes(routes!(events).counted_as(StreamKind::Events))
        // Read-only callers may also create watches, and delete those that belong to them: `delete` checks the owner.
        .routes(routes!(create, list).judged_later())
        .routes(routes!(show, delete).judged_later())
}

/// What to watch, in a query.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct WatchQuery {
    /// An expression over memory, such as `score`, `u16[0x02000038] > 100` or `bytes[ball_x, 8]`. Repeat the parameter
    /// for each expression, up to 64 times.
    #[serde(default)]
    watch: Vec<String>,
    /// Whether the events of GET /v1/events are reported too, such as resets, loaded states and pauses.
    #[serde(default)]
    events: bool,
    /// How the bytes of `bytes[…]` are written.
    #[serde(default)]
    encoding: Encoding,
    /// How many events are kept, up to 1 MiB in all, for readers that are slow or come back. Default: 1024.
    #[param(minimum = 1, maximum = 16_384)]
    buffer: Option<usize>,
    /// The id of a watch that POST /v1/watches created. None of the other parameters may be given with it.
    id: Option<String>,
}

/// The header with which a client resumes a stream.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes what `last_id` reads")]
struct Resumed {
    /// The id of the last event that the client got. Browsers send it by themselves.
    #[param(rename = "Last-Event-ID")]
    last_event_id: Option<String>,
}

/// A watch.
#[derive(Serialize, ToSchema)]
struct Watch {
    /// Its id, for `GET /v1/watch?id=`.
    id: String,
    /// The watched expressions.
    watch: Vec<String>,
    /// How the bytes of `bytes[…]` are written.
    encoding: Encoding,
    /// The largest number of events that are kept.
    buffer: usize,
    /// The frame counter of its latest event.
    frame: u32,
    /// The value of each expression.
    #[schema(value_type = Object)]
    values: serde_json::Value,
    /// The number of its readers.
    readers: usize,
    /// The number of events that are kept.
    kept: usize,
    /// The number of events so far.
    events: u64,
    /// The number of events that readers missed. An event that two readers missed counts twice.
    missed: u64,
}

/// The watches of an emulator.
#[derive(Serialize, ToSchema)]
struct WatchList {
    watches: Vec<Watch>,
}

impl From<Listed> for Watch {
    fn from(Listed { feed, .. }: Listed) -> Watch {
        let (frame, values) = feed.values();
        let (kept, events, missed) = feed.counts();
        let Definition { watch, encoding, buffer, .. } = feed.definition.clone();
        let (id, readers) = (feed.id.clone(), feed.readers().borrow().count);
        Watch { id, watch, encoding, buffer, frame, values, readers, kept, events, missed }
    }
}

/// Watches memory, and sends its changes as server-sent events, each with the old value, the new value and the frame.
///
/// The events are `values` (all values at the beginning), `change`, `missed` (how many events the client missed, and
/// all current values) and `end`. With `events=true`, the events of GET /v1/events come too.
#[utoipa::path(get, path = "/v1/watch", operation_id = "watch", tag = "watches", params(EmulatorParam, WatchQuery, Resumed),
    responses((status = 200, description = "Events, until either side ends the stream.", content_type = "text/event-stream",
        body = String)))]
async fn read(
    State(stopping): State<Stopping>,
    State(feeds): State<Arc<Feeds>>,
    selected: SelectedEmulator,
    stream: OpensStream,
    Extension(stream_control): Extension<StreamControl>,
    headers: HeaderMap,
    Query(query): Query<WatchQuery>,
) -> Result<Response> {
    let WatchQuery { watch, events, encoding, buffer, id } = query;
    let definition = Definition { watch, events, encoding, buffer: buffer.unwrap_or(BUFFER) };
    let open = stream.open()?;
    let reader = match id {
        Some(_) if definition != Definition::default() => {
            let problem = "is given together with other parameters, but already determines what is watched";
            return Err(Problem::parameter("id", problem, "either id or the other parameters"));
        }
        Some(id) => feeds.get(&id)?.feed.read(last_id(&headers)),
        None => feeds.read(&selected, definition, last_id(&headers)).await?,
    };
    Ok(stream_of(stopping, reader, open, &stream_control))
}

/// Creates a watch that clients read by its id. It ends after 10 minutes without a reader.
#[utoipa::path(post, path = "/v1/watches", operation_id = "createWatch", tag = "watches", params(EmulatorParam),
    request_body = Definition,
    responses((status = 201, description = "It was created.", body = Watch, headers(("location" = String, description = "Its path.")))))]
async fn create(
    State(feeds): State<Arc<Feeds>>,
    selected: SelectedEmulator,
    owner: Owner,
    Payload(definition): Payload<Definition>,
) -> Result<Created<Watch>> {
    let listed = feeds.create(&selected, definition, owner).await?;
    let watch = Watch::from(listed);
    let location = [(LOCATION, format!("/v1/watches/{}", watch.id))];
    Ok((StatusCode::CREATED, location, Json(watch)))
}

/// Lists the watches of an emulator, including those that GET /v1/watch created.
#[utoipa::path(get, path = "/v1/watches", operation_id = "watches", tag = "watches", params(EmulatorParam),
    responses((status = 200, description = "All watches.", body = WatchList)))]
async fn list(State(feeds): State<Arc<Feeds>>, selected: SelectedEmulator) -> Json<WatchList> {
    Json(WatchList { watches: feeds.list(&selected.name).into_iter().map(Watch::from).collect() })
}

/// Returns a watch, with the values of its expressions.
#[utoipa::path(get, path = "/v1/watches/{id}", operation_id = "showWatch", tag = "watches",
    params(("id" = String, Path, description = "The watch.")),
    responses((status = 200, description = "The watch.", body = Watch)))]
async fn show(State(feeds): State<Arc<Feeds>>, Path(id): Path<String>) -> Result<Json<Watch>> {
    Ok(Json(feeds.get(&id)?.into()))
}

/// Ends a watch; its readers get `end`. With a read-only token, only watches that were created with it from the same
/// address can be ended.
#[utoipa::path(delete, path = "/v1/watches/{id}", operation_id = "deleteWatch", tag = "watches",
    params(("id" = String, Path, description = "The watch.")),
    responses((status = 204, description = "The watch has ended.")))]
async fn delete(
    State(feeds): State<Arc<Feeds>>,
    caller: Owner,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    feeds.delete(&id, caller).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends the events of an emulator, such as resets and pauses, as server-sent events.
///
/// They are `reset`, `state` (a state was loaded), `game` (another game was loaded), `connected`, `disconnected`,
/// `stalled` (the emulator does not reply), `running`, `paused`, `input` (a key timeline is over), `lockstep` (lockstep
/// ended by itself), `save` (the battery save cannot be written, or can be written again), `rumble` (the cartridge
/// rumbles, or has stopped), `missed` (how many events the client missed, or how many were lost with the connection to
/// mGBA; null if the number is not known) and `end`. Each event has the `frame`, except `end` and some `missed` events.
#[utoipa::path(get, path = "/v1/events", operation_id = "events", tag = "watches", params(EmulatorParam, Resumed),
    responses((status = 200, description = "Events, until either side ends the stream.", content_type = "text/event-stream",
        body = String)))]
async fn events(
    State(stopping): State<Stopping>,
    State(feeds): State<Arc<Feeds>>,
    selected: SelectedEmulator,
    stream: OpensStream,
    Extension(stream_control): Extension<StreamControl>,
    headers: HeaderMap,
    Query(NoParameters {}): Query<NoParameters>,
) -> Result<Response> {
    let open = stream.open()?;
    let definition = Definition::only_events();
    let reader = feeds.read(&selected, definition, last_id(&headers)).await?;
    Ok(stream_of(stopping, reader, open, &stream_control))
}

/// The id of the last event that the client got, if the request has it.
fn last_id(headers: &HeaderMap) -> Option<&str> {
    headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default())
}

/// Sends events until the feed ends, the client disconnects or the server stops.
fn stream_of(
    stopping: Stopping,
    reader: Reader,
    open: OpenStream,
    stream_control: &StreamControl,
) -> Response {
    stream_control.set_endless();
    struct SseState {
        stopping: Stopping,
        reader: Reader,
        _open: OpenStream,
        over: bool,
    }
    let state = SseState { stopping, reader, _open: open, over: false };
    let events = unfold(state, |mut state| async move {
        if state.over {
            return None;
        }
        let next = tokio::select! {
            next = state.reader.next() => next?,
            () = state.stopping.wait() => state.reader.end(STOPPING),
        };
        state.over = next.name == "end";
        let event = Event::default().id(&next.id).event(next.name).data(&next.data);
        Some((Ok::<_, Infallible>(event), state))
    });
    let first = Event::default().retry(RETRY).comment("framewire");
    let response = Sse::new(iter([Ok(first)]).chain(events)).keep_alive(KeepAlive::new().interval(SILENCE));
    // Otherwise, nginx would hold events back until its buffer is full.
    ([("x-accel-buffering", "no")], response).into_response()
}
