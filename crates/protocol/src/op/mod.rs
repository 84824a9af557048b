//! The table of operations in `table.rs`, the one place where an operation is defined.
//!
//! From it come the [`Op`] type, its binary codec, its marker text where mGBA-http has a message for it, and [`OPS`]. From
//! [`OPS`] come the OpenAPI document and, by `make generate`, the tables of the two Lua sides and docs/operations.md.

mod kinds;
mod table;

pub use kinds::{ArgInfo, ArgKind, Effect, OpInfo, ResultKind};
pub use table::{OPS, Op};

use crate::wire::{DecodeError, Reader, Wire};

impl Op {
    /// Bytes of its binary form.
    pub fn size(&self) -> usize {
        1 + self.args_size()
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
