//! `framewire.lua`, the one file that a user loads into mGBA.
//!
//! The build script joins it from the parts in `lua/src`.

/// The text of the script.
pub const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/framewire.lua"));

/// The file that the build wrote it to, for tests that have an emulator load it.
pub const PATH: &str = concat!(env!("OUT_DIR"), "/framewire.lua");

/// The part of the script that runs Lua code for a client, for embedded cores: a chunk that returns a function from the code to the
/// reply as JSON, or to nil and what is wrong with the code.
pub const EVALUATOR: &str = include_str!("../../../lua/src/evaluate.lua");
