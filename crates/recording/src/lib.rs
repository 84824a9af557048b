//! Recordings: every input with its frame, from a state on, as a file; made from any emulator and played on one that can
//! be stepped.
//!
//! From the bytes upwards (`docs/recordings.md` has the format):
//!
//! - [`Head`]: the game and the settings of a recording; the text at its start;
//! - [`Entry`]: keys for a number of frames, or what picture or memory was like there;
//! - [`Writer`], [`Recording`]: the file, written and read, with a checksum after each entry;
//! - [`Recorder`]: records what an emulator does;
//! - [`replay`]: plays a recording and compares;
//! - [`Replays`]: replays in the background, one per emulator;
//! - [`Recordings`]: the folder of them, and those being made.

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

/// The largest file that is written or read, in bytes: hours of play.
pub const MAX_FILE: u64 = 32 << 20;
