use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::pace::Pace;
use super::params::{number, word};
use crate::app::Site;
use crate::pictures::encoder::Newest;
use crate::pictures::picture::Shot;
use crate::pictures::viewers::Seat;
use crate::problem::Problem;
use crate::routing::extract::{Chosen, Query, Which};
use crate::transport::guard::Outflow;
use crate::transport::streams::{Client, Kind};

/// What stands between two parts, and in front of the first. A part ends with it, so that a reader who waits for it has
/// the whole picture at once.
const BOUNDARY: &str = "--framewire\r\n";
/// A picture that stays the same is sent again after so long, for readers that take silence for the end.
const AGAIN: Duration = Duration::from_secs(1);
/// How often to look whether a reader takes more, when there are no new pictures to look at.
const STILL: Duration = Duration::from_millis(50);

pub(super) fn router() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(multipart))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Params {
    /// At most so many pictures a second.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 60, default = 30)]
    rate: Option<String>,
    /// What a part is: `jpeg` or `png`.
    #[param(pattern = "^(jpeg|png)$", default = "jpeg")]
    format: Option<String>,
}

/// What a part is.
#[derive(Clone, Copy)]
enum Format {
    Jpeg,
    Png,
}

/// The pictures as they are drawn, one behind the other in a reply without end: for `<img>`, OBS, ffmpeg and VLC.
#[utoipa::path(get, path = "/v1/video.mjpeg", operation_id = "videoMultipart", tag = "media", params(Which, Params),
    responses((status = 200, description = "A picture a part, until either side ends it.",
        content_type = "multipart/x-mixed-replace; boundary=framewire", body = Vec<u8>)))]
async fn multipart(
    State(site): State<Arc<Site>>,
    Chosen(served): Chosen,
    client: Client,
    Extension(outflow): Extension<Outflow>,
    Query(params): Query<Params>,
) -> Result<Response, Problem> {
    let rate = number("rate", params.rate.as_deref(), 1..=60, 30)?;
    let format = word("format", params.format.as_deref(), &[("jpeg", Format::Jpeg), ("png", Format::Png)])?;
    let seat = site.seats.take(site.streams.open(client.0, Kind::Mjpeg)?)?;
    let newest = site.studios.look(&served, site.app.deadline).await?;
    outflow.keep_short();
    outflow.has_no_end();
    let reel = Reel {
        newest,
        format,
        pace: Pace::new(rate, Instant::now()),
        last: None,
        outflow,
        site,
        _seat: seat,
    };
    let parts = stream::unfold(reel, |mut reel| async move {
        reel.next().await.map(|part| (Ok::<_, Infallible>(part), reel))
    });
    let headers =
        [(CONTENT_TYPE, "multipart/x-mixed-replace; boundary=framewire"), (CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(parts)).into_response())
}

/// The parts of a reply. They are made as the reader takes them, of the picture that is the newest then.
struct Reel {
    newest: Newest,
    format: Format,
    pace: Pace,
    /// The one that was sent last, and when.
    last: Option<(Arc<Shot>, Instant)>,
    outflow: Outflow,
    site: Arc<Site>,
    _seat: Seat,
}

impl Reel {
    async fn next(&mut self) -> Option<Bytes> {
        let site = self.site.clone();
        let shot = tokio::select! {
            shot = self.shot() => shot?,
            () = site.stopped() => return None,
        };
        let now = Instant::now();
        self.pace.went(now);
        let first = self.last.replace((shot.clone(), now)).is_none();
        let (kind, picture) = match self.format {
            Format::Jpeg => ("image/jpeg", shot.jpeg()),
            Format::Png => ("image/png", shot.png()),
        };
        let before = if first { BOUNDARY } else { "" };
        let head = format!("{before}content-type: {kind}\r\ncontent-length: {}\r\n\r\n", picture.len());
        Some([head.as_bytes(), &picture, b"\r\n", BOUNDARY.as_bytes()].concat().into())
    }

    /// The next picture to send: another than the last one, or the same after a while.
    async fn shot(&mut self) -> Option<Arc<Shot>> {
        sleep_until(self.pace.opens()).await;
        loop {
            let again = self.last.as_ref().map(|(_, sent)| *sent + AGAIN);
            match again {
                None => self.newest.changed().await.ok()?,
                Some(again) => match timeout_at(again, self.newest.changed()).await {
                    Ok(changed) => changed.ok()?,
                    Err(_) => sleep(STILL).await,
                },
            }
            if self.outflow.is_blocked() {
                continue; // this picture would be old when it is read
            }
            let Some(shot) = self.newest.borrow_and_update().clone() else { continue };
            match &self.last {
                Some((last, sent)) if shot.looks_like(last) && sent.elapsed() < AGAIN => {}
                _ => return Some(shot),
            }
        }
    }
}
