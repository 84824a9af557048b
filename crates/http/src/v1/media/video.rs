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
use crate::app::Site;
use crate::pictures::encoder::Newest;
use crate::pictures::picture::Shot;
use crate::problem::Problem;
use crate::routing::extract::{Chosen, Query, Which};
use crate::sockets::Upgrade;
use crate::sockets::sender::{End, Heard, Line, bounded};
use crate::transport::guard::Outflow;
use crate::transport::streams::{Client, Kind};

/// The text by which a viewer asks for a whole picture.
const KEY: &str = "key";
/// What a viewer that sends anything else is told.
const TAKES: &str = "this stream takes the text message key, which asks for a whole picture, and no other";

pub(super) fn router() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(video))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Params {
    /// At most so many pictures a second.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 120, default = 60)]
    rate: Option<String>,
}

/// The pictures as they are drawn, over a WebSocket: a binary message each, with what differs from the one before.
///
/// docs/video.md describes the messages. A viewer that falls behind gets fewer pictures, never old ones.
#[utoipa::path(get, path = "/v1/video", operation_id = "video", tag = "media", params(Which, Params),
    responses((status = 101, description = "The stream begins.")))]
async fn video(
    State(site): State<Arc<Site>>,
    Chosen(served): Chosen,
    client: Client,
    Extension(outflow): Extension<Outflow>,
    Query(params): Query<Params>,
    upgrade: Result<Upgrade, Problem>,
) -> Result<Response, Problem> {
    let rate = number("rate", params.rate.as_deref(), 1..=120, 60)?;
    let Upgrade(upgrade) = upgrade?;
    let seat = site.seats.take(site.streams.open(client.0, Kind::Video)?)?;
    let newest = site.studios.look(&served, site.app.deadline).await?;
    Ok(bounded(upgrade).on_upgrade(move |socket| async move {
        let skipped = site.meter.pictures_skipped.clone();
        let mut line = Line::new(socket, site, outflow);
        let Err(end) = show(&mut line, newest, rate, &skipped).await;
        line.close(end).await;
        drop(seat);
    }))
}

/// Sends the newest picture whenever there is a new one, it is time for one, and the viewer takes it.
async fn show(
    line: &mut Line,
    mut newest: Newest,
    rate: u32,
    skipped: &Counter,
) -> Result<std::convert::Infallible, End> {
    let mut pace = Pace::new(rate, Instant::now());
    let mut sent: Option<Arc<Shot>> = None;
    let mut waiting = false;
    loop {
        let due = waiting && line.is_open();
        tokio::select! {
            heard = line.next() => match heard? {
                Heard::Pong => {}
                Heard::Text(text) if text == KEY => {
                    sent = None;
                    waiting = true;
                }
                Heard::Text(_) => return Err(End::Nonsense(TAKES)),
            },
            changed = newest.changed(), if !waiting => {
                changed.map_err(|_| End::NoEmulator)?;
                waiting = true;
            }
            () = sleep_until(pace.opens()), if due => {
                waiting = false;
                let Some(shot) = newest.borrow_and_update().clone() else { continue };
                let message = match &sent {
                    Some(before) => {
                        skipped.inc_by(shot.skipped_since(before));
                        shot.delta(before)
                    }
                    None => shot.key(),
                };
                line.send([Message::Binary(message)]).await?;
                pace.went(Instant::now());
                sent = Some(shot);
            }
        }
    }
}
