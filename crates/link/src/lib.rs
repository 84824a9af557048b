//! Framewire's end of the connection to an attached emulator.
//!
//! - [`Link`]: the handle for users: it takes batches and returns their outcomes, and connects again after a break;
//! - [`Config`], [`Status`], [`LinkError`]: its settings, its status, and why a batch has no outcome;
//! - [`Notice`]: what a link reports without a request: the emulator's events, and changes of the connection;
//! - `supervisor`: connects, sends the hello, and connects again after a break, with a growing delay;
//! - `state`: the state of a link, which its connections use one after the other;
//! - `session`: the open requests, which outlive connections; no I/O;
//! - `binary` and `text`: one connection to Framewire's script, and one to mGBA-http's;
//! - [`probe()`]: finds out what listens at an address;
//! - `silence`: finds out whether a silent connection still leads to the script.

mod binary;
mod checks;
mod config;
mod error;
mod link;
mod probe;
mod session;
mod silence;
mod state;
mod status;
mod supervisor;
mod text;

pub use config::Config;
pub use error::LinkError;
pub use link::Link;
pub use probe::{Found, probe};
pub use session::Respond;
pub use status::{Listen, Notice, Phase, Script, Status};
