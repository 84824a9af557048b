//! Watches, events, waits, runs and JSON-RPC.

pub mod client;
mod crowd;
mod document;
mod ending;
mod events;
mod guide;
mod methods;
mod pointers;
mod refusals;
mod rpc;
mod run;
pub mod script;
mod wait;
mod watches;
