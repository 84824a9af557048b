//! What a kind of server must offer to be measured.

use std::fmt;
use std::io;
use std::time::Instant;

/// A server to be measured, and how to talk to it.
pub trait Target: Send + Sync + 'static {
    /// What one worker keeps for one run.
    type Session: Session;

    /// Begins a run on a worker's thread, inside its runtime. Must not connect yet: a cold start is cold.
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
    /// Sends the payload and puts the reply into `call.reply`, which is empty.
    ///
    /// The future is dropped when the request times out; the client must be fit for another exchange after that.
    fn exchange(&mut self, call: &mut Call<'_>) -> impl Future<Output = Result<(), Failure>>;
}

/// One request under way.
#[derive(Debug)]
pub struct Call<'a> {
    /// What to send.
    pub payload: &'a [u8],
    /// Where the reply goes.
    pub reply: &'a mut Vec<u8>,
    /// When the request was first given to the operating system, if it was.
    sent: Option<Instant>,
    /// Connections opened for it.
    connected: u32,
    /// Further tries after the first.
    retries: u32,
}

impl<'a> Call<'a> {
    /// A request that is not sent yet; `reply` is empty.
    pub fn new(payload: &'a [u8], reply: &'a mut Vec<u8>) -> Self {
        Call { payload, reply, sent: None, connected: 0, retries: 0 }
    }

    /// When it was first sent, if it was.
    pub fn sent(&self) -> Option<Instant> {
        self.sent
    }

    /// How many connections were opened for it.
    pub fn connected(&self) -> u32 {
        self.connected
    }

    /// How many times it was tried again.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// To be called for each try after the first.
    pub fn mark_retry(&mut self) {
        self.retries += 1;
    }

    /// To be called right before the request is written: the second clock starts. Only the first call counts.
    pub fn mark_sent(&mut self) {
        self.sent.get_or_insert_with(Instant::now);
    }

    /// To be called for each connection that was opened.
    pub fn mark_connected(&mut self) {
        self.connected += 1;
    }
}

/// Why a request has no right reply.
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
    /// A reply that differs from the payload.
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
