//! Tests of both kinds of emulator, most of them with the demo game.

#![cfg(feature = "embedded")]

mod attached;
mod attached_history;
mod attached_live;
#[cfg(target_os = "linux")]
mod channel;
mod cheats;
mod control;
mod embedded;
mod exact;
mod history;
#[path = "../../../../tests/src/keypad_counter.rs"]
mod keypad_counter;
mod media;
mod memory;
#[path = "../../../link/tests/link/peer.rs"]
#[expect(dead_code, reason = "the tests of the link use the rest")]
mod peer;
#[path = "../../../../tests/src/reserved_port.rs"]
mod reserved_port;
mod saves;
mod script_table;
mod sensors;
mod support;
mod timelines;
#[path = "../../../../tests/src/until_good.rs"]
mod until_good;
mod watches;
