//! Names for the addresses of each emulator.

use std::sync::Arc;

use anyhow::{Context, bail};
use framewire_http::SymbolFiles;

use crate::assets;
use crate::settings::Settings;
use crate::wanted::named_path;

/// The symbols of the emulator `name`: those of its files, of files for all, and of the demo game if it is that.
///
/// # Errors
/// If a file cannot be used.
pub fn of(settings: &Settings, name: &str, demo: bool) -> anyhow::Result<Arc<SymbolFiles>> {
    let mut symbols = SymbolFiles::default();
    for setting in &settings.symbols {
        let (of, path) = named_path(setting);
        if of.is_none_or(|of| of == name) {
            symbols.load(path).context("--symbols")?;
        }
    }
    if demo {
        symbols.add_memory_map(assets::DEMO_MAP).context("the built-in memory map")?;
    }
    Ok(Arc::new(symbols))
}

/// Refuses files for an emulator that is not there.
///
/// # Errors
/// Which one it is.
pub fn check(settings: &Settings, names: &[&str]) -> anyhow::Result<()> {
    for setting in &settings.symbols {
        if let (Some(name), _) = named_path(setting)
            && !names.contains(&name)
        {
            bail!(
                "--symbols {}: no emulator is called {name}; there are: {}",
                setting.display(),
                names.join(", ")
            );
        }
    }
    Ok(())
}
