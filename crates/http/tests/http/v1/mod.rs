//! Framewire's own interface.

mod batch;
mod problems;
