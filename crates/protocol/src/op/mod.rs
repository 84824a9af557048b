//! The table of operations: each is defined here once, in `table.rs`, and in one place of `lua/src/operations.lua`.
//!
//! The table makes the [`Op`] type, its binary codec, its marker text where mGBA-http has a message for it, and
//! [`OPS`], from which documents are generated and against which routes and the Lua script are tested.

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
