//! Recordings: files with a state and the keys of each frame after it. They can be made with any emulator, and replayed
//! on an emulator that can be paused.
//!
//! The parts, the lowest layer first (`docs/recordings.md` describes the format):
//!
//! - [`Head`]: the game and the settings of a recording; the text at the start of the file;
//! - [`Entry`]: the state at the start, keys for a number of frames, a hash of the picture or of memory after the
//!   frames so far, or the end;
//! - [`Writer`], [`Recording`]: write and read a file, with a checksum after each entry;
//! - [`Recorder`]: records what an emulator does;
//! - [`replay`]: plays a recording, and compares the hashes;
//! - [`Replays`]: replays in the background, one per emulator;
//! - [`Recordings`]: the folder of recordings, and the recordings in progress.

mod entry;
mod error;
mod head;
mod journal;
mod memory;
mod reader;
mod recorder;
mod recordings;
pub mod replay;
mod replays;
mod writer;

pub use entry::Entry;
pub use error::{Damage, DamageKind, FormatError, RecordError};
pub use head::{Head, Start};
pub use reader::{Ending, Recording};
pub use recorder::{Options, Progress, Recorder, Summary};
pub use recordings::{Active, Listed, Recordings, Recovered};
pub use replays::{ReplayResult, ReplayTask, Replays};
pub use writer::Writer;

/// The largest size of a recording's file, in bytes. This is enough for hours of play.
pub const MAX_FILE: u64 = 32 << 20;

/// The flags for all parts of a state, including the battery save. So a replay needs only the recording and the ROM.
const ALL_PARTS: u8 = 31;
