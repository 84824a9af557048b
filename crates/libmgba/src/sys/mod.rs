//! The only module of this crate with `unsafe`: the declarations of the shim, and safe functions that call it.
//!
//! `handle` owns a core of the shim. `calls` has the methods of `Core` that each make a single call to the shim.

mod calls;
mod console;
mod ffi;
mod handle;
mod pixels;
mod status;

pub use ffi::{Block, CheatProblem, PALETTE};
pub use handle::{
    Canvas, CheatCodes, ConsoleSetup, Handle, PICTURE, RomFile, host_time, release_memory, version_string,
};
pub use pixels::drop_fourth_bytes;
pub use status::Status;
