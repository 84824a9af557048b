use std::time::Duration;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade, close_code};
use bytes::Bytes;
use futures_util::SinkExt;
use tokio::time::{Instant, sleep_until, timeout};

use super::ping_window::PingWindow;
use super::{CloseReason, close, close_unread, fault};
use crate::failure::STOPPING;
use crate::stopping::Stopping;
use crate::transport::activity::Outflow;

/// For how long the other end may leave a ping without an answer.
const SILENCE: Duration = Duration::from_secs(120);
/// When nothing was sent for this time, a ping finds out whether the other end is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Longest message of the other end, in bytes.
const MAX_HEARD: usize = 1024;

/// A WebSocket that sends pictures or sound. A sender first asks [`is_open`](PacedSocket::is_open).
pub(crate) struct PacedSocket {
    socket: WebSocket,
    stopping: Stopping,
    outflow: Outflow,
    pings: PingWindow,
    /// When something was last sent.
    sent: Instant,
}

/// What happened on a [`PacedSocket`].
pub(crate) enum Heard {
    /// An answer to a ping: it may be open again.
    Pong,
    /// The other end sent a text.
    Text(String),
}

/// Why a [`PacedSocket`] ends.
#[derive(Debug, Clone)]
pub(crate) enum SocketEnd {
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
    Fault(CloseReason),
}

/// Bounds what the other end may send.
pub(crate) fn bounded(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade.read_buffer_size(4 * MAX_HEARD).max_message_size(MAX_HEARD).max_frame_size(MAX_HEARD)
}

impl PacedSocket {
    pub(crate) fn new(socket: WebSocket, stopping: Stopping, outflow: Outflow) -> PacedSocket {
        let now = Instant::now();
        PacedSocket { socket, stopping, outflow, pings: PingWindow::new(now), sent: now }
    }

    /// Whether the other end takes what it is sent; if not, an answer to a ping will tell when it does again.
    pub(crate) fn is_open(&self) -> bool {
        self.pings.is_open(Instant::now())
    }

    /// Sends messages, and a ping after them.
    pub(crate) async fn send(
        &mut self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<(), SocketEnd> {
        let PacedSocket { socket, stopping, pings, sent, .. } = self;
        *sent = Instant::now();
        let ping = Message::Ping(Bytes::copy_from_slice(&pings.ping(*sent)));
        let all = async {
            for message in messages.into_iter().chain([ping]) {
                socket.feed(message).await?;
            }
            socket.flush().await
        };
        tokio::select! {
            done = timeout(SILENCE, all) => match done {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(SocketEnd::Gone),
                Err(_) => Err(SocketEnd::Silence),
            },
            () = stopping.wait() => Err(SocketEnd::Stopping),
        }
    }

    /// The next that happens. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<Heard, SocketEnd> {
        loop {
            let now = Instant::now();
            let silent = self.pings.silence(now);
            if silent > SILENCE {
                return Err(SocketEnd::Silence);
            }
            let alarm = if silent.is_zero() {
                self.sent + KEEP_ALIVE
            } else {
                now + (SILENCE - silent) + Duration::from_millis(1)
            };
            let message = tokio::select! {
                message = self.socket.recv() => message,
                () = self.stopping.wait() => return Err(SocketEnd::Stopping),
                () = sleep_until(alarm) => {
                    if silent.is_zero() {
                        self.send([]).await?;
                    }
                    continue;
                }
            };
            match message {
                Some(Ok(Message::Pong(payload))) => {
                    self.pings.answered(&payload, Instant::now());
                    return Ok(Heard::Pong);
                }
                Some(Ok(Message::Text(text))) => return Ok(Heard::Text(text.to_string())),
                Some(Ok(Message::Binary(_))) => return Ok(Heard::Text(String::new())),
                Some(Ok(Message::Ping(_))) => {} // answered already
                Some(Err(error)) => {
                    return Err(fault(&error, MAX_HEARD).map_or(SocketEnd::Gone, SocketEnd::Fault));
                }
                Some(Ok(Message::Close(_))) | None => return Err(SocketEnd::Gone),
            }
        }
    }

    /// Ends the line.
    pub(crate) async fn close(self, end: SocketEnd) {
        let (code, reason) = match end {
            SocketEnd::Gone => return,
            SocketEnd::Stopping => (close_code::AWAY, STOPPING),
            SocketEnd::NoEmulator => (close_code::AWAY, "the emulator is gone"),
            SocketEnd::Silence => (close_code::POLICY, "nothing was read for two minutes"),
            SocketEnd::Fault(reason) => {
                return close_unread(self.socket, reason, &self.outflow, &self.stopping).await;
            }
            SocketEnd::Nonsense(accepted) => (close_code::UNSUPPORTED, accepted),
        };
        close(self.socket, code, reason).await;
    }
}
