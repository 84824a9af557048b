//! Savestates in named files, the differences between two of them, and searches for the addresses in memory that hold a
//! value. This crate uses no network and no emulator.
//!
//! - [`Name`]: the name of a file;
//! - [`Folder`]: a folder of files of one kind, each written completely or not at all;
//! - [`State`]: the parts of an mGBA savestate: its game and its memory;
//! - [`Snapshot`]: a savestate with its picture, its game, its time and a note: one PNG file that mGBA can load too;
//! - [`Snapshots`]: a folder of snapshots;
//! - [`diff`]: the differences between the memory of two states;
//! - [`time`]: times as text;
//! - [`search`]: a search for the addresses that hold a value; each step leaves fewer candidates.

pub mod diff;
mod error;
mod folder;
mod name;
mod place;
mod png;
pub mod search;
mod snapshot;
mod snapshots;
mod state;
pub mod time;

pub use error::{FolderError, StateError};
pub use folder::{Entry, Folder};
pub use name::{Name, NameError};
pub use place::OnBus;
pub use snapshot::{About, Snapshot};
pub use snapshots::{Listed, Snapshots};
pub use state::{Clock, Console, MAX_STATE, Region, State};
