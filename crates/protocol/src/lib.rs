//! The messages between Framewire's processes, but not how their bytes travel: this crate does no I/O.
//!
//! From the bytes upwards:
//!
//! - [`wire`]: little-endian primitives over a byte buffer;
//! - [`value`]: the self-describing result of an operation;
//! - [`op`]: **the table of operations**, from which codecs, Lua tables and docs are generated;
//! - [`access`]: which memory operations read and write, and which of it a console has;
//! - [`timeline`], [`run`] and [`watch`]: the arguments of operations that hold more than a number or a text;
//! - [`batch`]: operations performed together, and their outcome;
//! - [`error`]: why an operation was refused, as a status and a sentence;
//! - [`event`]: what an emulator reports by itself;
//! - [`frame`]: the frames on a binary connection and the decoder that finds them in a stream;
//! - [`hello`]: the text exchange that makes a connection binary;
//! - [`hex`]: bytes as text;
//! - [`number`]: whole numbers as text;
//! - [`marker`]: mGBA-http's text messages, for scripts that know nothing else;
//! - [`key`]: the ten buttons;
//! - [`frame_rate`]: the frame rate, which both ends of a connection compute in the same way.
//!
//! The wire format is described in `docs/protocol.md`. Its test vectors, `vectors/*.tsv`, are read by this crate's
//! tests and by the Lua script's.

pub mod access;
pub mod batch;
pub mod error;
pub mod event;
pub mod frame;
pub mod frame_rate;
pub mod hello;
pub mod hex;
pub mod key;
pub mod marker;
pub mod number;
pub mod op;
pub mod registers;
pub mod run;
pub mod sequence;
pub mod timeline;
pub mod value;
pub mod watch;
pub mod wire;

pub use access::{Access, Bus};
pub use batch::{Batch, Outcome};
pub use error::{OpError, Status};
pub use event::{EventFrame, EventItem};
pub use frame::{Decoder, Frame, FrameError, Reply, Request};
pub use frame_rate::FrameRate;
pub use hello::{Hello, Welcome};
pub use key::{Key, Keys};
pub use op::{Effect, Op, OpInfo};
pub use timeline::KeyStep;
pub use value::Value;
pub use watch::MemoryRange;
pub use wire::DecodeError;

/// Version of the binary protocol that this crate speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// Largest frame on a binary connection in bytes, length field excluded. Larger ones are refused unread.
pub const MAX_FRAME: usize = 24 * 1024 * 1024;

/// Largest range of memory one operation reads or writes, in bytes.
pub const MAX_RANGE: u32 = 16 * 1024 * 1024;

/// Largest number of operations in one batch.
pub const MAX_OPS: usize = 4096;

/// Longest key of a batch, in bytes.
pub const MAX_KEY: usize = 255;

/// Longest name of a batch in logs, in bytes.
pub const MAX_TRACE: usize = 128;

/// TCP port that the script listens on by default: mGBA-http's, so that its users change nothing.
pub const DEFAULT_PORT: u16 = 8888;
