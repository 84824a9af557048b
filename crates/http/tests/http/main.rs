//! The HTTP front end over real parts: a libmgba core running the demo game, real sockets, a real link.

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
mod leaving;
mod log;
mod memory;
mod metrics;
mod own;
mod page;
mod slow;
mod states;
mod support;
mod table;
mod tokens;
mod v1;
mod wire;
