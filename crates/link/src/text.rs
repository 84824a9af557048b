//! One connection to mGBA-http's script: text, one message at a time.

use std::io;
use std::time::{Duration, Instant};

use framewire_protocol::{Effect, Op, OpError, Outcome, Status, marker};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::{MissedTickBehavior, interval};

use crate::LinkError;
use crate::checks::{self, DomainSizes};
use crate::session::OpenRequest;
use crate::silence::{self, SilenceCheck};
use crate::state::{ConnectionEnd, LinkState, READ, TICK, TURNS, asked_to_stop};

/// Time between two heartbeats, which also ask for the frame counter. The script needs a frame for each one.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// The largest number of bytes of a reply. The largest range that can be read, 16 MiB of memory, takes 48 MiB as text.
const MAX_REPLY: usize = 64 * 1024 * 1024;

/// The error for a change with an idempotency key.
const KEYED: &str = "mGBA-http's script cannot remember what it has done under a key: leave the key out, or load Framewire's \
                     script (`framewire script`)";

/// A batch whose operations are sent one by one.
struct Work {
    /// Its number in the session.
    id: u64,
    request: OpenRequest,
    /// The results so far. The operation after them was sent, unless `asked` is set.
    outcome: Outcome,
    /// How many of the operations were checked.
    checked: usize,
    /// The memory domain whose size was asked for. The next operation is sent after the answer.
    asked: Option<String>,
}

impl Work {
    /// Whether an operation that changes something was sent.
    fn may_have_changed(&self) -> bool {
        let sent = self.outcome.results.len() + usize::from(self.asked.is_none());
        self.request.batch.ops.iter().take(sent).any(|op| op.info().effect == Effect::Change)
    }

    fn refuse(mut self, error: OpError) {
        self.outcome.results.push(Err(error));
        (self.request.respond)(Ok(self.outcome));
    }

    /// The operations to check before the next one is sent. At first, these are all operations up to the first one that
    /// loads another game. Each later operation is checked alone, just before it is sent.
    fn ops_to_check(&self) -> &[Op] {
        let done = self.outcome.results.len();
        let end = match self.request.batch.ops.iter().position(Op::loads_game) {
            _ if done > 0 => done + 1,
            Some(load) => load + 1,
            None => self.request.batch.ops.len(),
        };
        self.request.batch.ops.get(self.checked..end).unwrap_or_default()
    }
}

/// Why the open message was sent. A message is open until its reply has arrived.
enum Waiting {
    /// To perform the next operation of this work, or to get the size of a memory domain that it needs.
    Work(Work),
    /// To check that the script still answers: a heartbeat.
    Heartbeat,
    /// For a batch that has missed its deadline in the meantime. The reply will be dropped.
    Expired,
}

struct TextConnection<'a> {
    state: &'a mut LinkState,
    stream: TcpStream,
    /// The message to write. The first `written` bytes of it have been written.
    out: Vec<u8>,
    written: usize,
    received: Vec<u8>,
    /// How many bytes at the start of `received` are known to contain no end of a reply.
    searched: usize,
    /// What the open message was sent for, and when.
    waiting: Option<(Waiting, Instant)>,
    /// When the last heartbeat was sent. At the start, it is so long ago that the first heartbeat is sent at once.
    beat: Instant,
    /// When bytes last arrived.
    arrived: Instant,
    silence: SilenceCheck,
    sizes: DomainSizes,
    /// Whether mGBA runs on this machine, so that the link can check paths of files.
    local: bool,
}

/// Serves the link's requests over `stream` until it breaks or the link is asked to stop.
pub(crate) async fn drive(state: &mut LinkState, stream: TcpStream) -> ConnectionEnd {
    let mut connection = TextConnection {
        state,
        local: is_local(&stream),
        stream,
        out: Vec::new(),
        written: 0,
        received: Vec::new(),
        searched: 0,
        waiting: None,
        beat: Instant::now() - HEARTBEAT,
        arrived: Instant::now(),
        silence: SilenceCheck::default(),
        sizes: DomainSizes::default(),
    };
    let Err(error) = connection.serve().await else { return ConnectionEnd::Stopped };
    let problem = error.to_string();
    if let Some((Waiting::Work(work), _)) = connection.waiting {
        if work.may_have_changed() {
            let address = state.config.address.clone();
            (work.request.respond)(Err(LinkError::Interrupted { address, problem: problem.clone() }));
        } else {
            state.session.put_back(work.id, work.request);
        }
    }
    ConnectionEnd::Broken(problem)
}

/// Whether the other end is on this machine.
fn is_local(stream: &TcpStream) -> bool {
    match (stream.peer_addr(), stream.local_addr()) {
        (Ok(peer), Ok(local)) => peer.ip().is_loopback() || peer.ip() == local.ip(),
        _ => false,
    }
}

impl TextConnection<'_> {
    /// Returns without an error when the link was asked to stop and no request is open.
    async fn serve(&mut self) -> io::Result<()> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopping = false;
        for turn in 1_usize.. {
            self.next_message();
            self.write()?;
            let busy = matches!(self.waiting, Some((Waiting::Work(_), _)));
            if stopping && !busy && self.state.session.is_empty() {
                break;
            }
            if turn.is_multiple_of(TURNS) {
                yield_now().await;
            }
            let blocked = self.written < self.out.len();
            tokio::select! {
                ready = self.stream.readable() => {
                    ready?;
                    self.read()?;
                }
                ready = self.stream.writable(), if blocked => ready?,
                submission = self.state.inbox.recv(), if !stopping => match submission {
                    None => stopping = true,
                    Some(submission) => self.state.session.submit(submission),
                },
                () = asked_to_stop(&mut self.state.stop), if !stopping => {
                    stopping = true;
                    self.state.close_inbox();
                }
                () = self.silence.confirmed_dead() => return Err(io::Error::other(silence::DEAD)),
                _ = tick.tick() => self.tick(),
            }
        }
        Ok(())
    }

    /// Starts a heartbeat or the next batch if no message is open.
    fn next_message(&mut self) {
        if self.waiting.is_none()
            && self.beat.elapsed() >= HEARTBEAT
            && let Ok(message) = marker::message(&Op::CurrentFrame {})
        {
            self.beat = Instant::now();
            self.send(message, Waiting::Heartbeat);
        }
        while self.waiting.is_none() {
            // mGBA-http's script does not know cancel frames, so they are dropped.
            self.state.expire(&mut Vec::new());
            let Some((id, request)) = self.state.session.take_first() else { break };
            let work = Work { id, request, outcome: Outcome::default(), checked: 0, asked: None };
            if work.request.batch.key.is_some() && work.request.batch.effect() == Effect::Change {
                work.refuse(OpError::new(Status::Unsupported, KEYED));
            } else {
                self.sizes.forget_old();
                self.advance(work);
            }
        }
    }

    /// Sends the next operation of a batch, or first asks for the size of a memory domain. Responds with the outcome if
    /// there is no next operation, or if an operation is refused.
    fn advance(&mut self, mut work: Work) {
        let ops = work.ops_to_check();
        // mGBA-http's routes accept any address, as mGBA does.
        let any_address = work.request.batch.unchecked;
        let unknown = if any_address { None } else { self.sizes.unknown(ops) };
        if let Some(domain) = unknown
            && let Ok(message) = marker::message(&Op::DomainSize { domain: domain.clone() })
        {
            work.asked = Some(domain);
            return self.send(message, Waiting::Work(work));
        }
        let check = |op: &Op| {
            if self.local {
                checks::check_path(op)?;
            }
            if any_address { Ok(()) } else { self.sizes.check(op) }
        };
        let refused = |(index, op)| Some((index, check(op).err()?));
        if let Some((index, error)) = ops.iter().enumerate().find_map(refused) {
            if work.outcome.results.is_empty() {
                (work.request.respond)(Ok(Outcome::refused(work.outcome.frame, index, error)));
            } else {
                work.refuse(error);
            }
            return;
        }
        work.checked += ops.len();
        let op = work.request.batch.ops.get(work.outcome.results.len());
        // A number that mGBA does not read in one access is read as bytes, and combined when the reply comes.
        match op.map(|op| marker::message(checks::as_bytes(op).as_ref().unwrap_or(op))) {
            None => (work.request.respond)(Ok(work.outcome)),
            Some(Ok(message)) => self.send(message, Waiting::Work(work)),
            Some(Err(not_carried)) => {
                work.refuse(OpError::new(Status::Unsupported, not_carried.to_string()));
            }
        }
    }

    fn send(&mut self, message: Vec<u8>, what: Waiting) {
        self.out = message;
        self.written = 0;
        self.waiting = Some((what, Instant::now()));
    }

    fn write(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            match self.stream.try_write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<()> {
        self.received.reserve(READ);
        match self.stream.try_read_buf(&mut self.received) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "mGBA closed the connection")),
            Ok(_) => {
                self.arrived = Instant::now();
                self.silence.cancel();
                self.replies()
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Handles the replies that have arrived completely.
    fn replies(&mut self) -> io::Result<()> {
        while let Some(at) = marker::find_end(&self.received[self.searched..]) {
            let at = self.searched + at;
            let rest = self.received.split_off(at + marker::END.len());
            let mut reply = std::mem::replace(&mut self.received, rest);
            reply.truncate(at);
            self.searched = 0;
            self.reply(&String::from_utf8_lossy(&reply))?;
        }
        self.searched = self.received.len().saturating_sub(marker::END.len() - 1);
        if self.received.len() > MAX_REPLY {
            return Err(io::Error::other(format!("a reply of more than {} MiB", MAX_REPLY >> 20)));
        }
        Ok(())
    }

    fn reply(&mut self, reply: &str) -> io::Result<()> {
        if self.written < self.out.len() {
            return Err(io::Error::other("mGBA-http's script answered a message before its end"));
        }
        self.state.update(|status| status.stalled = false);
        match self.waiting.take() {
            None => return Err(io::Error::other("mGBA-http's script answered although no message was open")),
            Some((Waiting::Expired, _)) => {}
            Some((Waiting::Heartbeat, _)) => {
                if let Ok(frame) = reply.parse() {
                    self.state.note_frame(frame);
                }
            }
            Some((Waiting::Work(work), _)) => self.replied(work, reply),
        }
        Ok(())
    }

    fn replied(&mut self, mut work: Work, reply: &str) {
        if let Some(domain) = work.asked.take() {
            let answer = marker::parse_reply(&Op::DomainSize { domain: domain.clone() }, reply);
            self.sizes.learn(domain, &answer);
            return self.advance(work);
        }
        let Some(op) = work.request.batch.ops.get(work.outcome.results.len()) else { return };
        let result = match checks::as_bytes(op) {
            Some(bytes) => marker::parse_reply(&bytes, reply).and_then(checks::number),
            None => marker::parse_reply(op, reply),
        };
        if op.loads_game() {
            self.sizes.forget();
        }
        let failed = result.is_err();
        work.outcome.results.push(result);
        if failed {
            (work.request.respond)(Ok(work.outcome));
        } else {
            self.advance(work);
        }
    }

    fn tick(&mut self) {
        self.state.expire(&mut Vec::new());
        let now = Instant::now();
        // Any bytes show that the script is alive, not only a complete reply.
        if let Some((_, since)) = &self.waiting {
            self.state.note_silence(now - self.arrived.max(*since), self.out.len(), &mut self.silence);
        }
        let overdue = |(waiting, _): &mut (Waiting, Instant)| matches!(waiting, Waiting::Work(work) if work.request.deadline <= now);
        if let Some((Waiting::Work(work), since)) = self.waiting.take_if(overdue) {
            self.waiting = Some((Waiting::Expired, since));
            let error = if work.may_have_changed() {
                LinkError::Overdue { address: self.state.config.address.clone() }
            } else {
                // The first of the reasons is that for a missed deadline.
                self.state.reasons().0
            };
            (work.request.respond)(Err(error));
        }
    }
}
