//! Tests with savestates of real cores.

mod apart;
mod kept;
mod support;
