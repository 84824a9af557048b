//! One connection to Framewire's script: many requests in flight, answered in the order they finish.

use std::io;
use std::time::{Duration, Instant};

use framewire_protocol::{Decoder, Frame};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::desk::{Desk, End, asked_to_stop};
use crate::silence::{self, Suspicion};
use crate::submission::Submission;

/// Bytes that may wait to be written; requests behind that wait in the session.
const MAX_OUT: usize = 1 << 20;
/// Submissions taken from the queue at a time.
const BURST: usize = 256;
/// How often deadlines and the heartbeat are looked at.
const TICK: Duration = Duration::from_millis(20);
/// Bytes read at a time.
const READ: usize = 64 * 1024;
/// Full reads in a row after which there is a look at everything else.
const READS: usize = 4;
/// Turns after which the runtime may look at other tasks, whatever else there is to do.
const TURNS: usize = 64;

/// A connection behind its hello.
struct Connection<'a> {
    desk: &'a mut Desk,
    stream: TcpStream,
    decoder: Decoder,
    /// Bytes to write; those before `written` are.
    out: Vec<u8>,
    written: usize,
    buffer: Vec<u8>,
    heartbeat: Heartbeat,
    suspicion: Suspicion,
}

/// At most one ping is under way, so a paused emulator's buffers never fill with them.
struct Heartbeat {
    /// When the ping was sent that is not answered yet.
    sent: Option<Instant>,
    /// When anything was last heard.
    heard: Instant,
    last: Instant,
    number: u32,
}

/// Serves the desk's requests over `stream` until it breaks or the link is asked to stop. `received` came in behind
/// the welcome.
pub(crate) async fn drive(desk: &mut Desk, stream: TcpStream, received: &[u8]) -> End {
    let now = Instant::now();
    let heartbeat = Heartbeat { sent: None, heard: now, last: now - desk.config.heartbeat, number: 0 };
    let mut decoder = Decoder::new();
    decoder.push(received);
    let buffer = vec![0; READ];
    let mut connection = Connection {
        desk,
        stream,
        decoder,
        out: Vec::new(),
        written: 0,
        buffer,
        heartbeat,
        suspicion: Suspicion::default(),
    };
    match connection.serve().await {
        Err(error) => End::Broken(error.to_string()),
        Ok(()) => {
            // The peer may be gone or paused by now; it is told of the end, not asked.
            let _ = timeout(TICK, connection.stream.shutdown()).await;
            End::Stopped
        }
    }
}

impl Connection<'_> {
    /// Ends well when the link is to stop and nothing is open any more.
    async fn serve(&mut self) -> io::Result<()> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopping = false;
        let mut submissions = Vec::with_capacity(BURST);
        self.dispatch()?;
        for turn in 1_usize.. {
            self.write()?;
            if stopping && self.desk.session.is_empty() && self.written == self.out.len() {
                break;
            }
            if turn.is_multiple_of(TURNS) {
                // Where there is always something to read, nothing else ends this task's turn.
                yield_now().await;
            }
            let blocked = self.written < self.out.len();
            tokio::select! {
                ready = self.stream.readable() => {
                    ready?;
                    if self.read()? {
                        yield_now().await;
                    }
                }
                ready = self.stream.writable(), if blocked => ready?,
                count = self.desk.inbox.recv_many(&mut submissions, BURST), if !stopping => {
                    stopping = count == 0;
                    self.take(&mut submissions);
                }
                () = asked_to_stop(&mut self.desk.stop), if !stopping => {
                    stopping = true;
                    self.desk.inbox.close();
                    while let Ok(submission) = self.desk.inbox.try_recv() {
                        self.desk.session.submit(submission);
                    }
                }
                () = self.suspicion.confirmed() => return Err(io::Error::other(silence::VERDICT)),
                _ = tick.tick() => self.tick(),
            }
        }
        Ok(())
    }

    fn take(&mut self, submissions: &mut Vec<Submission>) {
        for submission in submissions.drain(..) {
            self.desk.session.submit(submission);
        }
    }

    fn write(&mut self) -> io::Result<()> {
        loop {
            if self.written == self.out.len() {
                self.out.clear();
                self.written = 0;
            }
            self.desk.session.encode_unsent(&mut self.out, MAX_OUT);
            if self.written == self.out.len() {
                return Ok(());
            }
            match self.stream.try_write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads what has arrived, up to a bound. Whether there may be more.
    fn read(&mut self) -> io::Result<bool> {
        for _ in 0..READS {
            match self.stream.try_read(&mut self.buffer) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "mGBA closed it")),
                Ok(count) => {
                    self.heartbeat.heard = Instant::now();
                    self.suspicion.dispel();
                    self.decoder.push(&self.buffer[..count]);
                    self.dispatch()?;
                    if count < self.buffer.len() {
                        return Ok(false);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn dispatch(&mut self) -> io::Result<()> {
        while let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
            match frame {
                Frame::Reply(reply) => self.desk.session.answer(reply.id, reply.outcome),
                Frame::Pong { id, frame } => {
                    if id == self.heartbeat.number && self.heartbeat.sent.take().is_some() {
                        self.desk.heard(frame);
                    }
                }
                Frame::Goodbye(reason) => return Err(io::Error::other(format!("the script said: {reason}"))),
                Frame::Event(events) => self.desk.happened(events),
                Frame::Request(_) | Frame::Cancel(_) | Frame::Ping(_) | Frame::Trace { .. } => {
                    return Err(io::Error::other("the script sent a frame that only we send"));
                }
            }
        }
        Ok(())
    }

    fn tick(&mut self) {
        self.desk.expire(&mut self.out);
        let now = Instant::now();
        let heartbeat = &mut self.heartbeat;
        match heartbeat.sent {
            // What comes in shows life as well as the pong behind it.
            Some(sent) if now - sent.max(heartbeat.heard) >= self.desk.config.stalled_after => {
                self.desk.update(|status| {
                    status.stalled = true;
                    status.frames_per_second = 0.0;
                });
                self.suspicion.raise(&self.desk.config.address);
            }
            None if now - heartbeat.last >= self.desk.config.heartbeat => {
                heartbeat.number = heartbeat.number.wrapping_add(1);
                heartbeat.sent = Some(now);
                heartbeat.last = now;
                Frame::Ping(heartbeat.number).encode(&mut self.out);
            }
            _ => {}
        }
    }
}
