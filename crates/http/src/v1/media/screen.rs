//! One picture.

use std::time::Duration;

use bytes::Bytes;
use framewire_emulator::{EmulatorError, FramePassed, Picture};
use framewire_media::png::{self, Pixels};
use framewire_media::{ColorCorrection, Image, Transform, TransformError, UnknownColors};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::headers::{FRAME, HEIGHT, WIDTH};
use crate::operations::budget::ReplyBudget;
use crate::operations::emulators::Served;
use crate::pictures::encoder::ViewerLimit;
use crate::pictures::screenshots::{Screenshot, screenshot};
use crate::reading::Whole;
use crate::routing::prelude::*;
use crate::transport::streams::StreamKind;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(screen).counted_as(StreamKind::Wait))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ScreenQuery {
    /// The format of the body: `png`, or `rgb` or `rgba` for three or four bytes per pixel, in rows from the top.
    #[serde(default)]
    #[param(inline)]
    format: ScreenFormat,
    /// The picture of exactly this frame, by the emulator's frame counter. Default: the last picture.
    frame: Option<u32>,
    /// Only this part of the picture: `x,y,width,height` in pixels from the top left corner.
    #[param(value_type = Option<String>, example = "0,0,120,80")]
    crop: Option<Crop>,
    /// Shows the colours as on the screen of this console: `gba` is the first Game Boy Advance, `gbc` the Game Boy
    /// Color. Default: the game's colours, unchanged.
    #[param(value_type = Option<String>, example = "gba")]
    colors: Option<Colors>,
    /// The size of the picture or its part: 0.25, 0.5, 1, 2, 3 or 4 times as wide and high. Larger pictures repeat
    /// pixels, smaller ones average them.
    #[param(minimum = 0.25, maximum = 4.0)]
    scale: Option<f64>,
    /// How many milliseconds to wait for the requested frame.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 60_000, default = 10_000)]
    timeout: Option<Whole<1, 60_000>>,
}

/// x, y, width and height.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Crop([u32; 4]);

impl TryFrom<String> for Crop {
    type Error = String;

    fn try_from(text: String) -> Result<Crop, String> {
        let numbers: Result<Vec<u32>, _> = text.split(',').map(|number| number.trim().parse()).collect();
        let numbers = numbers.ok().and_then(|numbers| numbers.try_into().ok());
        numbers
            .map(Crop)
            .ok_or_else(|| format!("is {text:?}; accepted is x,y,width,height, such as 0,0,120,80"))
    }
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Colors(ColorCorrection);

impl TryFrom<String> for Colors {
    type Error = UnknownColors;

    fn try_from(text: String) -> Result<Colors, UnknownColors> {
        text.parse().map(Colors)
    }
}

/// The format of the body.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ScreenFormat {
    #[default]
    Png,
    Rgb,
    Rgba,
}

/// Returns the picture of the last frame, or of exactly the requested frame.
///
/// The reply is 409 for a past frame, and 504 for a frame that does not come in time.
#[utoipa::path(get, path = "/v1/screen", operation_id = "screenshot", tag = "media", params(EmulatorParam, ScreenQuery),
    responses((status = 200, description = "The picture.", content((Vec<u8> = "image/png"), (Vec<u8> = "application/octet-stream")),
        headers(
            ("framewire-frame" = u32, description = "The frame counter of the picture's frame."),
            ("framewire-width" = u32, description = "The width in pixels."),
            ("framewire-height" = u32, description = "The height in pixels.")))))]
async fn screen(
    State(viewers): State<ViewerLimit>,
    selected: SelectedEmulator,
    stream: OpensStream,
    Query(ScreenQuery { format, frame, crop, colors, scale, timeout }): Query<ScreenQuery>,
) -> Result<Response> {
    let (crop, colors) = (crop.map(|Crop(crop)| crop), colors.map(|Colors(colors)| colors));
    let transform = Transform { crop, colors, scale, grey: false };
    transform.check().map_err(not_possible)?;
    let operations = &selected.operations;
    let taken = match frame {
        None => ScreenPicture::of(screenshot(&selected, Instant::now() + operations.deadline).await?),
        Some(frame) => {
            let _place = viewers.take(stream.open()?)?;
            let time_limit = Duration::from_millis(timeout.map_or(10_000, Whole::get).into());
            let wait = FrameWait { frame, time_limit, deadline: Instant::now() + time_limit };
            tokio::select! {
                taken = wait.picture(&selected) => taken?,
                () = operations.stopping.wait() => return Err(EmulatorError::Stopped.into()),
            }
        }
    };
    taken.transformed(&transform)?.into_response(format, &operations.replies)
}

/// A picture, in the form in which the emulator sent it, or transformed.
struct ScreenPicture {
    frame: u32,
    form: PictureData,
}

enum PictureData {
    /// A PNG file from the emulator.
    File(Bytes),
    /// Pixels from the emulator, or after a transformation.
    Pixels(Pixels),
}

/// The media type of pixels without a file format.
const RAW: &str = "application/octet-stream";

impl PictureData {
    fn pixels(self) -> Result<Pixels> {
        match self {
            PictureData::File(file) => png::decode(&file).map_err(unreadable),
            PictureData::Pixels(pixels) => Ok(pixels),
        }
    }
}

impl ScreenPicture {
    fn of(Screenshot { frame, png }: Screenshot) -> ScreenPicture {
        ScreenPicture { frame, form: PictureData::File(png) }
    }

    fn transformed(self, transform: &Transform) -> Result<ScreenPicture> {
        if transform.is_identity() {
            return Ok(self);
        }
        let pixels = transform.apply(self.form.pixels()?).map_err(not_possible)?;
        Ok(ScreenPicture { form: PictureData::Pixels(pixels), ..self })
    }

    fn into_response(self, format: ScreenFormat, replies: &ReplyBudget) -> Result<Response> {
        let (kind, (width, height), body) = match (format, self.form) {
            (ScreenFormat::Png, PictureData::File(file)) => {
                ("image/png", png::size(&file).map_err(unreadable)?, file.into())
            }
            (ScreenFormat::Png, PictureData::Pixels(pixels)) => {
                ("image/png", (pixels.width, pixels.height), pixels.encode())
            }
            (ScreenFormat::Rgb, form) => {
                let Pixels { width, height, rgb } = form.pixels()?;
                (RAW, (width, height), rgb)
            }
            (ScreenFormat::Rgba, form) => {
                let Pixels { width, height, rgb } = form.pixels()?;
                (RAW, (width, height), with_alpha(&rgb))
            }
        };
        let headers = [(FRAME, self.frame), (WIDTH, width), (HEIGHT, height)];
        let headers = headers.map(|(name, number)| (name, number.to_string()));
        let share = replies.share_bytes(body.len())?;
        Ok((headers, share.bytes(kind, body)).into_response())
    }
}

/// The text of the error begins with the name of the parameter.
fn not_possible(error: TransformError) -> Problem {
    let text = error.to_string();
    let (parameter, problem) = text.split_once(' ').unwrap_or((&text, ""));
    Problem::unusable(parameter, problem)
}

fn unreadable(error: impl std::fmt::Display) -> Problem {
    Problem::new(StatusCode::BAD_GATEWAY, format!("the emulator's picture cannot be used: {error}"))
}

fn with_alpha(rgb: &[u8]) -> Vec<u8> {
    rgb.as_chunks().0.iter().flat_map(|[red, green, blue]| [*red, *green, *blue, 255]).collect()
}

/// A wait for a frame.
struct FrameWait {
    frame: u32,
    time_limit: Duration,
    deadline: Instant,
}

/// When the wanted frame is at most this many frames away, a picture is requested every [`POLL_INTERVAL`].
const NEAR: u32 = 4;
/// The shortest time between two requests for a picture.
const POLL_INTERVAL: Duration = Duration::from_millis(4);

impl FrameWait {
    /// Waits for the picture of exactly the wanted frame. Returns a problem if this frame has passed, or does not come
    /// in time.
    async fn picture(&self, served: &Served) -> Result<ScreenPicture> {
        let Some(pending) = served.emulator.picture_of(self.frame) else { return self.ask(served).await };
        let taken = timeout_at(self.deadline, pending.picture()).await;
        let taken = taken.map_err(|_| self.too_late(served.emulator.state().frame))?;
        let picture = taken.ok_or(EmulatorError::Stopped)?.map_err(|FramePassed(now)| self.past(now))?;
        let Picture { frame, width, height, ref pixels, .. } = *picture;
        // Only checks that the size is possible, and that it fits the number of bytes.
        Image::new(width, height, pixels).map_err(unreadable)?;
        let form = PictureData::Pixels(Pixels { width, height, rgb: pixels.clone() });
        Ok(ScreenPicture { frame, form })
    }

    /// Like [`FrameWait::picture`], for an emulator that sends pictures only on request.
    async fn ask(&self, served: &Served) -> Result<ScreenPicture> {
        loop {
            let screenshot = screenshot(served, self.deadline).await?;
            let far = match self.frame.checked_sub(screenshot.frame) {
                None => return Err(self.past(screenshot.frame)),
                Some(0) => return Ok(ScreenPicture::of(screenshot)),
                Some(frames) => frames.saturating_sub(NEAR),
            };
            let rate = served.emulator.state().frames_per_second.max(60.0);
            let next = Instant::now() + POLL_INTERVAL.max(Duration::from_secs_f64(f64::from(far) / rate));
            sleep_until(next.min(self.deadline)).await;
            if next >= self.deadline {
                return Err(self.too_late(screenshot.frame));
            }
        }
    }

    fn past(&self, now: u32) -> Problem {
        Problem::conflict(format!("frame {} is past: the emulator is at frame {now}", self.frame))
    }

    fn too_late(&self, now: u32) -> Problem {
        let (frame, time_limit) = (self.frame, self.time_limit.as_millis());
        let detail =
            format!("frame {frame} did not come within {time_limit} ms: the emulator is at frame {now}");
        Problem::new(StatusCode::GATEWAY_TIMEOUT, detail)
    }
}
