//! The foundation of the end-to-end tests: starts and stops the program, with clients for it.
//!
//! - [`Framewire`]: the program, built from this checkout; [`paths`]: the paths in the checkout;
//! - [`demo`]: the memory map of the demo game;
//! - [`SmallDisk`]: a disk that is soon full;
//! - [`Proxy`]: a network that breaks; [`sockets`]: the number of sockets of a process;
//! - [`Http`], [`TextClient`] and [`FrameClient`]: blocking clients of the program and of the script;
//! - from `framewire-stock`: [`StockMgba`], a stock mGBA in a window, and its helpers.

pub mod demo;
mod frames;
mod framewire;
mod http;
pub mod paths;
mod proxy;
mod small_disk;
pub mod sockets;
mod text;

pub use frames::FrameClient;
pub use framewire::Framewire;
pub use framewire_stock::{
    Desktop, Error, Key, Picture, Process, Result, Signal, StockMgba, StockOptions, Window, ports, until,
    until_some,
};
pub use http::{Http, Reply};
pub use proxy::Proxy;
pub use small_disk::SmallDisk;
pub use text::TextClient;
