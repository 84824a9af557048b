//! `framewire.lua`, the one file that a user loads into mGBA.
//!
//! The build script makes it by joining the parts in `lua/src`.

/// The text of the script.
pub const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/framewire.lua"));

/// The path of the script in the build's output folder, for tests and measurements in which an emulator loads it.
pub const PATH: &str = concat!(env!("OUT_DIR"), "/framewire.lua");

/// The part of the script that runs Lua code for a client; embedded cores use it too. It is a Lua chunk that returns a
/// function. The function takes the client's code, and returns the reply as JSON. If the code cannot be compiled, it
/// returns nil and the reason.
pub const EVALUATOR: &str = include_str!("../../../lua/src/evaluate.lua");
