//! Two processes of one user exchange messages through shared memory. A message is 1 byte to 1 MiB long. All messages
//! arrive, complete and in order.
//!
//! ```no_run
//! use framewire_channel::{Endpoint, Options};
//! let mut here = Endpoint::create("demo", Options::default())?; // in one process
//! let mut there = Endpoint::connect("demo", None, Options::default())?; // in the other
//! there.sender.send(b"hello", None)?;
//! assert_eq!(&*here.receiver.receive(None)?, b"hello");
//! # Ok::<(), framewire_channel::Error>(())
//! ```
//!
//! - [`Endpoint`]: one side of a channel: its [`Sender`] and its [`Receiver`];
//! - [`Sender`] and [`Receiver`]: write and read messages in place ([`Reserved`], [`Message`]), or copy them;
//! - [`Waker`]: lets one thread end another thread's wait for a message;
//! - [`Extra`]: extra memory that both sides see;
//! - [`Error`]: why there is no message, or no channel.
//!
//! `docs/channel.md` describes the memory byte by byte. `luajit/framewire/channel.lua` implements the same protocol in
//! Lua. The modules, from the lowest layer up: `memory` holds the bytes, and makes the system calls for shared memory,
//! locks and sleeping; `wait` spins and sleeps; `ring` sends and receives messages; `endpoint` creates channels and
//! attaches to them. The crate is empty on all systems except Linux.

#![cfg(any(target_os = "linux", loom))]
// loom's models (`model.rs`) use only a part of the crate.
#![cfg_attr(loom, allow(dead_code, unused_imports))]

#[cfg(not(loom))]
mod endpoint;
mod error;
mod layout;
mod memory;
mod ring;
mod sync;
mod wait;

#[cfg(not(loom))]
pub use endpoint::{Endpoint, Extra, Options, Waker};
pub use error::Error;
pub use layout::MAX_MESSAGE;

/// Sends messages to the other side. The channel ends when one side has dropped all of these: its sender, its
/// [`Receiver`], and every [`Extra`] and [`Waker`].
#[cfg(not(loom))]
pub type Sender = ring::Sender<memory::Block>;
/// Receives messages from the other side.
#[cfg(not(loom))]
pub type Receiver = ring::Receiver<memory::Block>;
/// Space in shared memory in which you write a message.
#[cfg(not(loom))]
pub type Reserved<'a> = ring::Reserved<'a, memory::Block>;
/// A message in shared memory. After it is dropped, the other side can reuse its memory.
#[cfg(not(loom))]
pub type Message<'a> = ring::Message<'a, memory::Block>;

#[cfg(all(test, loom))]
mod model;
