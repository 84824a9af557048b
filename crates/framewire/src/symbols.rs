//! The symbols of each emulator: names for addresses.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use framewire_symbols::SymbolFiles;

/// The demo game's memory map, which names its addresses.
const DEMO_MAP: &str = include_str!("../../../rom/memory-map.toml");

/// The symbols from these files, and from the demo game's map if `demo` is true.
pub fn load(files: &[impl AsRef<Path>], demo: bool) -> anyhow::Result<Arc<SymbolFiles>> {
    let mut symbols = SymbolFiles::default();
    for file in files {
        symbols.load(file.as_ref()).context("--symbols")?;
    }
    if demo {
        symbols.add_memory_map(DEMO_MAP).context("the built-in memory map")?;
    }
    Ok(Arc::new(symbols))
}
