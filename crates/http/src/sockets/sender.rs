//! A WebSocket that sends no more than the other end reads.

use std::collections::VecDeque;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade, close_code};
use bytes::Bytes;
use futures_util::SinkExt;
use tokio::time::{Instant, sleep_until, timeout};

use super::{CloseReason, close, close_unread, fault};
use crate::failure::STOPPING;
use crate::transport::Stopping;
use crate::transport::activity::StreamControl;

/// How long the other end may take to answer a ping, or to read enough for messages to be sent.
const SILENCE: Duration = Duration::from_secs(120);
/// If nothing was sent for this time, a ping finds out whether the other end is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// The largest message that the other end may send, in bytes.
const MAX_HEARD: usize = 1024;

/// A WebSocket that sends pictures or sound. Call [`is_open`](PacedSocket::is_open) before each message.
pub(crate) struct PacedSocket {
    socket: WebSocket,
    stopping: Stopping,
    stream_control: StreamControl,
    pings: PingWindow,
    /// When something was last sent.
    sent: Instant,
}

/// An event on a [`PacedSocket`].
pub(crate) enum SocketEvent {
    /// An answer to a ping. [`PacedSocket::is_open`] may be true again.
    Pong,
    /// The other end sent a text. A binary message, which is never accepted, counts as an empty text.
    Text(String),
}

/// Why a [`PacedSocket`] ends.
#[derive(Debug, Clone)]
pub(crate) enum SocketEnd {
    /// The other end is gone.
    Gone,
    Stopping,
    NoEmulator,
    /// For [`SILENCE`], the other end has not answered a ping, or has not read enough for messages to be sent.
    Silence,
    /// The other end sent a message that is not accepted; the text says what is accepted.
    NotAccepted(&'static str),
    /// The other end sent something that cannot be received.
    Fault(CloseReason),
}

/// Limits what the other end may send.
pub(crate) fn bounded(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade.read_buffer_size(4 * MAX_HEARD).max_message_size(MAX_HEARD).max_frame_size(MAX_HEARD)
}

impl PacedSocket {
    pub(crate) fn new(socket: WebSocket, stopping: Stopping, stream_control: StreamControl) -> PacedSocket {
        let now = Instant::now();
        PacedSocket { socket, stopping, stream_control, pings: PingWindow::new(now), sent: now }
    }

    /// Whether the other end has read enough, so that more may be sent. The next answer to a ping may change this.
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

    /// Waits for the next event. This is cancel safe: if the future is dropped, no event is lost.
    pub(crate) async fn next(&mut self) -> Result<SocketEvent, SocketEnd> {
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
                    return Ok(SocketEvent::Pong);
                }
                Some(Ok(Message::Text(text))) => return Ok(SocketEvent::Text(text.to_string())),
                Some(Ok(Message::Binary(_))) => return Ok(SocketEvent::Text(String::new())),
                Some(Ok(Message::Ping(_))) => {} // answered already
                Some(Err(error)) => {
                    return Err(fault(&error, MAX_HEARD).map_or(SocketEnd::Gone, SocketEnd::Fault));
                }
                Some(Ok(Message::Close(_))) | None => return Err(SocketEnd::Gone),
            }
        }
    }

    pub(crate) async fn close(self, end: SocketEnd) {
        let (code, reason) = match end {
            SocketEnd::Gone => return,
            SocketEnd::Stopping => (close_code::AWAY, STOPPING),
            SocketEnd::NoEmulator => (close_code::AWAY, "the emulator is gone"),
            SocketEnd::Silence => (close_code::POLICY, "nothing was read for two minutes"),
            SocketEnd::Fault(reason) => {
                return close_unread(self.socket, reason, &self.stream_control, &self.stopping).await;
            }
            SocketEnd::NotAccepted(accepted) => (close_code::UNSUPPORTED, accepted),
        };
        close(self.socket, code, reason).await;
    }
}

/// A ping may take this much longer than the best round trip. If it takes longer, nothing more is sent until the answer
/// comes.
const SLACK: Duration = Duration::from_millis(100);
/// How long a ping may take while no ping has been answered yet.
const FIRST: Duration = Duration::from_secs(1);
/// The largest number of pings without an answer.
const MOST: usize = 128;
/// The best round trip is measured over the last one or two windows of this length, because the network may change.
const WINDOW: Duration = Duration::from_secs(10);

/// Finds out how much of what was sent over a WebSocket has been read.
///
/// The server sends a ping after each group of messages that it sends together. Every WebSocket library answers a ping
/// by itself, as soon as it has read everything before the ping. So the server learns how much was read, even if there
/// are buffers in between, and notices a slow reader early.
#[derive(Debug)]
pub(crate) struct PingWindow {
    /// Number of the next ping.
    next: u64,
    /// The pings without an answer: their numbers, and when they were sent.
    out: VecDeque<(u64, Instant)>,
    /// The best round trip of the current window and of the window before it.
    best: [Option<Duration>; 2],
    /// When the current window began.
    window: Instant,
}

impl PingWindow {
    pub(crate) fn new(now: Instant) -> PingWindow {
        PingWindow { next: 0, out: VecDeque::new(), best: [None; 2], window: now }
    }

    pub(crate) fn is_open(&self, now: Instant) -> bool {
        let best = self.best.iter().flatten().min();
        let time_limit = best.map_or(FIRST, |best| *best + SLACK);
        self.out.len() < MOST && self.silence(now) <= time_limit
    }

    /// How long the oldest ping has waited for its answer.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        self.out.front().map_or(Duration::ZERO, |(_, sent)| now.saturating_duration_since(*sent))
    }

    /// The payload of a ping that is sent at `now`.
    pub(crate) fn ping(&mut self, now: Instant) -> [u8; 8] {
        let number = self.next;
        self.next += 1;
        self.out.push_back((number, now));
        number.to_le_bytes()
    }

    /// Notes the answer to a ping, which also answers the pings before it (RFC 6455, 5.5.3). An answer whose payload
    /// matches no ping is ignored.
    pub(crate) fn answered(&mut self, payload: &[u8], now: Instant) {
        let Ok(number) = payload.try_into().map(u64::from_le_bytes) else { return };
        if number >= self.next {
            return;
        }
        while let Some((first, sent)) = self.out.front().copied()
            && first <= number
        {
            self.out.pop_front();
            self.round_trip(now.saturating_duration_since(sent), now);
        }
    }

    fn round_trip(&mut self, taken: Duration, now: Instant) {
        if now.saturating_duration_since(self.window) > WINDOW {
            self.best = [None, self.best[0]];
            self.window = now;
        }
        let best = &mut self.best[0];
        *best = Some(best.map_or(taken, |best| best.min(taken)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_reader_that_stops_gets_nothing_more_until_it_reads_again() {
        let start = Instant::now();
        let mut pings = PingWindow::new(start);
        let ping = pings.ping(start);
        pings.answered(&ping, start + 3 * MS);

        let stopped = start + 20 * MS;
        let ping = pings.ping(stopped);
        assert!(pings.is_open(stopped + 100 * MS));
        assert!(!pings.is_open(stopped + 104 * MS));
        assert_eq!(pings.silence(stopped + 5000 * MS), 5000 * MS);
        pings.answered(&ping, stopped + 5000 * MS);
        assert!(pings.is_open(stopped + 5000 * MS));
        assert_eq!(pings.silence(stopped + 5000 * MS), Duration::ZERO);
    }

    #[test]
    fn a_long_network_delay_does_not_count_as_a_slow_reader() {
        let start = Instant::now();
        let mut pings = PingWindow::new(start);
        let mut sent: VecDeque<(Instant, [u8; 8])> = VecDeque::new();
        for frame in 0..600 {
            let now = start + frame * 17 * MS;
            while let Some((_, ping)) = sent.front().filter(|(at, _)| *at + 300 * MS <= now) {
                pings.answered(ping, now);
                sent.pop_front();
            }
            assert!(pings.is_open(now), "frame {frame}");
            sent.push_back((now, pings.ping(now)));
        }
    }

    #[test]
    fn an_answer_also_counts_for_earlier_pings_and_an_unknown_payload_is_ignored() {
        let start = Instant::now();
        let mut pings = PingWindow::new(start);
        pings.ping(start);
        let second = pings.ping(start);
        pings.answered(b"nonsense", start + MS);
        pings.answered(b"", start + MS);
        assert_eq!(pings.silence(start + 9 * MS), 9 * MS);
        pings.answered(&second, start + MS);
        assert_eq!(pings.silence(start + 9 * MS), Duration::ZERO);
    }
}
