//! Framewire's own interface.

mod batch;
mod live;
mod memory;
mod problems;
