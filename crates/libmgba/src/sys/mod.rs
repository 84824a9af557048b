//! The one place with `unsafe`: the shim's declarations and a handle that makes
//! them safe to call.

mod console;
mod ffi;
mod handle;
mod log;
mod status;

pub use ffi::Block;
pub use handle::{Canvas, Handle, PICTURE, host_time, release_memory, version_string};
pub use log::set_log;
pub use status::Status;
