//! The messages of a client, and the replies to them. `docs/emulator-channel.md` describes their bytes. The *block* is
//! the shared memory in which the client sees the picture and the memory that it watches.
//!
//! Most messages are short and exist only on channels. A client can also send the requests and pings of
//! `docs/protocol.md`. These are binary frames, which have no length field here.

use framewire_protocol::wire::{Reader, Wire};
use framewire_protocol::{DecodeError, Frame, OpError, Outcome, Reply, Request, Status};

use super::block::{WATCH_ROOM, WatchedRange, room_for};

mod kind {
    pub const STEP: u8 = 64;
    pub const RUN: u8 = 65;
    pub const LOOK: u8 = 66;
    pub const WATCH: u8 = 67;
    pub const DONE: u8 = 72;
    pub const REFUSED: u8 = 73;
}

/// In the field for keys, this value means that the keys do not change.
const KEEP_KEYS: u16 = u16::MAX;
/// The largest number of ranges that can be watched at the same time.
const MAX_WATCHES: usize = 1024;

/// A request of a client.
#[derive(Debug)]
pub enum ClientMessage {
    /// Take over the clock (so that frames run only on request), hold these keys (with `None`, the same keys as
    /// before), run this many frames, and update the block.
    Step { keys: Option<u16>, frames: u32 },
    /// Give the clock back, so that frames run at the emulator's own speed.
    Run,
    /// Update the block.
    Look,
    /// Copy these ranges into the block with each update.
    Watch(Vec<WatchedRange>),
    /// Perform a batch.
    Batch(Request),
    /// Answer with a pong that has this number.
    Ping(u32),
}

/// Reads a message.
///
/// # Errors
/// If the message is malformed.
pub fn read(bytes: &[u8]) -> Result<ClientMessage, DecodeError> {
    let mut reader = Reader::new(bytes);
    let message = match reader.get::<u8>()? {
        kind::STEP => {
            // A byte without a meaning aligns the fields, here and below.
            reader.get::<u8>()?;
            let keys = reader.get::<u16>()?;
            ClientMessage::Step {
                keys: if keys == KEEP_KEYS { None } else { Some(keys) },
                frames: reader.get()?,
            }
        }
        kind::RUN => ClientMessage::Run,
        kind::LOOK => ClientMessage::Look,
        kind::WATCH => {
            reader.get::<u8>()?;
            let count = usize::from(reader.get::<u16>()?);
            if count > MAX_WATCHES {
                return Err(DecodeError::TooLarge { what: "watches", limit: MAX_WATCHES });
            }
            let watches: Vec<WatchedRange> = (0..count)
                .map(|_| Ok(WatchedRange { address: reader.get()?, length: reader.get()? }))
                .collect::<Result<_, DecodeError>>()?;
            if room_for(&watches) > WATCH_ROOM {
                return Err(DecodeError::TooLarge { what: "watched memory", limit: WATCH_ROOM });
            }
            ClientMessage::Watch(watches)
        }
        _ => match Frame::decode(bytes)? {
            Frame::Request(request) => return Ok(ClientMessage::Batch(request)),
            Frame::Ping(id) => return Ok(ClientMessage::Ping(id)),
            _ => return Err(DecodeError::Unknown { what: "message", value: bytes[0] }),
        },
    };
    reader.finish()?;
    Ok(message)
}

/// The reply to a message that was performed, with the core's frame counter.
pub fn done(frame: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[0] = kind::DONE;
    bytes[4..].copy_from_slice(&frame.to_le_bytes());
    bytes
}

/// The reply to a message that was refused, with the reason.
pub fn refused(error: &OpError) -> Vec<u8> {
    let mut bytes = vec![kind::REFUSED, error.status as u8];
    error.message.encode(&mut bytes);
    bytes
}

/// The reply to a batch. If the results do not fit into a message, the reply is an error.
pub fn reply(id: u32, outcome: Outcome) -> Vec<u8> {
    let frame = outcome.frame;
    let bytes = frame_bytes(&Frame::Reply(Reply { id, outcome }));
    if bytes.len() <= framewire_channel::MAX_MESSAGE {
        return bytes;
    }
    let message = format!(
        "the batch was performed, but its reply has {} bytes; a message can have at most {}; request less at a time",
        bytes.len(),
        framewire_channel::MAX_MESSAGE
    );
    let outcome = Outcome { frame, results: vec![Err(OpError::new(Status::TooLarge, message))] };
    frame_bytes(&Frame::Reply(Reply { id, outcome }))
}

/// The bytes of a frame of the binary protocol, without its length field.
pub fn frame_bytes(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes.drain(..4);
    bytes
}
