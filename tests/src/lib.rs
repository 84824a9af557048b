//! Helpers for the end-to-end tests, in addition to those of `framewire-lab`, which starts the program and a stock
//! mGBA.
//!
//! - [`demo`]: the documented addresses of the demo game, and its lamps, which show the keys that are held;
//! - [`SmallDisk`]: a small file system that a test can fill; [`sockets`]: how many sockets a process holds;
//! - [`FrameClient`]: a blocking client for the script's binary frames; [`until_good`]: repeated measurements.

pub mod demo;
mod frames;
mod small_disk;
pub mod sockets;
mod until_good;

pub use frames::FrameClient;
pub use framewire_lab::*;
pub use small_disk::SmallDisk;
pub use until_good::until_good;
