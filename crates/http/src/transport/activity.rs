//! The state of a connection, which its socket and its service update.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use memchr::memchr;
use parking_lot::Mutex;

use super::closing::Refusal;
use super::incoming::{Account, Charge, OutOfMemory};
use super::tls::ClientStream;
use crate::limits::Limits;

/// The state of a connection. Only one task at a time uses it: the connection's own or, after an upgrade, the task of
/// the WebSocket. Most fields are atomic, because a task moves between threads.
#[derive(Debug)]
pub(crate) struct Activity {
    /// A [`Phase`].
    phase: AtomicU8,
    /// Counts changes, so that a periodic check sees whether there was one since the last check.
    pub(super) changes: AtomicU32,
    /// Whether the socket cannot take more of the reply now.
    pub(super) blocked: AtomicBool,
    /// The current head, or the last one.
    head: Mutex<Head>,
    /// The incomplete head after the requests that have arrived to their end.
    next_head: Mutex<Head>,
    /// How many requests have begun, and how many have arrived to their end. If the client sends requests without
    /// waiting for the replies, the second number can be larger. Both wrap around.
    requests: AtomicU32,
    complete: AtomicU32,
    /// The reply to a request that is not read to its end.
    refusal: OnceLock<Refusal>,
    /// The memory that arriving data uses.
    account: Account,
    /// When the current request began, in milliseconds since `birth`.
    begun: AtomicU64,
    birth: Instant,
    /// Whether the reply is endless: see [`StreamControl::set_endless`].
    endless: AtomicBool,
    /// Whether the messages of a WebSocket are counted: see [`StreamControl::count_messages`].
    messages: AtomicBool,
    /// Whether the socket must check whether the client has left. The socket stores the result in the next three
    /// fields.
    pub(super) must_check_client: AtomicBool,
    /// Whether the client was still there at a check during the current request.
    seen: AtomicBool,
    /// Whether the client has left.
    left: AtomicBool,
    /// When the client was found to have left, in milliseconds since `birth`. It is set only if an earlier check during
    /// the same request found the client there.
    left_at: AtomicU64,
    /// Whether a request was accepted. Before that, a client on another machine may be idle only for the time that a
    /// request's head may take.
    pub(super) known: AtomicBool,
    /// Whether the socket must limit how much of the reply the system buffers: see [`StreamControl::keep_short`].
    pub(super) short: AtomicBool,
    /// The socket, after hyper or the WebSocket has released it.
    pub(super) returned: Mutex<Option<ClientStream>>,
}

/// How much of a head has arrived.
#[derive(Debug, Default, Clone, Copy)]
struct Head {
    bytes: usize,
    /// How many bytes of the first line have arrived. As long as this is equal to `bytes`, the line has not ended.
    line: usize,
    /// Whether the first bytes show that the path is under `/v1`.
    under_v1: bool,
}

impl Head {
    /// Counts bytes that arrived, and returns how many had arrived before them.
    fn add(&mut self, bytes: &[u8]) -> usize {
        let before = self.bytes;
        if self.bytes == 0 {
            self.under_v1 = begins_under_v1(bytes);
        }
        if self.line == self.bytes {
            self.line += memchr(b'\n', bytes).unwrap_or(bytes.len());
        }
        self.bytes += bytes.len();
        before
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Between requests.
    Idle,
    /// Some bytes of a request have arrived, and its head is not complete.
    Head,
    /// A request is being answered; its body has a time-out of its own.
    Request,
    /// The last reply has been made and is being sent. The client may still be sending; what arrives is ignored.
    Closing,
    /// The connection is a WebSocket.
    Upgraded,
}

impl Activity {
    /// The activity of a new connection. `known` says whether its client counts as known before its first request.
    pub(crate) fn new(known: bool, account: Account) -> Activity {
        Activity {
            phase: AtomicU8::new(Phase::Idle as u8),
            changes: AtomicU32::new(0),
            blocked: AtomicBool::new(false),
            head: Mutex::default(),
            next_head: Mutex::default(),
            requests: AtomicU32::new(0),
            complete: AtomicU32::new(0),
            refusal: OnceLock::new(),
            account,
            begun: AtomicU64::new(0),
            birth: Instant::now(),
            endless: AtomicBool::new(false),
            messages: AtomicBool::new(false),
            must_check_client: AtomicBool::new(false),
            seen: AtomicBool::new(false),
            left: AtomicBool::new(false),
            left_at: AtomicU64::new(0),
            known: known.into(),
            short: AtomicBool::new(false),
            returned: Mutex::default(),
        }
    }

    /// Notes that a request of the client was accepted. `full` says whether the client may do everything.
    pub(crate) fn note_accepted(&self, full: bool) {
        self.known.store(true, Relaxed);
        self.account.set_full(full);
    }

    /// Reserves the memory for a body of this many bytes.
    pub(crate) fn expect_body(&self, bytes: usize) -> Result<(), OutOfMemory> {
        self.account.reserve(bytes)
    }

    /// Notes that the head of a request is complete.
    pub(crate) fn begin_request(&self, now: Instant) {
        self.begun.store(self.age(now), Relaxed);
        self.seen.store(false, Relaxed);
        self.endless.store(false, Relaxed);
        let mut head = self.head.lock();
        *head = Head { under_v1: head.under_v1, ..Head::default() };
        drop(head);
        increase(&self.requests);
        self.enter(Phase::Request);
    }

    /// Notes how many requests have arrived to their end, and how many bytes of an incomplete head have arrived after
    /// them. `bytes` are the bytes that arrived last.
    pub(super) fn note_framing(&self, requests: u32, head: usize, bytes: &[u8]) {
        self.complete.store(requests, Relaxed);
        let mut next = self.next_head.lock();
        if head <= bytes.len() {
            *next = Head::default();
        }
        next.add(&bytes[bytes.len() - head.min(bytes.len())..]);
    }

    /// Called before each read from the socket. If a part of the next head has arrived together with the last request,
    /// notes that a head is arriving. hyper reads again only after it has sent the reply to that request.
    pub(super) fn begin_arrived_head(&self) {
        if self.phase() != Phase::Idle || self.complete.load(Relaxed) != self.requests.load(Relaxed) {
            return;
        }
        let next = *self.next_head.lock();
        if next.bytes > 0 {
            *self.head.lock() = next;
            self.enter(Phase::Head);
        }
    }

    /// Whether a part of the current request's body has not arrived.
    pub(crate) fn is_arriving(&self) -> bool {
        let ahead = self.complete.load(Relaxed).wrapping_sub(self.requests.load(Relaxed));
        ahead.cast_signed() < 0
    }

    /// Notes that the reply is ready to be sent. If `unread` is true, a part of the request may not have been read, and
    /// the connection ends.
    pub(crate) fn end_request(&self, unread: bool) {
        drop(self.account.end());
        self.enter(if unread { Phase::Closing } else { Phase::Idle });
    }

    pub(crate) fn upgrade(&self) {
        drop(self.account.end());
        self.enter(Phase::Upgraded);
    }

    /// Whether the path of the current or last request is known to be under `/v1`.
    pub(crate) fn is_under_v1(&self) -> bool {
        self.head.lock().under_v1
    }

    /// The reply to a request that is not read to its end. `None` if there is no such request, or its reply has been
    /// made.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        if self.phase() == Phase::Closing { None } else { self.refusal.get().copied() }
    }

    /// The reply to a head that has grown beyond [`Limits::MAX_HEAD`]. If most of the head is its first line, the URL
    /// is too long; otherwise the headers are.
    fn oversized(&self) -> Refusal {
        if self.head.lock().line <= Limits::MAX_HEAD / 2 {
            return Refusal::LONG_HEADERS;
        }
        if self.is_under_v1() { Refusal::LONG_TARGET } else { Refusal::LONG_LINE }
    }

    /// Whether the rest of the request is not read.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.refusal.get().is_some()
    }

    /// Stops reading the request. If it was refused before, the first refusal counts. Returns the error for the reader.
    pub(super) fn refuse(
        &self,
        refusal: Refusal,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> io::Error {
        self.refusal.get_or_init(|| refusal);
        io::Error::other(error)
    }

    /// When to end the work for a client that seems to have left. Until then, the work continues, because the client
    /// may have closed only its sending side. `None` if the client has not left, or has no request in progress.
    pub(super) fn stays_until(&self, time_limit: Duration) -> Option<Instant> {
        let busy = self.phase() == Phase::Request || self.endless.load(Relaxed);
        if busy && self.left.load(Relaxed) {
            let since = self.begun.load(Relaxed).max(self.left_at.load(Relaxed));
            return Some(self.birth + Duration::from_millis(since) + time_limit);
        }
        // The socket reads this flag when the connection flushes, which happens whenever the connection is polled.
        self.must_check_client.store(busy, Relaxed);
        None
    }

    /// Notes whether a check found that the client has left.
    pub(super) fn note_client_check(&self, has_left: bool) {
        if !has_left {
            self.seen.store(true, Relaxed);
        } else if !self.left.swap(true, Relaxed) && self.seen.load(Relaxed) {
            self.left_at.store(self.age(Instant::now()), Relaxed);
        }
    }

    /// Milliseconds from the connection's beginning to `now`.
    fn age(&self, now: Instant) -> u64 {
        let age = now.saturating_duration_since(self.birth).as_millis();
        u64::try_from(age).unwrap_or(u64::MAX)
    }

    /// Takes the socket back, if hyper or the WebSocket has released it.
    pub(crate) fn take_stream(&self) -> Option<ClientStream> {
        self.returned.lock().take()
    }

    pub(super) fn phase(&self) -> Phase {
        let phase = self.phase.load(Relaxed);
        [Phase::Idle, Phase::Head, Phase::Request, Phase::Closing, Phase::Upgraded][usize::from(phase)]
    }

    fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.note_change();
    }

    /// Counts a change, for the periodic check.
    pub(super) fn note_change(&self) {
        increase(&self.changes);
    }

    /// Counts bytes that arrived. Fails if they are too many.
    pub(super) fn received(&self, bytes: &[u8]) -> io::Result<()> {
        let phase = self.phase();
        let counts = match phase {
            Phase::Idle | Phase::Head | Phase::Request => true,
            Phase::Closing => false,
            Phase::Upgraded => self.messages.load(Relaxed),
        };
        if counts {
            let counted = self.account.add(bytes.len());
            counted.map_err(|error| self.refuse(Refusal::OUT_OF_MEMORY, error))?;
        }
        match phase {
            // Empty lines before a head do not count.
            Phase::Idle if bytes.iter().any(|byte| !b"\r\n".contains(byte)) => self.enter(Phase::Head),
            Phase::Head => {}
            _ => return Ok(()),
        }
        let before = self.head.lock().add(bytes);
        if before + bytes.len() > Limits::MAX_HEAD && !ends_within(Limits::MAX_HEAD, before, bytes) {
            return Err(self.refuse(self.oversized(), "the head of a request is too large"));
        }
        Ok(())
    }

    /// Notes whether the socket is blocked, which means that it takes no more of the reply now.
    pub(super) fn sent(&self, blocked: bool) {
        if self.blocked.load(Relaxed) != blocked {
            self.blocked.store(blocked, Relaxed);
            self.note_change();
        }
    }
}

/// Increases a counter. Only one task at a time does so, so no atomic addition is needed.
fn increase(counter: &AtomicU32) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

/// Whether the head that begins with these bytes has a path under `/v1`.
fn begins_under_v1(head: &[u8]) -> bool {
    /// The length of the longest methods (OPTIONS and CONNECT) and of the space after them, in bytes.
    const METHOD_AND_SPACE: usize = 8;
    let method = head.iter().take(METHOD_AND_SPACE).position(|byte| *byte == b' ');
    let rest = method.and_then(|end| head[end + 1..].strip_prefix(b"/v1"));
    rest.and_then(<[u8]>::first).is_some_and(|next| b"/? ".contains(next))
}

/// Whether a head ends within these bytes and within `limit`. `before` is the number of earlier bytes of the head.
fn ends_within(limit: usize, before: usize, bytes: &[u8]) -> bool {
    // The empty line that ends a head may arrive in two parts. If these bytes begin with what may be the second part,
    // the head is not refused yet. If that was only the end of another line, it is refused when the next bytes arrive.
    let rests = [&b"\n"[..], b"\r\n", b"\n\r\n"];
    let rest_of_end = rests.iter().any(|rest| bytes.starts_with(rest) && before + rest.len() <= limit);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    rest_of_end || end.is_some_and(|end| before + end + 4 <= limit)
}

/// Controls how an endless reply is sent, and counts the messages of a WebSocket.
#[derive(Clone)]
pub(crate) struct StreamControl(Arc<Activity>);

impl StreamControl {
    /// How many bytes the system may buffer after [`StreamControl::keep_short`].
    pub(super) const HELD: usize = 64 * 1024;

    pub(crate) fn new(activity: Arc<Activity>) -> StreamControl {
        StreamControl(activity)
    }

    /// From now on, limits how much the system buffers. Otherwise, if the client is slow, much of an endless reply
    /// could wait in the system's buffers and be outdated when the client reads it.
    pub(crate) fn keep_short(&self) {
        self.0.short.store(true, Relaxed);
    }

    /// Notes that the reply is endless, so the server must end it when the client leaves.
    pub(crate) fn set_endless(&self) {
        self.0.endless.store(true, Relaxed);
    }

    /// A number that changes each time the system takes bytes to send.
    pub(crate) fn writes(&self) -> u32 {
        self.0.changes.load(Relaxed)
    }

    /// From now on, counts the bytes of each WebSocket message as memory until [`StreamControl::end_message`].
    pub(crate) fn count_messages(&self) {
        self.0.messages.store(true, Relaxed);
    }

    /// Notes that a message is complete. Its memory is released when the charge is dropped.
    pub(crate) fn end_message(&self) -> Option<Charge> {
        self.0.account.end()
    }

    /// Stops counting a ping or pong with this many bytes. It can come in the middle of a message, whose bytes still
    /// count.
    pub(crate) fn end_control(&self, data: usize) {
        /// The header of the frame: two bytes and the mask.
        const HEADER: usize = 6;
        self.0.account.subtract(HEADER + data);
    }

    /// Takes the connection back after an upgrade, when the WebSocket has released it.
    pub(crate) fn take_stream(&self) -> Option<ClientStream> {
        self.0.take_stream()
    }

    /// Whether the system cannot take more now.
    pub(crate) fn is_blocked(&self) -> bool {
        self.0.blocked.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_head_counts_only_within_the_limit() {
        assert!(ends_within(10, 5, b"x\r\n\r\nGET"));
        assert!(!ends_within(10, 6, b"x\r\n\r\nGET"));
        assert!(ends_within(10, 7, b"\n\r\nGET"), "the end arrived in two parts");
        assert!(ends_within(10, 9, b"\nGET"));
        assert!(!ends_within(10, 10, b"\nGET"));
    }
}
