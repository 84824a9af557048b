//! The settings of the console that a core emulates.

use std::ffi::CStr;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::Error;
use crate::state::read_limited;
use crate::sys::{ConsoleSetup, PALETTE};

/// The largest BIOS that is accepted, in bytes. The BIOS of a Game Boy Advance has 16 KiB.
const MAX_BIOS: u64 = 1 << 20;

/// A model of the Game Boy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GbModel {
    /// Game Boy.
    Dmg,
    /// Game Boy Pocket.
    Mgb,
    /// Super Game Boy.
    Sgb,
    /// Super Game Boy 2.
    Sgb2,
    /// Game Boy Color.
    Cgb,
    /// A Game Boy Advance that runs a Game Boy game.
    Agb,
}

impl GbModel {
    /// The models, with their names in the settings and in mGBA.
    const ALL: [(GbModel, &'static str, &'static CStr); 6] = [
        (GbModel::Dmg, "dmg", c"DMG"),
        (GbModel::Mgb, "mgb", c"MGB"),
        (GbModel::Sgb, "sgb", c"SGB"),
        (GbModel::Sgb2, "sgb2", c"SGB2"),
        (GbModel::Cgb, "cgb", c"CGB"),
        (GbModel::Agb, "agb", c"AGB"),
    ];

    fn for_mgba(self) -> Option<&'static CStr> {
        GbModel::ALL.iter().find(|(model, ..)| *model == self).map(|(_, _, name)| *name)
    }
}

impl FromStr for GbModel {
    type Err = String;

    fn from_str(text: &str) -> Result<GbModel, String> {
        named(&GbModel::ALL, text, "a model of the Game Boy")
    }
}

/// The value with this name, in upper or lower case. The error begins with `what` and lists the names.
fn named<T: Copy, M>(all: &[(T, &str, M)], text: &str, what: &str) -> Result<T, String> {
    let found = all.iter().find(|(_, name, _)| text.eq_ignore_ascii_case(name));
    found.map(|(value, ..)| *value).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|(_, name, _)| *name).collect();
        format!("{what} is one of {}", names.join(", "))
    })
}

/// The memory in which a cartridge of the GBA keeps its save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveType {
    /// libmgba chooses according to its list of games or the behaviour of the game.
    Auto,
    /// No save memory.
    None,
    /// Battery-backed RAM of 32 KiB.
    Sram,
    /// Battery-backed RAM of 64 KiB.
    Sram512,
    /// Flash memory of 64 KiB.
    Flash512,
    /// Flash memory of 128 KiB.
    Flash1m,
    /// An EEPROM of 8 KiB.
    Eeprom,
    /// An EEPROM of 512 bytes.
    Eeprom512,
}

impl SaveType {
    /// The types, with their names in the settings and in mGBA.
    const ALL: [(SaveType, &'static str, Option<&'static CStr>); 8] = [
        (SaveType::Auto, "auto", None),
        (SaveType::None, "none", Some(c"NONE")),
        (SaveType::Sram, "sram", Some(c"SRAM")),
        (SaveType::Sram512, "sram512", Some(c"SRAM512")),
        (SaveType::Flash512, "flash512", Some(c"FLASH512")),
        (SaveType::Flash1m, "flash1m", Some(c"FLASH1M")),
        (SaveType::Eeprom, "eeprom", Some(c"EEPROM")),
        (SaveType::Eeprom512, "eeprom512", Some(c"EEPROM512")),
    ];

    fn for_mgba(self) -> Option<&'static CStr> {
        SaveType::ALL.iter().find(|(kind, ..)| *kind == self).and_then(|(.., name)| *name)
    }
}

impl FromStr for SaveType {
    type Err = String;

    fn from_str(text: &str) -> Result<SaveType, String> {
        named(&SaveType::ALL, text, "the type of a save")
    }
}

/// The four colours for a Game Boy that has only shades of grey, from white to black.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette([[u8; 3]; 4]);

impl FromStr for Palette {
    type Err = String;

    fn from_str(text: &str) -> Result<Palette, String> {
        let colour = |text: &str| {
            let digits = text.trim().trim_start_matches('#');
            let number = u32::from_str_radix(digits, 16)
                .ok()
                .filter(|_| digits.len() == 6 && !digits.starts_with('+'))?;
            Some([(number >> 16) as u8, (number >> 8) as u8, number as u8])
        };
        let colours: Option<Vec<_>> = text.split(',').map(colour).collect();
        let colours = colours.and_then(|colours| colours.try_into().ok());
        colours.map(Palette).ok_or_else(|| {
            "a palette is four colours from white to black, such as e0f8d0,88c070,346856,081820".to_owned()
        })
    }
}

impl fmt::Display for Palette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colours = self.0.map(|[red, green, blue]| format!("{red:02x}{green:02x}{blue:02x}"));
        f.write_str(&colours.join(","))
    }
}

impl Palette {
    /// The colours for the background and for both palettes of objects. All three are the same.
    fn for_mgba(self) -> [u32; PALETTE] {
        std::array::from_fn(|index| {
            let [red, green, blue] = self.0[index % self.0.len()].map(u32::from);
            red << 16 | green << 8 | blue
        })
    }
}

/// The settings of a core's console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// The file of the BIOS. Without a file, libmgba's replacement for the BIOS starts the game at once.
    pub bios: Option<PathBuf>,
    /// The model of a Game Boy. With `None`, the ROM determines it.
    pub gb_model: Option<GbModel>,
    /// Whether the pictures of a Super Game Boy have a border.
    pub borders: bool,
    /// The four colours for a Game Boy that has only shades of grey.
    pub palette: Option<Palette>,
    /// The save memory of the GBA game that the core is opened with, and of other games with the same code in their
    /// headers.
    pub save_type: SaveType,
}

impl Default for Hardware {
    fn default() -> Hardware {
        Hardware { bios: None, gb_model: None, borders: true, palette: None, save_type: SaveType::Auto }
    }
}

impl Hardware {
    /// These settings for a game of the other console, such as a GBA game after a Game Boy game: with the BIOS of that
    /// console, if there is one, and without the type of the save, which
    /// [`Core::adopt_save_type`](crate::Core::adopt_save_type) sets.
    pub fn for_other_game(&self, bios: Option<PathBuf>) -> Hardware {
        Hardware { bios, save_type: SaveType::Auto, ..self.clone() }
    }

    /// The settings in the form that the shim needs.
    pub(crate) fn for_shim(&self) -> Result<ConsoleSetup, Error> {
        let bios = match &self.bios {
            None => None,
            Some(path) => Some(read_limited(path, MAX_BIOS)?.ok_or_else(|| self.not_a_bios())?),
        };
        Ok(ConsoleSetup {
            bios,
            model: self.gb_model.and_then(GbModel::for_mgba),
            borders: self.borders,
            palette: self.palette.map(Palette::for_mgba),
            save_type: self.save_type.for_mgba(),
        })
    }

    /// The error for a file that is not a BIOS of the console.
    pub(crate) fn not_a_bios(&self) -> Error {
        Error::NotABios { path: self.bios.clone().unwrap_or_default() }
    }
}
