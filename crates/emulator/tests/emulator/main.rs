//! Both kinds of emulator on the demo game.

#![cfg(feature = "embedded")]

mod attached;
mod control;
mod embedded;
mod media;
mod replay;
mod script_table;
mod state;
mod stuck;
mod support;
mod timelines;
mod watches;
