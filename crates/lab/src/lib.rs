//! What tests and measurements have in common: the emulators and programs that they start, and clients of those.
//!
//! - [`StockMgba`]: Debian's `mgba-qt`, unchanged, in a window under Xvfb, driven as a user drives it;
//!   [`Desktop`]: its display, with [`Key`]s, [`Window`]s and [`Picture`]s;
//! - [`Framewire`]: the program, built from this checkout; [`paths`]: where things are in the checkout;
//! - [`Process`]: a program whose output is kept and which ends with us; [`ports`]: free ports for it;
//! - [`TextClient`] and [`Http`]: blocking clients of a script and of a server; [`Proxy`]: a network that fails;
//! - [`until`]: waiting for a condition.
//!
//! Everything waits for a condition with a deadline, never for a length of time. Every process ends with its owner: in
//! `Drop`, and by the kernel if this process is killed.
//!
//! The package's program, `framewire-lab`, measures what the documents claim: see `main.rs`.

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

pub use desktop::{Desktop, Key, Picture, Window};
pub use error::{Error, Result};
pub use framewire::Framewire;
pub use http::{Http, Reply};
pub use mgba::{StockMgba, StockOptions};
pub use process::Process;
pub use proxy::Proxy;
pub use rustix::process::Signal;
pub use text::TextClient;
pub use wait::{until, until_some};
