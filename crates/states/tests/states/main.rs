//! Reads states of real cores, and writes them again.

mod apart;
mod kept;
mod support;
