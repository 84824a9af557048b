//! The frames on a binary connection between the link and the *endpoint*. The endpoint performs the requests: it is the
//! script in mGBA.
//!
//! A frame is `u32 length`, `u8 kind`, body; `length` counts the kind and the body.

use crate::batch::{Batch, Outcome};
use crate::event::EventFrame;
use crate::wire::{DecodeError, Reader, Wire};
use crate::{MAX_FRAME, MAX_KEY};

/// Asks the endpoint to perform a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Number of the request in its session; the reply carries it too. Numbers rise by one and wrap after `u32::MAX`.
    pub id: u32,
    /// The replies to all requests before this number were received, so the endpoint may forget them.
    pub answered: u32,
    /// The operations.
    pub batch: Batch,
}

/// Answers a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Number of the request.
    pub id: u32,
    /// Its outcome.
    pub outcome: Outcome,
}

/// One frame, in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// To the endpoint: perform these operations.
    Request(Request),
    /// From the endpoint: the outcome.
    Reply(Reply),
    /// To the endpoint: the sender no longer waits for this request. If the endpoint has not performed it yet, it must
    /// not perform it.
    Cancel(u32),
    /// To the endpoint: asks for a pong, which the endpoint sends when it next serves the connection.
    Ping(u32),
    /// From the endpoint: the answer to a ping.
    Pong {
        /// The ping's number.
        id: u32,
        /// The emulator's frame counter.
        frame: u32,
    },
    /// From the endpoint, before it closes the connection: the reason.
    Goodbye(String),
    /// From the endpoint: what happened in a frame of the game.
    Event(EventFrame),
    /// To the endpoint, before a request: the request's name in logs.
    Trace {
        /// The request's number.
        id: u32,
        /// The name.
        name: String,
    },
}

mod kind {
    pub const REQUEST: u8 = 1;
    pub const REPLY: u8 = 2;
    pub const CANCEL: u8 = 3;
    pub const PING: u8 = 4;
    pub const PONG: u8 = 5;
    pub const GOODBYE: u8 = 6;
    pub const KEYED_REQUEST: u8 = 7;
    pub const EVENT: u8 = 8;
    pub const TRACE: u8 = 9;
}

impl Frame {
    /// Appends the frame with its length to `out`. A request's batch must have passed [`Batch::check`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        match self {
            Frame::Request(request) => {
                out.push(if request.batch.key.is_some() { kind::KEYED_REQUEST } else { kind::REQUEST });
                request.id.encode(out);
                request.answered.encode(out);
                if let Some(key) = &request.batch.key {
                    debug_assert!(key.len() <= MAX_KEY, "check() was not called");
                    out.push(key.len() as u8);
                    out.extend_from_slice(key.as_bytes());
                }
                request.batch.encode(out);
            }
            Frame::Reply(reply) => {
                out.push(kind::REPLY);
                reply.id.encode(out);
                reply.outcome.encode(out);
            }
            Frame::Cancel(id) => {
                out.push(kind::CANCEL);
                id.encode(out);
            }
            Frame::Ping(id) => {
                out.push(kind::PING);
                id.encode(out);
            }
            Frame::Pong { id, frame } => {
                out.push(kind::PONG);
                id.encode(out);
                frame.encode(out);
            }
            Frame::Goodbye(reason) => {
                out.push(kind::GOODBYE);
                reason.encode(out);
            }
            Frame::Event(event) => {
                out.push(kind::EVENT);
                event.encode(out);
            }
            Frame::Trace { id, name } => {
                out.push(kind::TRACE);
                id.encode(out);
                name.encode(out);
            }
        }
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Decodes a frame that comes without its length field.
    pub fn decode(bytes: &[u8]) -> Result<Frame, DecodeError> {
        let mut reader = Reader::new(bytes);
        let frame = match reader.get::<u8>()? {
            kind::REQUEST => {
                Frame::Request(Request { id: reader.get()?, answered: reader.get()?, batch: reader.get()? })
            }
            kind::KEYED_REQUEST => {
                let (id, answered) = (reader.get()?, reader.get()?);
                let length = usize::from(reader.get::<u8>()?);
                let key = String::from_utf8(reader.take(length, "key")?.to_vec());
                let key = Some(key.map_err(|_| DecodeError::NotText)?);
                let batch = Batch { key, ..reader.get()? };
                Frame::Request(Request { id, answered, batch })
            }
            kind::REPLY => Frame::Reply(Reply { id: reader.get()?, outcome: reader.get()? }),
            kind::CANCEL => Frame::Cancel(reader.get()?),
            kind::PING => Frame::Ping(reader.get()?),
            kind::PONG => Frame::Pong { id: reader.get()?, frame: reader.get()? },
            kind::GOODBYE => Frame::Goodbye(reader.get()?),
            kind::EVENT => Frame::Event(reader.get()?),
            kind::TRACE => Frame::Trace { id: reader.get()?, name: reader.get()? },
            value => return Err(DecodeError::Unknown { what: "frame kind", value }),
        };
        reader.finish()?;
        Ok(frame)
    }
}

/// Why a stream of frames cannot be read any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A length field above [`MAX_FRAME`], or zero.
    #[error("a frame of {0} bytes; 1 to {MAX_FRAME} are accepted")]
    Length(usize),
    /// A complete frame that cannot be decoded.
    #[error("malformed frame: {0}")]
    Malformed(#[from] DecodeError),
}

/// Finds frames in a stream that arrives in pieces.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// How many bytes at the front of `buffer` belong to frames that were already returned.
    consumed: usize,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub fn new() -> Self {
        Decoder::default()
    }

    /// Adds bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.consumed > 0 {
            self.buffer.drain(..self.consumed);
            self.consumed = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete frame, or `None` until more bytes arrive. After an error, the stream cannot be used any more.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = &self.buffer[self.consumed..];
        let Some((head, body)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length == 0 || length > MAX_FRAME {
            return Err(FrameError::Length(length));
        }
        let Some(body) = body.get(..length) else { return Ok(None) };
        let frame = Frame::decode(body)?;
        self.consumed += 4 + length;
        Ok(Some(frame))
    }
}
