//! Names for addresses: a request can use a name, such as `score`, instead of an address.
//!
//! - [`SymbolFiles`]: the symbol files of one emulator, each with the game that it belongs to;
//! - [`Symbols`]: the names for one game;
//! - [`Game`]: identifies a game;
//! - `sym`: reads the symbol files of assemblers and debuggers (no$gba, RGBDS, WLA DX);
//! - `link_map`: reads the link map of GNU ld;
//! - `memory_map`: reads memory maps such as the one of the demo game;
//! - [`TextTable`]: the characters of a game's texts;
//! - `structures`: the structures and pointers that memory maps describe.

mod files;
mod game;
mod link_map;
mod memory_map;
mod structures;
mod sym;
mod table;
mod text;

pub use files::SymbolFiles;
pub use game::Game;
pub use structures::{FieldType, MapVariable, StructureField};
pub use table::{Entry, Location, SymbolError, Symbols};
pub use text::{TextTable, decode_text};
