//! A feed as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;

use crate::failure::STOPPING;
use crate::feeds::feed::Reader;
use crate::transport::Stopping;
use crate::transport::activity::Outflow;
use crate::transport::streams::OpenStream;

/// How long a stream may be silent. Both ends notice by it that the other is gone.
const SILENCE: Duration = Duration::from_secs(5);
/// When clients are to come back if the connection breaks.
const RETRY: Duration = Duration::from_secs(1);

/// The id of the event that a client saw last, if it says so.
pub(super) fn last_id(headers: &HeaderMap) -> Option<&str> {
    headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default())
}

/// Streams until the feed ends, the client goes or the server stops.
pub(super) fn response(stopping: Stopping, reader: Reader, open: OpenStream, outflow: &Outflow) -> Response {
    outflow.has_no_end();
    struct SseState {
        stopping: Stopping,
        reader: Reader,
        _open: OpenStream,
        begun: bool,
        over: bool,
    }
    let state = SseState { stopping, reader, _open: open, begun: false, over: false };
    let events = unfold(state, |mut state| async move {
        if !state.begun {
            state.begun = true;
            return Some((Ok::<_, Infallible>(Event::default().retry(RETRY).comment("framewire")), state));
        }
        if state.over {
            return None;
        }
        let next = tokio::select! {
            next = state.reader.next() => next?,
            () = state.stopping.wait() => state.reader.end(STOPPING),
        };
        state.over = next.name == "end";
        let event = Event::default().id(&next.id).event(next.name).data(&next.data);
        Some((Ok(event), state))
    });
    let response = Sse::new(events).keep_alive(KeepAlive::new().interval(SILENCE));
    // nginx would hold events back to fill its buffer.
    ([("x-accel-buffering", "no")], response).into_response()
}
