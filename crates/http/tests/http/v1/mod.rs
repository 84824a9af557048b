//! Framewire's own interface.

mod batch;
mod memory;
mod problems;
