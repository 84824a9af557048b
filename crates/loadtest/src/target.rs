//! What a kind of server must offer to be measured.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

/// A server to be measured, and how to talk to it.
pub trait Target: Send + Sync + 'static {
    /// What one worker keeps for one run.
    type Session: Session;

    /// Begins a run on a worker's thread, inside its runtime. Must not connect yet, because
    /// the time to connect is part of a cold start.
    fn session(&self) -> Self::Session;
}

/// One worker's share of one run: what its clients have in common.
pub trait Session: 'static {
    /// Sends one request at a time.
    type Client: Client;

    /// Makes another client; called when a request is due and all clients are busy.
    fn client(&self) -> Self::Client;
}

/// Sends one request at a time.
pub trait Client: 'static {
    /// Sends the payload, puts the reply into `call.reply`, which is empty at first, and checks it.
    ///
    /// The future is dropped when the request times out; the client must be ready for another exchange after that.
    fn exchange(&mut self, call: &mut Call<'_>) -> impl Future<Output = Result<(), Failure>>;
}

/// One request under way.
#[derive(Debug)]
pub struct Call<'a> {
    /// What to send.
    pub payload: &'a [u8],
    /// Where the reply goes.
    pub reply: &'a mut Vec<u8>,
    trace: Trace,
}

/// What happened to a request, step by step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trace {
    /// When it was first given to the operating system, if it was.
    pub sent: Option<Instant>,
    /// When the first byte of the last try's reply came, if one did.
    pub first_byte: Option<Instant>,
    /// How long connecting took, if a connection was opened for it.
    pub connecting: Option<Duration>,
    /// Connections opened for it.
    pub connected: u32,
    /// Further tries after the first.
    pub retries: u32,
    /// The reply's status, for protocols that have one.
    pub status: Option<u16>,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
}

impl<'a> Call<'a> {
    /// A request that is not sent yet; `reply` is empty.
    pub fn new(payload: &'a [u8], reply: &'a mut Vec<u8>) -> Self {
        Call { payload, reply, trace: Trace::default() }
    }

    /// What happened to it so far.
    pub fn trace(&self) -> Trace {
        self.trace
    }

    /// To be called for each connection that was opened, with the time it took where that is known.
    pub fn mark_connected(&mut self, took: Option<Duration>) {
        self.trace.connected += 1;
        self.trace.connecting = took.map(|took| took + self.trace.connecting.unwrap_or_default());
    }

    /// To be called right before the request is written. The first call sets [`Trace::sent`].
    pub fn mark_sent(&mut self, bytes: usize) {
        self.trace.sent.get_or_insert_with(Instant::now);
        self.trace.bytes_sent += bytes as u64;
    }

    /// To be called when bytes of the reply came.
    pub fn mark_received(&mut self, bytes: usize) {
        self.trace.first_byte.get_or_insert_with(Instant::now);
        self.trace.bytes_received += bytes as u64;
    }

    /// To be called with the reply's status.
    pub fn mark_status(&mut self, status: u16) {
        self.trace.status = Some(status);
    }

    /// To be called before each try after the first. What was received so far is dropped.
    pub fn mark_retry(&mut self) {
        self.trace.retries += 1;
        self.trace.first_byte = None;
        self.trace.status = None;
        self.reply.clear();
    }
}

/// Why a request did not get a correct reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Nothing listens, or the queue for new connections was full.
    Refused,
    /// The connection broke before the reply was whole.
    Reset,
    /// No whole reply in time.
    TimedOut,
    /// The server answered with a status other than success.
    Status(u16),
    /// A reply that is not what it should be.
    Wrong,
    /// Never sent: no connection became free before the run was over.
    NotSent,
    /// Anything else, as text.
    Other(String),
}

impl Failure {
    /// Number of kinds.
    pub const KINDS: usize = 7;
    /// Names of the kinds, in the order of [`kind`](Self::kind).
    pub const NAMES: [&'static str; Self::KINDS] =
        ["refused", "reset", "timed out", "status", "wrong reply", "not sent", "other"];

    /// Index of its kind.
    pub fn kind(&self) -> usize {
        match self {
            Failure::Refused => 0,
            Failure::Reset => 1,
            Failure::TimedOut => 2,
            Failure::Status(_) => 3,
            Failure::Wrong => 4,
            Failure::NotSent => 5,
            Failure::Other(_) => 6,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Status(status) => write!(f, "status {status}"),
            Failure::Other(text) => f.write_str(text),
            failure => f.write_str(Failure::NAMES[failure.kind()]),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Failure::Refused,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => Failure::Reset,
            io::ErrorKind::TimedOut => Failure::TimedOut,
            _ => Failure::Other(error.to_string()),
        }
    }
}
