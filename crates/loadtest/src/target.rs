//! The traits to implement for a kind of server, so that it can be measured.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

/// A server to measure, and how to send requests to it.
pub trait Target: Send + Sync + 'static {
    /// What one worker keeps for one run.
    type Session: Session;

    /// Begins a run. Called on a worker's thread, outside of its runtime. Must not connect yet: in a run with a
    /// cold start, the time of the first connections is measured too.
    fn session(&self) -> Self::Session;
}

/// What the clients of one worker share during one run.
pub trait Session: 'static {
    /// Sends one request at a time.
    type Client: Client;

    /// Creates another client. It is called when a request is due and all clients are busy.
    fn client(&self) -> Self::Client;
}

/// A client that can be cloned is its own session: each further client is a clone.
impl<C: Client + Clone> Session for C {
    type Client = C;

    fn client(&self) -> C {
        self.clone()
    }
}

/// Sends one request at a time.
pub trait Client: 'static {
    /// Sends the payload, puts the reply into `call.reply`, which is empty at first, and checks it.
    ///
    /// The future is dropped when the request times out; the client must be ready for another exchange after that.
    fn exchange(&mut self, call: &mut Call<'_>) -> impl Future<Output = Result<(), Failure>>;
}

/// A request in progress.
#[derive(Debug)]
pub struct Call<'a> {
    /// What to send.
    pub payload: &'a [u8],
    /// The buffer for the reply.
    pub reply: &'a mut Vec<u8>,
    trace: Trace,
}

/// What happened to a request, step by step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trace {
    /// When the request was first passed to the operating system, if it was sent.
    pub sent: Option<Instant>,
    /// When the first byte of the reply to the last attempt arrived, if one did.
    pub first_byte: Option<Instant>,
    /// How long it took to open all connections for the request together; `None` if none was opened, or if the time is
    /// not known.
    pub connecting: Option<Duration>,
    /// The number of connections that were opened for the request.
    pub connected: u32,
    /// The number of retries.
    pub retries: u32,
    /// The reply's status, for protocols that have one.
    pub status: Option<u16>,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
}

impl<'a> Call<'a> {
    /// A request that is not sent yet. `reply` must be empty.
    pub fn new(payload: &'a [u8], reply: &'a mut Vec<u8>) -> Self {
        Call { payload, reply, trace: Trace::default() }
    }

    /// What has happened to the request so far.
    pub fn trace(&self) -> Trace {
        self.trace
    }

    /// Call this for each connection that was opened, with the time that it took, if that is known.
    pub fn mark_connected(&mut self, took: Option<Duration>) {
        self.trace.connected += 1;
        self.trace.connecting = took.map(|took| took + self.trace.connecting.unwrap_or_default());
    }

    /// Call this right before each attempt is sent, with the number of its bytes, or with 0 if bytes are not counted.
    /// The first call sets [`Trace::sent`].
    pub fn mark_sent(&mut self, bytes: usize) {
        self.trace.sent.get_or_insert_with(Instant::now);
        self.trace.bytes_sent += bytes as u64;
    }

    /// Call this each time bytes of the reply have arrived, with their number. The first call for an attempt sets
    /// [`Trace::first_byte`].
    pub fn mark_received(&mut self, bytes: usize) {
        self.trace.first_byte.get_or_insert_with(Instant::now);
        self.trace.bytes_received += bytes as u64;
    }

    /// Call this with the reply's status.
    pub fn mark_status(&mut self, status: u16) {
        self.trace.status = Some(status);
    }

    /// Call this before each retry. It drops what was received so far.
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
    /// The connection was refused, usually because no program listens at the address.
    Refused,
    /// The connection broke before the reply was complete.
    Reset,
    /// There was no complete reply in time.
    TimedOut,
    /// The server answered with a status that the check does not accept.
    Status(u16),
    /// The content of the reply is not correct.
    Wrong,
    /// The request was never sent, because no connection became free before the run was over.
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
