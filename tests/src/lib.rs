//! What the end-to-end tests use in addition to `framewire-lab`, which starts the program and a stock mGBA.
//!
//! - [`demo`]: what the demo game promises;
//! - [`SmallDisk`]: a disk that is soon full; [`sockets`]: how many sockets a process holds;
//! - [`FrameClient`]: a blocking client of the script's binary frames.

pub mod demo;
mod frames;
mod small_disk;
pub mod sockets;

pub use frames::FrameClient;
pub use framewire_lab::*;
pub use small_disk::SmallDisk;
