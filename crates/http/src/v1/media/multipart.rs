//! Pictures one after another in an endless reply, and the limit on pictures per second.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use bytes::Bytes;
use futures_util::stream::unfold;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::pictures::encoder::{Newest, PictureEncoders, ViewerLimit, ViewerPlace};
use crate::pictures::picture::SharedPicture;
use crate::reading::Whole;
use crate::routing::prelude::*;
use crate::transport::Stopping;
use crate::transport::activity::StreamControl;
use crate::transport::streams::StreamKind;

/// The line between two parts, and before the first one. It is sent together with the part before it, so that a reader
/// that waits for this line gets the whole picture at once.
const BOUNDARY: &str = "--framewire\r\n";
/// If the picture does not change, it is sent again after this time, because some readers interpret silence as the end.
const AGAIN: Duration = Duration::from_secs(1);
/// While no new picture comes, the server checks at this interval whether the reader has taken the last part.
const STILL: Duration = Duration::from_millis(50);

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(multipart).counted_as(StreamKind::Mjpeg))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MjpegQuery {
    /// The largest number of pictures per second.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 60, default = 30)]
    rate: Option<Whole<1, 60>>,
    /// The format of a part.
    #[serde(default)]
    #[param(inline)]
    format: MjpegFormat,
}

/// The format of a part.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum MjpegFormat {
    #[default]
    Jpeg,
    Png,
}

/// Sends each new picture in an endless reply, for `<img>`, OBS, ffmpeg and VLC.
#[utoipa::path(get, path = "/v1/video.mjpeg", operation_id = "videoMultipart", tag = "media", params(EmulatorParam, MjpegQuery),
    responses((status = 200, description = "One picture in each part, until either side ends the reply.",
        content_type = "multipart/x-mixed-replace; boundary=framewire", body = Vec<u8>)))]
async fn multipart(
    State(stopping): State<Stopping>,
    State(viewers): State<ViewerLimit>,
    State(encoders): State<Arc<PictureEncoders>>,
    selected: SelectedEmulator,
    stream: OpensStream,
    Extension(stream_control): Extension<StreamControl>,
    Query(MjpegQuery { rate, format }): Query<MjpegQuery>,
) -> Result<Response> {
    let place = viewers.take(stream.open()?)?;
    let newest = encoders.watch(&selected.served).await?;
    // Otherwise, pictures could wait in the system's buffers and be outdated when the client reads them.
    stream_control.keep_short();
    stream_control.set_endless();
    let parts = MjpegStream {
        newest,
        format,
        pace: Pace::new(rate.map_or(30, Whole::get), Instant::now()),
        last: None,
        stream_control,
        stopping,
        _place: place,
    };
    let parts = unfold(parts, |mut parts| async move {
        parts.next().await.map(|part| (Ok::<_, Infallible>(part), parts))
    });
    let headers =
        [(CONTENT_TYPE, "multipart/x-mixed-replace; boundary=framewire"), (CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(parts)).into_response())
}

/// The parts of a reply. Each is made from the newest picture when the reader takes it.
struct MjpegStream {
    newest: Newest,
    format: MjpegFormat,
    pace: Pace,
    /// The picture that was sent last, and when it was sent.
    last: Option<(Arc<SharedPicture>, Instant)>,
    stream_control: StreamControl,
    stopping: Stopping,
    _place: ViewerPlace,
}

impl MjpegStream {
    async fn next(&mut self) -> Option<Bytes> {
        let stopping = self.stopping.clone();
        let picture = tokio::select! {
            picture = self.picture() => picture?,
            () = stopping.wait() => return None,
        };
        let now = Instant::now();
        self.pace.note_sent(now);
        let first = self.last.replace((picture.clone(), now)).is_none();
        let (kind, file) = match self.format {
            MjpegFormat::Jpeg => ("image/jpeg", picture.jpeg()),
            MjpegFormat::Png => ("image/png", picture.png()),
        };
        let before = if first { BOUNDARY } else { "" };
        let head = format!("{before}content-type: {kind}\r\ncontent-length: {}\r\n\r\n", file.len());
        Some([head.as_bytes(), &file, b"\r\n", BOUNDARY.as_bytes()].concat().into())
    }

    /// The next picture to send: a new one or, after a while, the last one again.
    async fn picture(&mut self) -> Option<Arc<SharedPicture>> {
        sleep_until(self.pace.earliest()).await;
        loop {
            let again = self.last.as_ref().map(|(_, sent)| *sent + AGAIN);
            match again {
                None => self.newest.changed().await.ok()?,
                Some(again) => match timeout_at(again, self.newest.changed()).await {
                    Ok(changed) => changed.ok()?,
                    Err(_) => sleep(STILL).await,
                },
            }
            if self.stream_control.is_blocked() {
                // The reader has not taken the last part yet, so this picture would be old when it is read. If no newer
                // one comes before the reader takes that part, this picture is sent.
                if let Ok(changed) = timeout(STILL, self.newest.changed()).await {
                    changed.ok()?;
                }
                self.newest.mark_changed();
                continue;
            }
            let Some(picture) = self.newest.borrow_and_update().clone() else { continue };
            match &self.last {
                Some((last, sent)) if picture.looks_like(last) && sent.elapsed() < AGAIN => {}
                _ => return Some(picture),
            }
        }
    }
}

/// How many intervals before its due time a picture may be sent. This allows pictures at uneven intervals.
const EARLY: u32 = 2;

/// Limits the number of pictures per second, even if they come at uneven intervals.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    /// When the next picture would be due if all pictures came at even intervals.
    due: Instant,
}

impl Pace {
    pub fn new(rate: u32, now: Instant) -> Pace {
        Pace { interval: Duration::from_secs(1) / rate, due: now }
    }

    /// The earliest time at which the next picture may be sent.
    pub fn earliest(&self) -> Instant {
        self.due.checked_sub(self.interval * EARLY).unwrap_or(self.due)
    }

    pub fn note_sent(&mut self, now: Instant) {
        self.due = self.due.max(now) + self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the pictures that come at these times, in microseconds, may be sent without a delay.
    fn count(rate: u32, times: impl Iterator<Item = u64>) -> usize {
        let start = Instant::now();
        let mut pace = Pace::new(rate, start);
        times
            .filter(|micros| {
                let now = start + Duration::from_micros(*micros);
                let passes = pace.earliest() <= now;
                if passes {
                    pace.note_sent(now);
                }
                passes
            })
            .count()
    }

    #[test]
    fn all_pictures_at_the_console_s_rate_pass_even_at_uneven_intervals() {
        assert_eq!(count(60, (0..6000).map(|frame| frame * 16_743)), 6000);
        assert_eq!(count(60, (0..6000).map(|frame| frame * 16_743 + frame % 3 * 8_000)), 6000);
    }

    #[test]
    fn pictures_above_the_rate_do_not_pass() {
        let fast = count(60, (0..10_000).map(|millisecond| millisecond * 1000));
        assert!((598..=605).contains(&fast), "{fast} in ten seconds");
        let half = count(30, (0..600).map(|frame| frame * 16_743));
        assert!((300..=304).contains(&half), "{half} in ten seconds");
    }
}
