//! Tests of the HTTP front end, nearly all over real sockets. Most servers have a libmgba core, usually with the demo
//! game. The others attach to a script, or to a port where no script answers.

mod access;
mod bad_input;
mod console;
mod ending;
mod failures;
mod files;
mod game;
mod hostile;
mod https;
mod incoming;
mod intruders;
mod keys;
mod large;
mod layers;
mod leaving;
mod log;
mod memory;
mod metrics;
mod once;
mod own;
mod page;
#[path = "../../../link/tests/link/peer.rs"]
#[expect(dead_code, reason = "the tests of the link use the rest")]
mod peer;
#[path = "../../../../tests/src/reserved_port.rs"]
mod reserved_port;
mod slow;
mod states;
mod support;
mod table;
mod tokens;
#[path = "../../../../tests/src/until_good.rs"]
mod until_good;
mod v1;
mod wire;
mod wrong_results;
