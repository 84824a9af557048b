//! One connection to mGBA-http's script: text, one message at a time.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use framewire_protocol::{Effect, Op, OpError, Outcome, Status, marker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::interval;

use crate::LinkError;
use crate::link::Respond;
use crate::supervisor::{Desk, End, asked_to_stop};

/// How often deadlines and the heartbeat are looked at.
const TICK: Duration = Duration::from_millis(20);
/// Time between two heartbeats; each costs the script a frame.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A batch under way, operation by operation.
struct Work {
    ops: VecDeque<Op>,
    deadline: Instant,
    respond: Respond,
    outcome: Outcome,
}

/// What the message that is under way was sent for.
enum Waiting {
    /// The first operation of this work.
    Work(Work),
    /// The heartbeat.
    Heartbeat,
    /// Work that ran out of time: its reply is still to come, and is dropped.
    Nobody,
}

struct Connection<'a> {
    desk: &'a mut Desk,
    stream: TcpStream,
    received: Vec<u8>,
    waiting: Option<(Waiting, Instant)>,
    heard: Instant,
}

/// Serves the desk's requests over `stream` until it breaks or the link is asked to stop.
pub(crate) async fn drive(desk: &mut Desk, stream: TcpStream) -> End {
    let heard = Instant::now() - HEARTBEAT;
    let mut connection = Connection { desk, stream, received: Vec::new(), waiting: None, heard };
    let end = match connection.serve().await {
        Ok(()) => End::Stopped,
        Err(error) => End::Broken(error.to_string()),
    };
    if let Some((Waiting::Work(work), _)) = connection.waiting.take() {
        let changes = work.ops.front().is_some_and(|op| op.info().effect == Effect::Change);
        let address = connection.desk.config.address.clone();
        (work.respond)(Err(match (&end, changes) {
            (_, true) => LinkError::Lost { address },
            (End::Broken(problem), false) => LinkError::Absent { address, problem: problem.clone() },
            (End::Stopped, false) => LinkError::Stopped,
        }));
    }
    end
}

impl Connection<'_> {
    async fn serve(&mut self) -> io::Result<()> {
        let mut tick = interval(TICK);
        let mut stopping = false;
        loop {
            if self.waiting.is_none() {
                self.next_message().await?;
            }
            if stopping && self.waiting.is_none() && self.desk.session.is_empty() {
                return Ok(());
            }
            tokio::select! {
                count = self.stream.read_buf(&mut self.received) => {
                    if count? == 0 {
                        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "mGBA closed it"));
                    }
                    self.replies().await?;
                }
                submission = self.desk.inbox.recv(), if !stopping => match submission {
                    None => stopping = true,
                    Some(submission) => self.desk.session.submit(submission),
                },
                () = asked_to_stop(&mut self.desk.stop), if !stopping => {
                    stopping = true;
                    self.desk.inbox.close();
                    while let Ok(submission) = self.desk.inbox.try_recv() {
                        self.desk.session.submit(submission);
                    }
                }
                _ = tick.tick() => self.tick(),
            }
        }
    }

    /// Sends the next message there is to send, if there is one.
    async fn next_message(&mut self) -> io::Result<()> {
        if let Some(submission) = self.desk.session.take_first() {
            let outcome = Outcome { frame: 0, results: Vec::new() };
            let work = Work {
                ops: submission.batch.ops.into(),
                deadline: submission.deadline,
                respond: submission.respond,
                outcome,
            };
            return self.advance(work).await;
        }
        if self.heard.elapsed() >= HEARTBEAT {
            let message = marker::message(&Op::CurrentFrame {}).map_err(io::Error::other)?;
            self.stream.write_all(&message).await?;
            self.waiting = Some((Waiting::Heartbeat, Instant::now()));
        }
        Ok(())
    }

    /// Sends the first of the operations that are left, or gives the outcome when none is.
    async fn advance(&mut self, mut work: Work) -> io::Result<()> {
        let Some(op) = work.ops.front() else {
            (work.respond)(Ok(work.outcome));
            return Ok(());
        };
        match marker::message(op) {
            Ok(message) => {
                let sent = self.stream.write_all(&message).await;
                self.waiting = Some((Waiting::Work(work), Instant::now()));
                sent
            }
            Err(not_carried) => {
                work.outcome.results.push(Err(OpError::new(Status::Unsupported, not_carried.to_string())));
                (work.respond)(Ok(work.outcome));
                Ok(())
            }
        }
    }

    /// Takes whole replies from what was received.
    async fn replies(&mut self) -> io::Result<()> {
        let end = marker::END.as_bytes();
        while let Some(at) = self.received.windows(end.len()).position(|window| window == end) {
            let reply = String::from_utf8_lossy(&self.received[..at]).into_owned();
            self.received.drain(..at + end.len());
            self.heard = Instant::now();
            self.desk.update(|status| status.stalled = false);
            match self.waiting.take() {
                None => return Err(io::Error::other("mGBA-http's script answered what was not asked")),
                Some((Waiting::Nobody, _)) => {}
                Some((Waiting::Heartbeat, _)) => {
                    if let Ok(frame) = reply.parse() {
                        self.desk.heard(frame);
                    }
                }
                Some((Waiting::Work(work), _)) => self.replied(work, &reply).await?,
            }
        }
        Ok(())
    }

    async fn replied(&mut self, mut work: Work, reply: &str) -> io::Result<()> {
        let Some(op) = work.ops.pop_front() else { return Ok(()) };
        let result = marker::parse_reply(&op, reply);
        if result.is_err() {
            work.ops.clear();
        }
        work.outcome.results.push(result);
        self.advance(work).await
    }

    fn tick(&mut self) {
        self.desk.expire(&mut Vec::new());
        let now = Instant::now();
        if let Some((_, since)) = &self.waiting
            && now - *since >= self.desk.config.stalled_after
        {
            self.desk.update(|status| {
                status.stalled = true;
                status.frames_per_second = 0.0;
            });
        }
        if matches!(&self.waiting, Some((Waiting::Work(work), _)) if work.deadline <= now)
            && let Some((Waiting::Work(work), since)) = self.waiting.replace((Waiting::Nobody, now))
        {
            self.waiting = Some((Waiting::Nobody, since));
            (work.respond)(Err(self.desk.stalled()));
        }
    }
}
