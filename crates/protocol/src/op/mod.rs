//! The table of operations in `table.rs`, the one place where an operation is defined.
//!
//! From it come the [`Op`] type, its binary codec, its marker text where mGBA-http has a message for it, and [`OPS`]. From
//! [`OPS`] come the OpenAPI document and, by `make generate`, the tables of the two Lua sides and docs/operations.md.

mod kinds;
mod table;

pub use kinds::{ArgInfo, ArgKind, Effect, OpInfo, ResultKind};
pub use table::{OPS, Op, OpKind};

use crate::wire::{DecodeError, Reader, Wire};

/// More than the bytes of a savestate with its picture and the game's save.
const LARGEST_STATE: usize = 1024 * 1024;
/// More than the bytes of a list of cheats.
const LARGEST_CHEATS: usize = 2 * 1024 * 1024;
/// More than the bytes of a screenshot.
const LARGEST_SCREENSHOT: usize = 128 * 1024;

impl Op {
    /// Bytes of its binary form.
    pub fn size(&self) -> usize {
        1 + self.args_size()
    }

    /// The largest number of bytes that its result may have; 0 if that is only a few.
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

impl Wire for Op {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.code());
        self.encode_args(out);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let code = reader.get::<u8>()?;
        Op::decode_args(code, reader)
    }
}
