use std::convert::Infallible;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::Message;
use axum::response::Response;
use framewire_emulator::{Audio, Sound};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::pictures::encoder::ViewerLimit;
use crate::problem::Problem;
use crate::routing::declare::Declare;
use crate::routing::extract::{EmulatorParam, NoParameters, OpensStream, Query, SelectedEmulator};
use crate::routing::state::AppState;
use crate::sockets::Upgrade;
use crate::sockets::sender::{Heard, PacedSocket, SocketEnd, bounded};
use crate::transport::Stopping;
use crate::transport::activity::Outflow;
use crate::transport::streams::StreamKind;

/// Left and right.
const CHANNELS: usize = 2;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(audio).counted_as(StreamKind::Audio))
}

/// The sound as it is made, over a WebSocket: a text message with its format, then samples in binary messages.
///
/// docs/video.md describes the messages. A slow listener misses sound and learns how much.
#[utoipa::path(get, path = "/v1/audio", operation_id = "audio", tag = "media", params(EmulatorParam),
    responses((status = 101, description = "The stream begins.")))]
async fn audio(
    State(stopping): State<Stopping>,
    State(viewers): State<ViewerLimit>,
    SelectedEmulator(served): SelectedEmulator,
    stream: OpensStream,
    Extension(outflow): Extension<Outflow>,
    Query(NoParameters {}): Query<NoParameters>,
    upgrade: Result<Upgrade, Problem>,
) -> Result<Response, Problem> {
    let Upgrade(upgrade) = upgrade?;
    let place = viewers.take(stream.open()?)?;
    let audio = served.emulator.audio().ok_or_else(|| {
        Problem::unsupported(
            "this emulator gives no sound: a stock mGBA plays it on its own machine and hands its script none; a game \
             that Framewire runs itself (serve --rom) has it",
        )
    })?;
    Ok(bounded(upgrade).on_upgrade(move |socket| async move {
        let mut socket = PacedSocket::new(socket, stopping, outflow);
        let Err(end) = play(&mut socket, audio).await;
        socket.close(end).await;
        drop(place);
    }))
}

async fn play(socket: &mut PacedSocket, mut audio: Audio) -> Result<Infallible, SocketEnd> {
    let mut rate = None;
    let mut missed = 0;
    loop {
        let sound = tokio::select! {
            heard = socket.next() => match heard? {
                Heard::Pong => continue,
                Heard::Text(_) => return Err(SocketEnd::Nonsense("this stream takes no messages")),
            },
            sound = audio.next() => sound.ok_or(SocketEnd::NoEmulator)?,
        };
        if !socket.is_open() {
            missed += sound.samples.len() / CHANNELS;
            continue;
        }
        let format = (rate != Some(sound.rate))
            .then(|| json!({"format": "s16le", "channels": CHANNELS, "rate": sound.rate}));
        let gap = (missed > 0).then(|| json!({"missed": missed}));
        let texts = format.into_iter().chain(gap).map(|text| Message::Text(text.to_string().into()));
        socket.send(texts.chain([Message::Binary(bytes(&sound).into())])).await?;
        (rate, missed) = (Some(sound.rate), 0);
    }
}

fn bytes(sound: &Sound) -> Vec<u8> {
    sound.samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}
