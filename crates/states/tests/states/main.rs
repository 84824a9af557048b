//! Tests with savestates of real cores.

mod parts;
mod snapshots;
mod support;
