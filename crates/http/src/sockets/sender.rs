use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade, close_code};
use bytes::Bytes;
use futures_util::SinkExt;
use tokio::time::{Instant, sleep_until, timeout};

use super::Reason;
use super::ping_window::Flight;
use crate::app::Site;
use crate::failure::STOPPING;
use crate::sockets;
use crate::transport::guard::Outflow;

/// For how long the other end may leave a ping without an answer.
const SILENCE: Duration = Duration::from_secs(120);
/// Where nothing was sent for so long, a ping finds out whether the other end is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Longest message of the other end, in bytes.
const MAX_HEARD: usize = 1024;

/// A WebSocket that pictures or sound go out by. Whoever sends asks [`is_open`](Line::is_open) before.
pub(crate) struct Line {
    socket: WebSocket,
    site: Arc<Site>,
    outflow: Outflow,
    flight: Flight,
    /// When something was last sent.
    sent: Instant,
}

/// What happened on a [`Line`].
pub(crate) enum Heard {
    /// An answer to a ping: it may be open again.
    Pong,
    /// The other end sent a text.
    Text(String),
}

/// Why a [`Line`] ends.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// The other end is gone.
    Gone,
    /// The server stops.
    Stopping,
    /// The emulator is gone.
    NoEmulator,
    /// The other end has answered nothing for [`SILENCE`].
    Silence,
    /// The other end sent something that means nothing here; the text says what would.
    Nonsense(&'static str),
    /// The other end sent something that cannot be received.
    Fault(Reason),
}

/// Bounds what the other end may send.
pub(crate) fn bounded(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade.read_buffer_size(4 * MAX_HEARD).max_message_size(MAX_HEARD).max_frame_size(MAX_HEARD)
}

impl Line {
    pub(crate) fn new(socket: WebSocket, site: Arc<Site>, outflow: Outflow) -> Line {
        let now = Instant::now();
        Line { socket, site, outflow, flight: Flight::new(now), sent: now }
    }

    /// Whether the other end takes what it is sent; if not, an answer to a ping will tell when it does again.
    pub(crate) fn is_open(&self) -> bool {
        self.flight.is_open(Instant::now())
    }

    /// Sends messages, and a ping behind them.
    pub(crate) async fn send(&mut self, messages: impl IntoIterator<Item = Message>) -> Result<(), End> {
        let Line { socket, site, flight, sent, .. } = self;
        *sent = Instant::now();
        let ping = Message::Ping(Bytes::copy_from_slice(&flight.launch(*sent)));
        let all = async {
            for message in messages.into_iter().chain([ping]) {
                socket.feed(message).await?;
            }
            socket.flush().await
        };
        tokio::select! {
            done = timeout(SILENCE, all) => match done {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(End::Gone),
                Err(_) => Err(End::Silence),
            },
            () = site.stopped() => Err(End::Stopping),
        }
    }

    /// The next that happens. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<Heard, End> {
        loop {
            let now = Instant::now();
            let silent = self.flight.silence(now);
            if silent > SILENCE {
                return Err(End::Silence);
            }
            let alarm = match silent.is_zero() {
                true => self.sent + KEEP_ALIVE,
                false => now + (SILENCE - silent) + Duration::from_millis(1),
            };
            let message = tokio::select! {
                message = self.socket.recv() => message,
                () = self.site.stopped() => return Err(End::Stopping),
                () = sleep_until(alarm) => {
                    if silent.is_zero() {
                        self.send([]).await?;
                    }
                    continue;
                }
            };
            match message {
                Some(Ok(Message::Pong(payload))) => {
                    self.flight.landed(&payload, Instant::now());
                    return Ok(Heard::Pong);
                }
                Some(Ok(Message::Text(text))) => return Ok(Heard::Text(text.to_string())),
                Some(Ok(Message::Binary(_))) => return Ok(Heard::Text(String::new())),
                Some(Ok(Message::Ping(_))) => {} // answered already
                Some(Err(error)) => {
                    return Err(socket::fault(&error, MAX_HEARD).map_or(End::Gone, End::Fault));
                }
                Some(Ok(Message::Close(_))) | None => return Err(End::Gone),
            }
        }
    }

    /// Ends the line.
    pub(crate) async fn close(self, end: End) {
        let (code, reason) = match end {
            End::Gone => return,
            End::Stopping => (close_code::AWAY, STOPPING),
            End::NoEmulator => (close_code::AWAY, "the emulator is gone"),
            End::Silence => (close_code::POLICY, "nothing was read for two minutes"),
            End::Fault(reason) => {
                return socket::close_unread(self.socket, reason, &self.outflow, &self.site).await;
            }
            End::Nonsense(accepted) => (close_code::UNSUPPORTED, accepted),
        };
        socket::close(self.socket, code, reason).await;
    }
}
