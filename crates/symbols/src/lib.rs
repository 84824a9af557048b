//! Names for addresses: a request can say `score` where it could give an address.
//!
//! - [`SymbolFiles`]: the symbol files of one emulator, each with the game that it belongs to;
//! - [`Symbols`]: the names for one game;
//! - [`Game`]: identifies a game;
//! - `sym`: reads the symbol files of assemblers and debuggers (no$gba, RGBDS, WLA DX);
//! - `link_map`: reads the link map of GNU ld;
//! - `memory_map`: reads memory maps such as the one of the demo game.

mod files;
mod game;
mod link_map;
mod memory_map;
mod sym;
mod table;

pub use files::SymbolFiles;
pub use game::Game;
pub use table::{Entry, Location, SymbolError, Symbols};
