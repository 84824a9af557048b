//! Both kinds of emulator on the demo game.

#![cfg(feature = "embedded")]

mod attached;
mod embedded;
mod replay;
mod script_table;
mod state;
mod stuck;
mod support;
