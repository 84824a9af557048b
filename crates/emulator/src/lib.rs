//! One trait for both kinds of emulator: a core embedded in this process, and a stock mGBA reached over TCP.
//!
//! - [`Emulator`]: the trait, which is all that front ends use;
//! - [`Pending`]: a batch that has no outcome yet;
//! - [`Embedded`]: the core in this process (feature `embedded`, which needs libmgba);
//! - [`Attached`]: the stock mGBA;
//! - [`State`]: the state of an emulator, available at any time;
//! - [`Event`] and [`Watch`]: what an emulator reports; [`Video`] and [`Audio`]: its picture and sound. Each queue is
//!   bounded: a slow reader loses the oldest items, and no emulator waits for a reader;
//! - [`History`]: earlier states that an emulator can go back to;
//! - [`EmulatorError`]: why a batch has no outcome. If only an *operation* is refused, the batch has an outcome, which
//!   contains that operation's error.

mod attached;
mod clock;
#[cfg(feature = "embedded")]
pub mod embedded;
mod error;
mod event;
mod event_queue;
pub mod history;
mod media;
mod pending;
mod state;
mod watch;

pub use attached::Attached;
pub use clock::{Clock, ClockError, ClockTime};
#[cfg(feature = "embedded")]
pub use embedded::Embedded;
pub use error::EmulatorError;
pub use event::{Event, EventKind};
pub use history::History;
pub use media::{Audio, FramePassed, PendingPicture, Picture, Sound, Video};
pub use pending::{Pending, Responder};
pub use state::{Kind, Run, SetSpeed, State};
pub use watch::{
    Change, Discontinuity, MemoryRange, Watch, WatchEnd, WatchEvent, WatchRequest, WorkRam, work_ram,
};

use framewire_protocol::Batch;
#[cfg(doc)]
use framewire_protocol::Op;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::broadcast;

/// A running core, in this process or in another one. No method has a default body. So a type that wraps an emulator
/// must forward every method, or it does not compile.
pub trait Emulator: Send + Sync + 'static {
    /// Submits a batch, which is performed at a frame boundary. Returns at once. The outcome or an error arrives by
    /// `deadline`. If frames of an earlier [`Op::Advance`] still have to run in an attached emulator, the deadline is
    /// extended by the time that is left until the deadline of that operation. A batch whose deadline passes before it
    /// is started is not performed. There is one exception: what was sent to mGBA-http's script cannot be withdrawn.
    fn submit(&self, batch: Batch, deadline: Instant) -> Pending;

    /// The state of the emulator. This does not wait for the emulator.
    fn state(&self) -> State;

    /// Only [`State::checksum`]. Unlike [`state`](Self::state), this allocates no memory.
    fn checksum(&self) -> Option<u32>;

    /// The events from now on. A receiver that is too slow learns how many events it has missed.
    fn events(&self) -> broadcast::Receiver<Event>;

    /// Creates a watch. It starts when a batch with the operation [`Watch::op`] is performed, and ends when the handle
    /// is dropped. A watch that does not report keys also ends with the first frame of another game.
    fn watch(&self, request: WatchRequest) -> Watch;

    /// The picture of each frame; `None` if only [`Op::Screenshot`] makes pictures.
    fn video(&self) -> Option<Video>;

    /// The picture of the frame after which the frame counter is `frame`. It is never the picture of a neighbouring
    /// frame, at any speed. There is one exception: after a reset, after a state was loaded and after going back, an
    /// embedded core can still have another picture until its next frame runs. `None` if only [`Op::Screenshot`] makes
    /// pictures.
    fn picture_of(&self, frame: u32) -> Option<PendingPicture>;

    /// The sound of each frame; `None` if there is no sound.
    fn audio(&self) -> Option<Audio>;

    /// The earlier states that [`Op::Rewind`] goes back to; `None` if an attached emulator's script is mGBA-http's.
    /// Without memory for a history, the history stays empty. An attached emulator fetches states only for ten minutes
    /// after each call of this method and each [`Op::Rewind`].
    fn history(&self) -> Option<Arc<History>>;
}
