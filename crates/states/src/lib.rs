//! What is kept of a machine: savestates in named files, what changed between two of them, and which places of memory
//! hold a value that is looked for. No network and no emulator: bytes go in, bytes come out.
//!
//! - [`Name`]: what files may be called;
//! - [`Folder`]: files of one kind by name, written whole or not at all;
//! - [`State`]: a savestate of mGBA's, taken apart: which game, which memory;
//! - [`Snapshot`]: a savestate with who, when and why, in one PNG file that mGBA loads too;
//! - [`Snapshots`]: the folder of them;
//! - [`diff`]: what differs between two memories;
//! - [`time`]: when, as text;
//! - [`search`]: places that hold a value, narrowed step by step.

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
