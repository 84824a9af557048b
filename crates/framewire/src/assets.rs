//! Files that are built into the program, so that one file is a whole installation.

pub use framewire_script::SCRIPT;

/// The demo game.
#[cfg(feature = "embedded")]
pub const DEMO_ROM: &[u8] = include_bytes!("../../../rom/framewire-demo.gba");

/// The names of the demo game's addresses.
pub const DEMO_MAP: &str = include_str!("../../../rom/memory-map.toml");
