//! A safe wrapper over libmgba, the library inside the mGBA emulator.
//!
//! A [`Core`] is an emulated console with its game. It can open a ROM, run frames, hold keys, read and write memory,
//! save and load states, return the picture and the sound, and run Lua scripts as mGBA's own window does.
//!
//! ```no_run
//! use framewire_libmgba::Core;
//!
//! let mut core = Core::open("game.gba".as_ref())?;
//! core.set_keys(1 << 3); // Start
//! core.run_frame();
//! let lives = core.read8(0x0200_0000);
//! std::fs::write("now.png", core.screenshot_png()?)?;
//! # let _ = lives;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Layers: `shim/` is C code that is compiled against libmgba's headers, because the layout of libmgba's structures
//! depends on its version and build flags; `sys` declares the shim and is the only module with `unsafe` in it; the rest
//! is safe Rust that uses `sys`.
//!
//! A core belongs to one thread at a time (`Send`, not `Sync`). Any number of cores may run at once, each on its own
//! thread. This crate never reads or writes the user's mGBA configuration.
//!
//! The documentation describes the behaviour of mGBA 0.10, and the tests check this behaviour. The oldest supported
//! version is 0.10.1. By default, the crate builds a newer release of mGBA 0.10 from source.

mod archive;
mod cheat;
mod clock;
mod core;
mod domain;
mod error;
mod hardware;
mod header;
mod layer;
mod log;
mod media;
mod memory;
mod patch;
mod platform;
mod rom;
mod script;
mod sensor;
mod state;
#[allow(unsafe_code)]
mod sys;

pub use crate::cheat::{Cheat, CheatKind, Code, read_cheats};
pub use crate::clock::{Clock, Time};
pub use crate::core::{Core, Options};
pub use crate::domain::Domain;
pub use crate::error::Error;
pub use crate::hardware::{GbModel, Hardware, Palette, SaveType};
pub use crate::layer::Layer;
pub use crate::log::Level;
pub use crate::media::Frame;
pub use crate::patch::Patching;
pub use crate::platform::Platform;
pub use crate::rom::read_patched_rom;
pub use crate::sensor::Sensor;
pub use crate::state::{Save, SaveId, flags};
pub use crate::sys::{Canvas, PICTURE, release_memory, version_string as version};

/// How the libmgba of this program was built: its source and its optimisation, or that it is the installed library.
pub const BUILD: &str = env!("FRAMEWIRE_LIBMGBA_BUILD");

// Files and ranges that exceed these limits are refused. So no file and no caller can make a core allocate an unlimited
// amount of memory.

/// The largest ROM that is accepted, in bytes.
pub const MAX_ROM_SIZE: usize = 64 << 20;

/// The longest range that can be read or written at once, in bytes. It is the size of the largest part of a GBA's
/// address space: one of the three mirrors of the cartridge's ROM.
pub const MAX_RANGE: usize = 32 << 20;

/// The largest savestate that is accepted, in bytes. A state can contain a picture. If
/// this picture has the console's own size, the state is below 1 MiB.
pub const MAX_STATE_SIZE: usize = 16 << 20;

/// The largest script that is loaded from a file, in bytes.
pub const MAX_SCRIPT: u64 = 16 << 20;

/// The largest battery save that is accepted, in bytes; a real one has up to 128 KiB and a few bytes for a clock.
pub const MAX_SAVE_SIZE: usize = 1 << 20;
