//! A stock mGBA in a window on a display of its own, for tests and measurements: Debian's `mgba-qt`, unchanged, under
//! Xvfb, with scripts loaded the way a user loads them.
//!
//! - [`StockMgba`]: starting it, loading scripts, pausing, opening games, every way of ending;
//! - [`Desktop`]: its display, with [`Key`]s, [`Window`]s and [`Picture`]s;
//! - [`Process`]: a program whose output is kept and which ends with us; [`ports`] finds a port for it;
//! - [`until`]: waiting for a condition.
//!
//! Everything waits for a condition with a deadline, never for a length of time, and every process started here ends
//! with its owner: in `Drop`, and by the kernel's hand if this process is killed.

mod desktop;
mod error;
mod mgba;
pub mod ports;
mod process;
mod wait;

pub use desktop::{Desktop, Key, Picture, Window};
pub use error::{Error, Result};
pub use mgba::{StockMgba, StockOptions};
pub use process::Process;
pub use rustix::process::Signal;
pub use wait::{until, until_some};
