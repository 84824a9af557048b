//! One trait over both kinds of emulator: a core embedded in this process, and a stock mGBA reached over TCP.
//!
//! - [`Emulator`]: the trait, which is all that front ends know;
//! - [`Pending`]: a batch under way;
//! - [`Embedded`]: the core in this process (feature `embedded`, which needs libmgba);
//! - [`Attached`]: the stock mGBA;
//! - [`State`]: what can be asked of an emulator at any time;
//! - [`Event`] and [`Watch`]: what an emulator tells of itself; [`Video`] and [`Audio`]: its picture and sound as they are
//!   made. Each has a bound behind which a slow taker loses the oldest, and no emulator waits for a taker;
//! - [`EmulatorError`]: why a batch has no outcome. A refused *operation* is not among these: it is in the outcome.

mod attached;
mod clock;
#[cfg(feature = "embedded")]
pub mod embedded;
mod error;
mod event;
mod feed;
mod media;
mod pending;
mod state;
mod watch;
mod work_ram;

pub use attached::Attached;
pub use clock::{Clock, ClockError, ClockTime};
#[cfg(feature = "embedded")]
pub use embedded::Embedded;
pub use error::EmulatorError;
pub use event::{Event, Happening};
pub use media::{Audio, Past, Picture, PictureOf, Sound, Video};
pub use pending::{Pending, Responder};
pub use state::{Kind, Run, SetSpeed, State};
pub use watch::{Change, Discontinuity, MemoryRange, Watch, WatchEvent, WatchRequest};
pub use work_ram::{WorkRam, work_ram};

use framewire_protocol::Batch;
use std::time::Instant;
use tokio::sync::broadcast;

/// A running core, wherever it runs. No method has a default body: a type that wraps an emulator and forgets one does not
/// compile.
pub trait Emulator: Send + Sync + 'static {
    /// Hands over a batch, to be done at a frame boundary. Returns at once; the outcome, or the reason why there is
    /// none, arrives by `deadline` at the latest, or where frames of an earlier [`Op::Advance`] are still to run, so much
    /// later. A batch whose deadline passed before it was begun is not done.
    ///
    /// [`Op::Advance`]: framewire_protocol::Op::Advance
    fn submit(&self, batch: Batch, deadline: Instant) -> Pending;

    /// How the emulator is, without waiting for it.
    fn state(&self) -> State;

    /// [`State::checksum`] by itself, for those that only compare it: without the rest of the state, which takes memory.
    fn checksum(&self) -> Option<u32>;

    /// What happens there from now on. A receiver that lags behind is told how many events it lost.
    fn events(&self) -> broadcast::Receiver<Event>;

    /// A watch that begins with the batch that carries [`Watch::op`], and ends when it is dropped.
    fn watch(&self, request: WatchRequest) -> Watch;

    /// The picture of each frame while somebody looks; `None` where only [`Op::Screenshot`] gives pictures.
    ///
    /// [`Op::Screenshot`]: framewire_protocol::Op::Screenshot
    fn video(&self) -> Option<Video>;

    /// The picture of exactly the frame that ends with the frame counter at `frame`, at whatever speed frames go by.
    /// `None` where only [`Op::Screenshot`] gives pictures.
    ///
    /// [`Op::Screenshot`]: framewire_protocol::Op::Screenshot
    fn picture_of(&self, frame: u32) -> Option<PictureOf>;

    /// The sound while somebody listens; `None` where there is none.
    fn audio(&self) -> Option<Audio>;
}
