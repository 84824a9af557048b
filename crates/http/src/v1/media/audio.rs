use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::Message;
use axum::response::Response;
use framewire_emulator::{Audio, Sound};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Site;
use crate::problem::Problem;
use crate::routing::extract::{Chosen, Nothing, Query, Which};
use crate::sockets::Upgrade;
use crate::sockets::sender::{End, Heard, Line, bounded};
use crate::transport::guard::Outflow;
use crate::transport::streams::{Client, Kind};

/// Left and right.
const CHANNELS: usize = 2;

pub(super) fn router() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(audio))
}

/// The sound as it is made, over a WebSocket: a text message with its format, then samples in binary messages.
///
/// docs/video.md describes the messages. A listener that falls behind misses sound and is told how much.
#[utoipa::path(get, path = "/v1/audio", operation_id = "audio", tag = "media", params(Which),
    responses((status = 101, description = "The stream begins.")))]
async fn audio(
    State(site): State<Arc<Site>>,
    Chosen(served): Chosen,
    client: Client,
    Extension(outflow): Extension<Outflow>,
    Query(Nothing {}): Query<Nothing>,
    upgrade: Result<Upgrade, Problem>,
) -> Result<Response, Problem> {
    let Upgrade(upgrade) = upgrade?;
    let seat = site.seats.take(site.streams.open(client.0, Kind::Audio)?)?;
    let audio = served.emulator.audio().ok_or_else(|| {
        Problem::unsupported(
            "this emulator gives no sound: a stock mGBA plays it on its own machine and hands its script none; a game \
             that Framewire runs itself (serve --rom) has it",
        )
    })?;
    Ok(bounded(upgrade).on_upgrade(move |socket| async move {
        let mut line = Line::new(socket, site, outflow);
        let Err(end) = play(&mut line, audio).await;
        line.close(end).await;
        drop(seat);
    }))
}

async fn play(line: &mut Line, mut audio: Audio) -> Result<Infallible, End> {
    let mut rate = None;
    let mut missed = 0;
    loop {
        let sound = tokio::select! {
            heard = line.next() => match heard? {
                Heard::Pong => continue,
                Heard::Text(_) => return Err(End::Nonsense("this stream takes no messages")),
            },
            sound = audio.next() => sound.ok_or(End::NoEmulator)?,
        };
        if !line.is_open() {
            missed += sound.samples.len() / CHANNELS;
            continue;
        }
        let format = (rate != Some(sound.rate))
            .then(|| json!({"format": "s16le", "channels": CHANNELS, "rate": sound.rate}));
        let gap = (missed > 0).then(|| json!({"missed": missed}));
        let texts = format.into_iter().chain(gap).map(|text| Message::Text(text.to_string().into()));
        line.send(texts.chain([Message::Binary(bytes(&sound).into())])).await?;
        (rate, missed) = (Some(sound.rate), 0);
    }
}

fn bytes(sound: &Sound) -> Vec<u8> {
    sound.samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}
