//! One connection to Framewire's script. Many requests can be open; the script answers them in any order.

use std::io;
use std::time::Instant;

use framewire_protocol::{Decoder, Frame};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::silence::{self, SilenceCheck};
use crate::state::{ConnectionEnd, LinkState, READ, TICK, TURNS, asked_to_stop};

/// Bytes that may wait to be written. Further requests wait in the session.
const MAX_OUT: usize = 1 << 20;
/// Submissions taken from the queue at a time.
const BURST: usize = 256;
/// How many full reads in a row are done before the loop handles anything else.
const READS: usize = 4;

/// A connection after the script has answered the hello.
struct BinaryConnection<'a> {
    state: &'a mut LinkState,
    stream: TcpStream,
    decoder: Decoder,
    /// Bytes to write. The first `written` of them have been written.
    out: Vec<u8>,
    written: usize,
    buffer: Vec<u8>,
    heartbeat: Heartbeat,
    silence: SilenceCheck,
}

/// The pings to the script. At most one of them is open, so that pings never fill the buffers of a paused emulator.
struct Heartbeat {
    /// When the open ping was sent, if there is one.
    sent: Option<Instant>,
    /// When anything last arrived.
    heard: Instant,
    /// The number of bytes that have been written since then.
    unheard: usize,
    /// When the last ping was sent.
    last: Instant,
    /// The number of cancel frames that were sent before the last ping and may not have arrived. Its pong shows that
    /// they have.
    cancelled: usize,
    number: u32,
}

/// Serves the link's requests over `stream` until it breaks or the link is asked to stop. `received` holds the bytes
/// that arrived after the welcome, which is the script's answer to the hello.
pub(crate) async fn drive(state: &mut LinkState, stream: TcpStream, received: &[u8]) -> ConnectionEnd {
    let now = Instant::now();
    let last = now - state.config.heartbeat;
    let heartbeat = Heartbeat { sent: None, heard: now, unheard: 0, last, cancelled: 0, number: 0 };
    let mut decoder = Decoder::new();
    decoder.push(received);
    let mut out = Vec::new();
    state.session.encode_cancels(&mut out);
    let mut connection = BinaryConnection {
        state,
        stream,
        decoder,
        out,
        written: 0,
        buffer: vec![0; READ],
        heartbeat,
        silence: SilenceCheck::default(),
    };
    match connection.serve().await {
        Err(error) => ConnectionEnd::Broken(error.to_string()),
        Ok(()) => {
            // The peer may be gone or paused by now, so its answer is not awaited.
            let _ = timeout(TICK, connection.stream.shutdown()).await;
            ConnectionEnd::Stopped
        }
    }
}

impl BinaryConnection<'_> {
    /// Returns without an error when the link was asked to stop and no request is open.
    async fn serve(&mut self) -> io::Result<()> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopping = false;
        let mut submissions = Vec::with_capacity(BURST);
        self.dispatch()?;
        for turn in 1_usize.. {
            self.write()?;
            // A stalled script may read nothing. Then the link does not wait until the rest of the bytes is written.
            let is_written = self.written == self.out.len() || self.state.status.lock().stalled;
            if stopping && self.state.session.is_empty() && is_written {
                break;
            }
            if turn.is_multiple_of(TURNS) {
                // If there is always something to read, the loop never waits, so it must yield here.
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
                count = self.state.inbox.recv_many(&mut submissions, BURST), if !stopping => {
                    stopping = count == 0;
                    // First cancels the runs that their callers have given up on. These runs may hold keys that the new
                    // requests need.
                    self.state.drop_given_up(&mut self.out);
                    submissions.drain(..).for_each(|submission| self.state.session.submit(submission));
                }
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

    fn write(&mut self) -> io::Result<()> {
        loop {
            if self.written == self.out.len() {
                self.out.clear();
                self.written = 0;
            }
            self.state.session.encode_unsent(&mut self.out, MAX_OUT);
            if self.written == self.out.len() {
                return Ok(());
            }
            match self.stream.try_write(&self.out[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    self.heartbeat.unheard += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the bytes that have arrived, up to a limit. Returns whether there may be more.
    fn read(&mut self) -> io::Result<bool> {
        for _ in 0..READS {
            match self.stream.try_read(&mut self.buffer) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "mGBA closed the connection"));
                }
                Ok(count) => {
                    self.heartbeat.heard = Instant::now();
                    self.heartbeat.unheard = 0;
                    self.silence.cancel();
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
                Frame::Reply(reply) => self.state.session.answer(reply.id, reply.outcome),
                Frame::Pong { id, frame } => {
                    if id == self.heartbeat.number && self.heartbeat.sent.take().is_some() {
                        self.state.session.cancels_arrived(self.heartbeat.cancelled);
                        self.state.note_frame(frame);
                    }
                }
                Frame::Goodbye(reason) => return Err(io::Error::other(format!("the script said: {reason}"))),
                Frame::Event(events) => self.state.deliver(events),
                Frame::Request(_) | Frame::Cancel(_) | Frame::Ping(_) | Frame::Trace { .. } => {
                    return Err(io::Error::other("the script sent a frame that only a client may send"));
                }
            }
        }
        Ok(())
    }

    fn tick(&mut self) {
        self.state.expire(&mut self.out);
        let now = Instant::now();
        let heartbeat = &mut self.heartbeat;
        match heartbeat.sent {
            // Any bytes show that the script is alive, not only the pong.
            Some(sent) => {
                let silent = now - sent.max(heartbeat.heard);
                self.state.note_silence(silent, heartbeat.unheard, &mut self.silence);
            }
            None if now - heartbeat.last >= self.state.config.heartbeat => {
                heartbeat.number = heartbeat.number.wrapping_add(1);
                heartbeat.sent = Some(now);
                heartbeat.last = now;
                heartbeat.cancelled = self.state.session.cancelled();
                Frame::Ping(heartbeat.number).encode(&mut self.out);
            }
            _ => {}
        }
    }
}
