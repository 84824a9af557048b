//! Our end of the connection to an attached emulator.
//!
//! - [`Link`]: what an attached emulator holds: batches in, outcomes out, whatever happens to the connection;
//! - [`Config`], [`Status`], [`LinkError`]: how it is set, how it is, and why a batch has no outcome;
//! - [`Notice`]: what a link tells unasked: the emulator's events, and how the connection fares;
//! - `supervisor`: connects, says hello, and connects again after a break, with a growing delay;
//! - `desk`: what all connections of a link work with;
//! - `session`: the requests that are open, over the connections that come and go; no I/O;
//! - `binary` and `text`: one connection to Framewire's script, and one to mGBA-http's;
//! - [`probe()`]: who listens at an address; `silence`: whether a connection that is silent still leads there.

mod binary;
mod checks;
mod config;
mod desk;
mod error;
mod link;
mod notice;
mod probe;
mod session;
mod silence;
mod socket;
mod status;
mod submission;
mod supervisor;
mod text;

pub use config::Config;
pub use error::LinkError;
pub use link::Link;
pub use notice::{Listen, Notice};
pub use probe::{Found, probe};
pub use status::{Phase, Script, Status};
pub use submission::Respond;
