//! The symbols of each emulator: names for addresses.

use std::sync::Arc;

use anyhow::Context;
use framewire_symbols::SymbolFiles;

use crate::requested::{check_names, named_path};
use crate::settings::Settings;

/// The demo game's memory map, which names its addresses.
pub const DEMO_MAP: &str = include_str!("../../../rom/memory-map.toml");

/// The symbols of the emulator `name`: from its own files, from files for all emulators, and from the demo game's map
/// if `demo` is true.
///
/// # Errors
/// If a file cannot be used.
pub fn of(settings: &Settings, name: &str, demo: bool) -> anyhow::Result<Arc<SymbolFiles>> {
    let mut symbols = SymbolFiles::default();
    for setting in &settings.symbols {
        let (owner, path) = named_path(setting);
        if owner.is_none_or(|owner| owner == name) {
            symbols.load(path).context("--symbols")?;
        }
    }
    if demo {
        symbols.add_memory_map(DEMO_MAP).context("the built-in memory map")?;
    }
    Ok(Arc::new(symbols))
}

/// Checks that the settings have no symbol file for an emulator that does not exist.
///
/// # Errors
/// If there is such a file.
pub fn check(settings: &Settings, names: &[&str]) -> anyhow::Result<()> {
    check_names("--symbols", &settings.symbols, names)
}
