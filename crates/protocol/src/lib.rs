//! The operations of an emulator, and the messages that the link exchanges with the script in mGBA. This crate encodes
//! and decodes the messages, but does no I/O.
//!
//! The modules:
//!
//! - [`wire`]: little-endian primitives over a byte buffer;
//! - [`value`]: the self-describing result of an operation;
//! - [`op`]: **the table of operations**, from which codecs, Lua tables and docs are generated;
//! - [`access`]: the memory that operations read and write, and the memory that each console has;
//! - [`timeline`], [`run`] and [`watch`]: arguments that have a format of their own;
//! - [`batch`]: operations performed together, and their outcome;
//! - [`error`]: why an operation was refused or failed, as a status and a sentence;
//! - [`event`]: what an emulator reports without a request;
//! - [`frame`]: the frames on a binary connection and the decoder that finds them in a stream;
//! - [`hello`]: the text exchange that makes a connection binary;
//! - [`hex`]: bytes as text;
//! - [`number`]: whole numbers as text;
//! - [`marker`]: mGBA-http's text messages, for scripts that support only these;
//! - [`key`]: the ten buttons; [`sequence`]: sequences of key presses as text;
//! - [`registers`]: the names of the processors' registers;
//! - [`frame_rate`]: the frame rate, which the link and the embedded core compute in the same way.
//!
//! `docs/protocol.md` describes the wire format. The tests of this crate and the tests of the Lua script both read its
//! test vectors, `vectors/*.tsv`.

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

/// Version of the binary protocol that this crate implements.
pub const PROTOCOL_VERSION: u32 = 1;

/// Largest frame on a binary connection in bytes, without its length field. Larger frames are refused before they are
/// read.
pub const MAX_FRAME: usize = 24 * 1024 * 1024;

/// Largest range of memory that one operation can read, in bytes.
pub const MAX_RANGE: u32 = 16 * 1024 * 1024;

/// Largest number of frames that all `advance` operations of one batch can run together.
pub const MAX_ADVANCE: u32 = 3600;

/// Largest number of operations in one batch.
pub const MAX_OPS: usize = 4096;

/// Longest idempotency key of a batch, in bytes.
pub const MAX_KEY: usize = 255;

/// Longest name of a batch in logs, in bytes.
pub const MAX_TRACE: usize = 128;

/// TCP port that the script listens on by default. mGBA-http uses it too, so its users can keep their settings.
pub const DEFAULT_PORT: u16 = 8888;
