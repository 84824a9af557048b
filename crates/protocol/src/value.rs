//! The result of an operation. It contains its own type, so its receiver needs no table of types to read it.

use crate::error::OpError;
use crate::wire::{DecodeError, Reader, Wire, put_bytes};

/// The result of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Value {
    /// No result.
    #[default]
    None,
    /// Yes or no.
    Bool(bool),
    /// A whole number. Registers are signed; everything else is unsigned.
    Int(i64),
    /// Text, UTF-8.
    Text(String),
    /// Bytes: memory, a savestate, a picture.
    Bytes(Vec<u8>),
    /// Several values in order. Lists do not nest.
    List(Vec<Value>),
}

/// The largest number of items that an encoded list can have. Any further items are left out.
const MAX_LIST: usize = u16::MAX as usize;

mod tag {
    pub const NONE: u8 = 0;
    pub const FALSE: u8 = 1;
    pub const TRUE: u8 = 2;
    pub const INT: u8 = 3;
    pub const TEXT: u8 = 4;
    pub const BYTES: u8 = 5;
    pub const LIST: u8 = 6;
}

impl Value {
    fn decode_at(reader: &mut Reader<'_>, inside_list: bool) -> Result<Self, DecodeError> {
        Ok(match reader.get::<u8>()? {
            tag::NONE => Value::None,
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::INT => Value::Int(reader.get()?),
            tag::TEXT => Value::Text(reader.get()?),
            tag::BYTES => Value::Bytes(reader.get()?),
            tag::LIST if !inside_list => {
                let count = reader.get::<u16>()?;
                let items = (0..count).map(|_| Value::decode_at(reader, true)).collect::<Result<_, _>>()?;
                Value::List(items)
            }
            value => return Err(DecodeError::Unknown { what: "value tag", value }),
        })
    }
}

/// Implements `TryFrom<Value>` for the type that a kind of value contains.
macro_rules! taken {
    ($($kind:ident $type:ty),*) => {$(
        impl TryFrom<Value> for $type {
            type Error = OpError;

            fn try_from(value: Value) -> Result<$type, OpError> {
                match value {
                    Value::$kind(held) => Ok(held),
                    _ => Err(OpError::unexpected_reply()),
                }
            }
        }
    )*};
}

taken!(Bool bool, Int i64, Text String, Bytes Vec<u8>, List Vec<Value>);

impl Wire for Value {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::None => out.push(tag::NONE),
            Value::Bool(false) => out.push(tag::FALSE),
            Value::Bool(true) => out.push(tag::TRUE),
            Value::Int(number) => {
                out.push(tag::INT);
                number.encode(out);
            }
            Value::Text(text) => {
                out.push(tag::TEXT);
                put_bytes(out, text.as_bytes());
            }
            Value::Bytes(bytes) => {
                out.push(tag::BYTES);
                put_bytes(out, bytes);
            }
            Value::List(items) => {
                let count = items.len().min(MAX_LIST);
                out.push(tag::LIST);
                (count as u16).encode(out);
                items[..count].iter().for_each(|item| item.encode(out));
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Value::decode_at(reader, false)
    }
}
