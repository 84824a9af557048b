//! One trait over both kinds of emulator: a core embedded in this process, and a stock mGBA reached over TCP.
//!
//! - [`Emulator`]: the trait; front ends know nothing else of an emulator;
//! - [`Pending`]: a batch that has no outcome yet;
//! - [`Embedded`]: the core in this process (feature `embedded`, which needs libmgba);
//! - [`Attached`]: the stock mGBA;
//! - [`State`]: the state of an emulator, available at any time;
//! - [`Event`] and [`Watch`]: what an emulator reports; [`Video`] and [`Audio`]: its picture and sound as they are made. Each
//!   queue is bounded: a slow reader loses the oldest items, and no emulator waits for a reader;
//! - [`History`]: the states of the past that an emulator can go back to;
//! - [`EmulatorError`]: why a batch has no outcome. A refused *operation* is not among these: it is in the outcome.

mod attached;
mod clock;
#[cfg(feature = "embedded")]
pub mod embedded;
mod error;
mod event;
mod feed;
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
pub use event::{Event, Happening};
pub use history::History;
pub use media::{Audio, FramePassed, PendingPicture, Picture, Sound, Video};
pub use pending::{Pending, Responder};
pub use state::{Kind, Run, SetSpeed, State};
pub use watch::{
    Change, Discontinuity, MemoryRange, Watch, WatchEnd, WatchEvent, WatchRequest, WorkRam, work_ram,
};

use framewire_protocol::Batch;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::broadcast;

/// A running core, wherever it runs. No method has a default body: a type that wraps an emulator and forgets one does not
/// compile.
pub trait Emulator: Send + Sync + 'static {
    /// Submits a batch, which is performed at a frame boundary. Returns at once. The outcome, or the reason why there is none,
    /// arrives by `deadline`. If frames of an earlier [`Op::Advance`] have yet to run, the deadline moves by the time that they
    /// take. A batch whose deadline passes before it is started is not performed.
    ///
    /// [`Op::Advance`]: framewire_protocol::Op::Advance
    fn submit(&self, batch: Batch, deadline: Instant) -> Pending;

    /// The state of the emulator. Does not wait for it.
    fn state(&self) -> State;

    /// [`State::checksum`] alone. Unlike the whole state, this allocates no memory.
    fn checksum(&self) -> Option<u32>;

    /// The events from now on. A receiver that is too slow learns how many events it has missed.
    fn events(&self) -> broadcast::Receiver<Event>;

    /// A watch that starts with the batch that carries [`Watch::op`] and ends when it is dropped. A watch without keys also
    /// ends with the first frame of another game.
    fn watch(&self, request: WatchRequest) -> Watch;

    /// The picture of each frame; `None` if only [`Op::Screenshot`] makes pictures.
    ///
    /// [`Op::Screenshot`]: framewire_protocol::Op::Screenshot
    fn video(&self) -> Option<Video>;

    /// The picture of exactly the frame that ends with the frame counter at `frame`, at any speed. `None` if only
    /// [`Op::Screenshot`] makes pictures.
    ///
    /// [`Op::Screenshot`]: framewire_protocol::Op::Screenshot
    fn picture_of(&self, frame: u32) -> Option<PendingPicture>;

    /// The sound of each frame; `None` if there is no sound.
    fn audio(&self) -> Option<Audio>;

    /// The states of the past that [`Op::Rewind`] goes back to; `None` if it cannot go back.
    ///
    /// [`Op::Rewind`]: framewire_protocol::Op::Rewind
    fn history(&self) -> Option<Arc<History>>;
}
