use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::Message;
use axum::response::Response;
use prometheus_client::metrics::counter::Counter;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::pace::Pace;
use super::params::number;
use crate::metrics::Meter;
use crate::pictures::encoder::{Newest, PictureEncoders, ViewerLimit};
use crate::pictures::picture::SharedPicture;
use crate::problem::Problem;
use crate::routing::declare::Declare;
use crate::routing::extract::{EmulatorParam, OpensStream, Query, SelectedEmulator};
use crate::routing::state::AppState;
use crate::sockets::Upgrade;
use crate::sockets::sender::{Heard, PacedSocket, SocketEnd, bounded};
use crate::transport::Stopping;
use crate::transport::activity::Outflow;
use crate::transport::streams::StreamKind;

/// The text by which a viewer asks for a whole picture.
const KEY: &str = "key";
/// The reason for closing the connection of a viewer that sends anything else.
const TAKES: &str = "this stream takes the text message key, which asks for a whole picture, and no other";

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(video).counted_as(StreamKind::Video))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VideoQuery {
    /// Most pictures each second.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 120, default = 60)]
    rate: Option<String>,
}

/// The pictures as they are drawn, over a WebSocket: a binary message each, with what differs from the one before.
///
/// docs/video.md describes the messages. A slow viewer gets fewer pictures, never old ones.
#[allow(clippy::too_many_arguments, reason = "a handler takes each service that it uses")]
#[utoipa::path(get, path = "/v1/video", operation_id = "video", tag = "media", params(EmulatorParam, VideoQuery),
    responses((status = 101, description = "The stream begins.")))]
async fn video(
    State(stopping): State<Stopping>,
    State(viewers): State<ViewerLimit>,
    State(encoders): State<Arc<PictureEncoders>>,
    State(meter): State<Arc<Meter>>,
    SelectedEmulator(served): SelectedEmulator,
    stream: OpensStream,
    Extension(outflow): Extension<Outflow>,
    Query(params): Query<VideoQuery>,
    upgrade: Result<Upgrade, Problem>,
) -> Result<Response, Problem> {
    let rate = number("rate", params.rate.as_deref(), 1..=120, 60)?;
    let Upgrade(upgrade) = upgrade?;
    let place = viewers.take(stream.open()?)?;
    let newest = encoders.watch(&served).await?;
    Ok(bounded(upgrade).on_upgrade(move |socket| async move {
        let skipped = meter.pictures_skipped.clone();
        let mut socket = PacedSocket::new(socket, stopping, outflow);
        let Err(end) = show(&mut socket, newest, rate, &skipped).await;
        socket.close(end).await;
        drop(place);
    }))
}

/// Sends the newest picture whenever there is a new one, it is time for one, and the viewer takes it.
async fn show(
    socket: &mut PacedSocket,
    mut newest: Newest,
    rate: u32,
    skipped: &Counter,
) -> Result<std::convert::Infallible, SocketEnd> {
    let mut pace = Pace::new(rate, Instant::now());
    let mut sent: Option<Arc<SharedPicture>> = None;
    let mut waiting = false;
    loop {
        let due = waiting && socket.is_open();
        tokio::select! {
            heard = socket.next() => match heard? {
                Heard::Pong => {}
                Heard::Text(text) if text == KEY => {
                    sent = None;
                    waiting = true;
                }
                Heard::Text(_) => return Err(SocketEnd::Nonsense(TAKES)),
            },
            changed = newest.changed(), if !waiting => {
                changed.map_err(|_| SocketEnd::NoEmulator)?;
                waiting = true;
            }
            () = sleep_until(pace.opens()), if due => {
                waiting = false;
                let Some(picture) = newest.borrow_and_update().clone() else { continue };
                let message = match &sent {
                    Some(before) => {
                        skipped.inc_by(picture.skipped_since(before));
                        picture.delta(before)
                    }
                    None => picture.key(),
                };
                socket.send([Message::Binary(message)]).await?;
                pace.went(Instant::now());
                sent = Some(picture);
            }
        }
    }
}
