//! One trait over both kinds of emulator: a core embedded in this process, and a stock mGBA reached over TCP.
//!
//! - [`Emulator`]: the trait, which is all that front ends know;
//! - [`Pending`]: a batch under way;
//! - [`Embedded`]: the core in this process (feature `embedded`, which needs libmgba);
//! - [`Attached`]: the stock mGBA;
//! - [`State`]: what can be asked of an emulator at any time;
//! - [`EmulatorError`]: why a batch has no outcome. A refused *operation* is not among these: it is in the outcome.

mod attached;
#[cfg(feature = "embedded")]
pub mod embedded;
mod error;
mod pending;
mod state;

pub use attached::Attached;
#[cfg(feature = "embedded")]
pub use embedded::Embedded;
pub use error::EmulatorError;
pub use pending::{Pending, Responder};
pub use state::{Kind, Run, State};

use framewire_protocol::Batch;
use std::time::Instant;

/// A running core, wherever it runs.
pub trait Emulator: Send + Sync + 'static {
    /// Hands over a batch, to be done at a frame boundary. Returns at once; the outcome, or the reason why there is
    /// none, arrives by `deadline` at the latest. A batch whose deadline passed before it was begun is not done.
    fn submit(&self, batch: Batch, deadline: Instant) -> Pending;

    /// How the emulator is, without waiting for it.
    fn state(&self) -> State;
}
