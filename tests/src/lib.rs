//! What the end-to-end tests stand on: our own program, started, driven and stopped, and clients of it.
//!
//! - [`Framewire`]: our program, built from this checkout; [`paths`] says where things are in it;
//! - [`demo`]: what the demo game promises;
//! - [`SmallDisk`]: a disk that is soon full;
//! - [`Proxy`]: a network that breaks; [`sockets`]: how many a process holds;
//! - [`Http`], [`TextClient`] and [`FrameClient`]: blocking clients of what it and the script answer;
//! - and from `framewire-stock`: [`StockMgba`], a stock mGBA in a window, and what belongs to it.

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
