//! The options of a game: a patch, cheats, and the hardware of the console.

use std::path::PathBuf;
use std::str::FromStr;

use framewire_libmgba::{Hardware, Options, Patching, SaveType};
use pyo3::prelude::*;

use crate::errors::argument;

/// Changes to a game and to its console, as `framewire.core` passes them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct GameOptions {
    patch: Option<PathBuf>,
    /// Files with cheats.
    pub(super) cheats: Vec<PathBuf>,
    bios: Option<PathBuf>,
    gb_model: Option<String>,
    gb_palette: Option<String>,
    sgb_borders: bool,
    save_type: Option<String>,
}

impl GameOptions {
    /// The options for libmgba: all except the cheats.
    pub(super) fn of_core(self) -> PyResult<Options> {
        fn parsed<T: FromStr<Err = String>>(name: &str, text: Option<String>) -> PyResult<Option<T>> {
            let Some(text) = text else { return Ok(None) };
            text.parse().map(Some).map_err(|problem| argument(format!("{name} is {text:?}: {problem}")))
        }
        let hardware = Hardware {
            bios: self.bios,
            gb_model: parsed("gb_model", self.gb_model)?,
            borders: self.sgb_borders,
            palette: parsed("gb_palette", self.gb_palette)?,
            save_type: parsed("save_type", self.save_type)?.unwrap_or(SaveType::Auto),
        };
        Ok(Options { patching: self.patch.map_or(Patching::Off, Patching::File), hardware })
    }
}
