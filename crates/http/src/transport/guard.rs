//! Supervises one connection's socket: finds slow and oversized heads, unread replies, and connections that are idle
//! for too long.
//!
//! hyper has a time-out for heads. But that time-out also runs while a connection is idle, and it needs a timer for
//! each request. Here, the socket and the service store in [`Activity`] what the connection is doing. At regular
//! intervals, the connection's task checks whether the current activity has taken too long. Each of these checks is a
//! "tick".

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::{Activity, Phase, StreamControl};
use super::closing::Refusal;
use super::framing::Framing;
use super::tls::ClientStream;
use crate::limits::Limits;

/// Why the server ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The request is not read to the end, and the client gets a reply that says why.
    Refused(Refusal),
    /// The request is not HTTP, and hyper has already sent a reply.
    Malformed,
    /// No request came for a long time.
    Idle,
    /// The client does not read the reply.
    Stalled,
    /// The client has closed the connection or its sending side, and the time for the reply is over.
    Left,
}

/// Checks a connection at each tick.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Time between two ticks.
    pub(crate) tick: Duration,
    /// [`Activity::changes`] at the last tick.
    changes: u32,
    /// Ticks without a change.
    quiet: u32,
}

impl Watchdog {
    pub(crate) fn new(limits: &Limits) -> Watchdog {
        let shortest = limits.head.min(limits.idle).min(limits.stall);
        let tick = (shortest / 8).clamp(Duration::from_millis(10), Duration::from_secs(1));
        Watchdog { tick, changes: 0, quiet: 0 }
    }

    /// Checks whether the connection's current activity has taken too long.
    pub(crate) fn judge(&mut self, activity: &Activity, limits: &Limits) -> Option<Verdict> {
        let changes = activity.changes.load(Relaxed);
        self.quiet = if changes == self.changes { self.quiet + 1 } else { 0 };
        self.changes = changes;
        let (limit, verdict) = match activity.phase() {
            _ if activity.blocked.load(Relaxed) => (limits.stall, Verdict::Stalled),
            // A client from which no request was accepted yet may be idle only for a short time.
            Phase::Idle if !activity.known.load(Relaxed) => (limits.head.min(limits.idle), Verdict::Idle),
            Phase::Idle | Phase::Closing => (limits.idle, Verdict::Idle),
            Phase::Head => (limits.head, Verdict::Refused(Refusal::SLOW_HEAD)),
            Phase::Request | Phase::Upgraded => return None,
        };
        if self.tick * self.quiet >= limit { Some(verdict) } else { None }
    }
}

/// A connection's socket, which stores in [`Activity`] what passes through it.
pub(crate) struct Guarded {
    /// `None` only while it is being dropped.
    stream: Option<ClientStream>,
    activity: Arc<Activity>,
    framing: Framing,
}

impl Guarded {
    pub(crate) fn new(stream: ClientStream, activity: Arc<Activity>) -> Guarded {
        Guarded { stream: Some(stream), activity, framing: Framing::default() }
    }

    /// Counts and examines bytes that arrived.
    fn received(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.activity.received(bytes)?;
        if self.activity.phase() == Phase::Upgraded {
            return Ok(());
        }
        let examined = self.framing.examine(bytes);
        self.activity.note_framing(self.framing.complete(), self.framing.head(), bytes);
        examined.map_err(|refusal| self.activity.refuse(refusal, "the framing is refused"))
    }

    /// Checks whether the client has left, if the activity asks for it. A busy connection flushes many times, so the
    /// activity does not ask at each flush, but about once per tick.
    fn check_client(&self) {
        if self.activity.must_check_client.load(Relaxed)
            && let Some(stream) = &self.stream
        {
            self.activity.must_check_client.store(false, Relaxed);
            self.activity.note_client_check(stream.has_left());
        }
    }

    /// Returns the stream for writing. If the activity asks for it, this first checks the client, or limits how much
    /// the system buffers.
    fn outward(&mut self) -> io::Result<Pin<&mut ClientStream>> {
        self.check_client();
        if self.activity.short.load(Relaxed)
            && let Some(stream) = &self.stream
        {
            self.activity.short.store(false, Relaxed);
            // If the system refuses this, it may buffer more.
            let _ = SockRef::from(stream.socket()).set_send_buffer_size(StreamControl::HELD);
        }
        self.stream()
    }

    fn stream(&mut self) -> io::Result<Pin<&mut ClientStream>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn note_write(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.activity.sent(result.is_pending());
        if result.is_ready() {
            // A write counts as a change, because a reply may be a stream that continues for hours.
            self.activity.note_change();
        }
        result
    }
}

/// hyper gives a socket back only by dropping it.
impl Drop for Guarded {
    fn drop(&mut self) {
        *self.activity.returned.lock() = self.stream.take();
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.activity.begin_arrived_head();
        let before = buffer.filled().len();
        ready!(self.stream()?.poll_read(cx, buffer))?;
        Poll::Ready(self.received(&buffer.filled()[before..]))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = self.outward()?.poll_write(cx, bytes);
        self.note_write(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = self.outward()?.poll_write_vectored(cx, slices);
        self.note_write(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(ClientStream::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_client();
        let result = self.stream()?.poll_flush(cx);
        // With TLS, encrypted bytes that the socket has not taken wait for a flush. Plain sockets have nothing to
        // flush.
        if matches!(self.stream, Some(ClientStream::Tls(_))) {
            self.activity.sent(result.is_pending());
        }
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The refusal must still be written.
        if self.activity.refusal().is_some() {
            return Poll::Ready(Ok(()));
        }
        self.stream()?.poll_shutdown(cx)
    }
}
