//! The table of operations. Each operation is defined only in this table, in `table.rs`.
//!
//! From the table, a macro makes the [`Op`] type, its binary codec, its marker text if mGBA-http has a message for the
//! operation, and [`OPS`]. From [`OPS`], the server makes the OpenAPI document, and `make generate` makes the tables of
//! the script and of the LuaJIT library, and docs/operations.md.

mod kinds;
mod table;

pub use kinds::{ArgInfo, ArgKind, Effect, OpInfo, ResultKind};
pub use table::{OPS, Op, OpKind};

/// An upper limit for the size of a savestate with its picture and the game's save, in bytes.
const LARGEST_STATE: usize = 1024 * 1024;
/// An upper limit for the size of a list of cheats, in bytes.
const LARGEST_CHEATS: usize = 2 * 1024 * 1024;
/// An upper limit for the size of a screenshot, in bytes.
const LARGEST_SCREENSHOT: usize = 128 * 1024;

impl Op {
    /// The largest number of bytes that its result can have; 0 if the result is always small.
    pub fn largest_result(&self) -> usize {
        match self {
            Op::ReadRange { length, .. } | Op::DomainReadRange { length, .. } => *length as usize,
            Op::ReadAt { length, .. } => *length as usize + size_of::<u32>(),
            Op::SaveState { .. } => LARGEST_STATE,
            Op::Screenshot {} => LARGEST_SCREENSHOT,
            Op::Cheats {} => LARGEST_CHEATS,
            Op::Echo { data } => data.len(),
            _ => 0,
        }
    }
}
