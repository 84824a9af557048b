//! What the end-to-end tests stand on: the real programs, started, driven and stopped.
//!
//! - [`StockMgba`]: Debian's `mgba-qt`, unchanged, in a window on a display of its own, with scripts loaded the way a
//!   user loads them.
//! - [`Framewire`]: our own program, built from this checkout.
//! - [`Http`] and [`TextClient`]: blocking clients for what those two answer. [`ports`] finds a port for them.
//!
//! Everything waits for a condition with a deadline, never for a length of time, and every process started here ends
//! with the test: in `Drop`, and by the kernel's hand if the test process itself is killed.

mod desktop;
mod error;
mod framewire;
mod http;
pub mod paths;
pub mod ports;
mod process;
mod stock;
mod text;
mod wait;

pub use desktop::{Desktop, Key, Picture, Window};
pub use error::{Error, Result};
pub use framewire::Framewire;
pub use http::{Http, Reply};
pub use process::Process;
pub use rustix::process::Signal;
pub use stock::{StockMgba, StockOptions};
pub use text::TextClient;
pub use wait::{until, until_some};
