//! A client for the script's binary frames, without the link's reconnections and retries.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use framewire_protocol::{Batch, Decoder, EventFrame, Frame, Hello, Op, Outcome, Request};

use crate::{Error, Result, TextClient};

/// A connection to the script. It uses binary frames, and has a session of its own.
#[derive(Debug)]
pub struct FrameClient {
    stream: TcpStream,
    decoder: Decoder,
    last_id: u32,
    limit: Duration,
    /// Events that arrived while waiting for a reply.
    events: VecDeque<EventFrame>,
}

impl FrameClient {
    /// Connects and sends the greeting within `limit`, which is also the timeout for replies and events.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if nothing accepts the connection or answers in time, or if the other side is not Framewire's
    /// script.
    pub fn connect(address: SocketAddr, session: u64, limit: Duration) -> Result<Self> {
        let mut text = TextClient::connect(address, limit)?;
        let hello = Hello::new(session).to_message();
        let welcome = text.ask(hello.trim_end_matches("<|END|>"))?;
        if !welcome.starts_with("framewire.welcome,") {
            return Err(broken(format!("greet the script: it answered {welcome:?}")));
        }
        let mut decoder = Decoder::new();
        let (stream, unread) = text.into_parts();
        decoder.push(&unread);
        Ok(Self { stream, decoder, last_id: 0, limit, events: VecDeque::new() })
    }

    /// Performs operations and waits for their outcome.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the connection breaks or another reply comes; [`Error::Io`] or [`Error::Timeout`] if no reply
    /// comes in time.
    pub fn perform(&mut self, ops: Vec<Op>) -> Result<Outcome> {
        let id = self.send(ops)?;
        self.outcome(id)
    }

    /// Sends operations without waiting. Returns the id of the request.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the connection breaks.
    pub fn send(&mut self, ops: Vec<Op>) -> Result<u32> {
        self.last_id += 1;
        let request = Request { id: self.last_id, answered: self.last_id, batch: Batch::new(ops) };
        let mut bytes = Vec::new();
        Frame::Request(request).encode(&mut bytes);
        self.stream.write_all(&bytes).map_err(Error::io("send to the script"))?;
        Ok(self.last_id)
    }

    /// The connection, for a test that uses it directly.
    #[must_use]
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Waits for the outcome of a request. Outcomes must be taken in the order of the requests.
    ///
    /// # Errors
    ///
    /// Those of [`FrameClient::perform`].
    pub fn outcome(&mut self, id: u32) -> Result<Outcome> {
        loop {
            match self.next()? {
                Frame::Reply(reply) if reply.id == id => return Ok(reply.outcome),
                Frame::Event(event) => self.events.push_back(event),
                other => return Err(broken(format!("wait for reply {id}: {other:?} came"))),
            }
        }
    }

    /// Waits for the next event.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] or [`Error::Timeout`] if no event comes in time; [`Error::Io`] if a reply comes instead.
    pub fn event(&mut self) -> Result<EventFrame> {
        if let Some(event) = self.events.pop_front() {
            return Ok(event);
        }
        match self.next()? {
            Frame::Event(event) => Ok(event),
            other => Err(broken(format!("wait for an event: {other:?} came"))),
        }
    }

    fn next(&mut self) -> Result<Frame> {
        let end = Instant::now() + self.limit;
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(|error| broken(error.to_string()))? {
                return Ok(frame);
            }
            if Instant::now() > end {
                return Err(Error::Timeout { what: "the script sent a frame".to_owned(), after: self.limit });
            }
            let mut part = [0; 64 * 1024];
            match self.stream.read(&mut part).map_err(Error::io("wait for the script"))? {
                0 => return Err(broken("wait for the script: it closed the connection".to_owned())),
                count => self.decoder.push(&part[..count]),
            }
        }
    }
}

fn broken(what: String) -> Error {
    Error::io(what)(std::io::ErrorKind::InvalidData.into())
}
