//! Pictures and sound over WebSockets.

use std::convert::Infallible;

use axum::Extension;
use axum::extract::ws::Message;
use framewire_emulator::Audio;
use framewire_media::adpcm::AdpcmEncoder;
use prometheus_client::metrics::counter::Counter;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::multipart::Pace;
use crate::metrics::Meter;
use crate::pictures::encoder::{Newest, PictureEncoders, ViewerLimit};
use crate::pictures::picture::SharedPicture;
use crate::reading::Whole;
use crate::routing::prelude::*;
use crate::sockets::Upgrade;
use crate::sockets::sender::{PacedSocket, SocketEnd, SocketEvent, bounded};
use crate::transport::Stopping;
use crate::transport::activity::StreamControl;
use crate::transport::streams::StreamKind;

/// The text message with which a viewer asks for a whole picture.
const KEY: &str = "key";
/// The reason for closing the connection of a viewer that sends anything else.
const UNKNOWN_TEXT: &str =
    "this stream accepts only the text message \"key\", which asks for a whole picture";
/// The number of channels: left and right.
const CHANNELS: usize = 2;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(video).counted_as(StreamKind::Video))
        .routes(routes!(audio).counted_as(StreamKind::Audio))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VideoQuery {
    /// The largest number of pictures per second.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 120, default = 60)]
    rate: Option<Whole<1, 120>>,
}

/// Sends each new picture over a WebSocket, as a binary message with the difference from the previous picture.
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
    selected: SelectedEmulator,
    stream: OpensStream,
    Extension(stream_control): Extension<StreamControl>,
    Query(VideoQuery { rate }): Query<VideoQuery>,
    upgrade: Result<Upgrade>,
) -> Result<Response> {
    let rate = rate.map_or(60, Whole::get);
    let Upgrade(upgrade) = upgrade?;
    let place = viewers.take(stream.open()?)?;
    let newest = encoders.watch(&selected.served).await?;
    Ok(bounded(upgrade).on_upgrade(move |socket| async move {
        let skipped = meter.pictures_skipped.clone();
        let mut socket = PacedSocket::new(socket, stopping, stream_control);
        let Err(end) = send_pictures(&mut socket, newest, rate, &skipped).await;
        socket.close(end).await;
        drop(place);
    }))
}

/// Sends the newest picture when there is a new one, the rate limit allows it, and the viewer can take it.
async fn send_pictures(
    socket: &mut PacedSocket,
    mut newest: Newest,
    rate: u32,
    skipped: &Counter,
) -> Result<Infallible, SocketEnd> {
    let mut pace = Pace::new(rate, Instant::now());
    let mut sent: Option<Arc<SharedPicture>> = None;
    let mut waiting = false;
    loop {
        let due = waiting && socket.is_open();
        tokio::select! {
            event = socket.next() => match event? {
                SocketEvent::Pong => {}
                SocketEvent::Text(text) if text == KEY => {
                    sent = None;
                    waiting = true;
                }
                SocketEvent::Text(_) => return Err(SocketEnd::NotAccepted(UNKNOWN_TEXT)),
            },
            changed = newest.changed(), if !waiting => {
                changed.map_err(|_| SocketEnd::NoEmulator)?;
                waiting = true;
            }
            () = sleep_until(pace.earliest()), if due => {
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
                pace.note_sent(Instant::now());
                sent = Some(picture);
            }
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AudioQuery {
    /// The format of samples: `s16le`, or `adpcm`, which has a quarter of the size.
    #[serde(default)]
    #[param(inline)]
    format: SoundFormat,
}

/// The format of samples.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum SoundFormat {
    /// Signed 16-bit integers, little-endian.
    #[default]
    S16le,
    /// IMA ADPCM.
    Adpcm,
}

/// Sends the sound over a WebSocket: first its format in a text message, then samples in binary messages.
///
/// docs/video.md describes the messages. A slow listener misses sound and learns how much.
#[utoipa::path(get, path = "/v1/audio", operation_id = "audio", tag = "media", params(EmulatorParam, AudioQuery),
    responses((status = 101, description = "The stream begins.")))]
async fn audio(
    State(stopping): State<Stopping>,
    State(viewers): State<ViewerLimit>,
    selected: SelectedEmulator,
    stream: OpensStream,
    Extension(stream_control): Extension<StreamControl>,
    Query(AudioQuery { format }): Query<AudioQuery>,
    upgrade: Result<Upgrade>,
) -> Result<Response> {
    let Upgrade(upgrade) = upgrade?;
    let place = viewers.take(stream.open()?)?;
    let audio = selected.emulator.audio().ok_or_else(|| {
        Problem::unsupported(
            "this emulator sends no sound: a stock mGBA plays the sound itself, and its script cannot read it; use a \
             game that Framewire runs itself (serve --rom)",
        )
    })?;
    Ok(bounded(upgrade).on_upgrade(move |socket| async move {
        let mut socket = PacedSocket::new(socket, stopping, stream_control);
        let Err(end) = send_sound(&mut socket, audio, format).await;
        socket.close(end).await;
        drop(place);
    }))
}

async fn send_sound(
    socket: &mut PacedSocket,
    mut audio: Audio,
    format: SoundFormat,
) -> Result<Infallible, SocketEnd> {
    let mut adpcm = AdpcmEncoder::new();
    let mut rate = None;
    let mut missed = 0;
    loop {
        let sound = tokio::select! {
            event = socket.next() => match event? {
                SocketEvent::Pong => continue,
                SocketEvent::Text(_) => return Err(SocketEnd::NotAccepted("this stream takes no messages")),
            },
            sound = audio.next() => sound.ok_or(SocketEnd::NoEmulator)?,
        };
        let pairs = sound.samples.len() / CHANNELS;
        // The skipped frames had about as much sound as this one.
        missed += audio.take_skipped() as usize * pairs;
        // The listener has not read enough of what was sent before, so it misses this sound.
        if !socket.is_open() {
            missed += pairs;
            continue;
        }
        let mut messages = Vec::new();
        let mut say = |text: serde_json::Value| messages.push(Message::Text(text.to_string().into()));
        if rate != Some(sound.rate) {
            say(json!({"format": format, "channels": CHANNELS, "rate": sound.rate}));
        }
        if missed > 0 {
            say(json!({"missed": missed}));
        }
        let samples: Vec<u8> = match format {
            SoundFormat::S16le => sound.samples.iter().flat_map(|sample| sample.to_le_bytes()).collect(),
            SoundFormat::Adpcm => adpcm.encode(&sound.samples),
        };
        messages.push(Message::Binary(samples.into()));
        socket.send(messages).await?;
        (rate, missed) = (Some(sound.rate), 0);
    }
}
