//! A library for tests and measurements: it starts emulators and programs, and has clients for them.
//!
//! - [`StockMgba`]: Debian's unchanged `mgba-qt` in a window under Xvfb, controlled with keys and the mouse, as by a
//!   user; [`Key`]s and [`Picture`]s of its display;
//! - [`Framewire`]: the program, built from this checkout; [`paths`]: paths of files in the checkout;
//! - [`Process`]: a child process whose output is kept, and which ends with this process; [`ports`]: free ports for it;
//! - [`TextClient`] and [`Http`]: blocking clients of a script and of a server; [`Proxy`]: a proxy that simulates
//!   network failures;
//! - [`until`]: waits for a condition.
//!
//! To wait, this library checks a condition repeatedly until a deadline; it does not sleep for a fixed time. When the
//! value that owns a child process is dropped, the child is killed. If this process itself is killed, the kernel kills
//! its children.
//!
//! The package's program, `framewire-lab`, measures the figures in the documents: see `main.rs`.

mod desktop;
mod error;
mod framewire;
mod http;
mod mgba;
pub mod paths;
pub mod ports;
mod process;
mod proxy;
mod text;
mod wait;
#[path = "../../../tests/src/without_settings.rs"]
mod without_settings;

use desktop::{Desktop, Window};
pub use desktop::{Key, Picture};
pub use error::{Error, Result};
pub use framewire::Framewire;
pub use http::{Http, Reply};
pub use mgba::{StockMgba, StockOptions};
pub use process::Process;
pub use proxy::Proxy;
pub use rustix::process::Signal;
pub use text::TextClient;
pub use wait::{until, until_some};
