//! The types in the table of operations (`OPS`): of its rows, their arguments and results.

use crate::hex::hex_pairs;
#[cfg(doc)]
use crate::value::Value;
use crate::wire::Wire;

/// Whether doing an operation twice differs from doing it once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The operation only reads, so it may be repeated freely.
    Read,
    /// The operation changes the emulator, its files or its log, so it must never be performed twice.
    Change,
}

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgKind {
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// True or false, one byte.
    Bool,
    /// The length, and then UTF-8 text.
    Text,
    /// The length, and then bytes.
    Bytes,
}

impl ArgKind {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            ArgKind::U8 => "u8",
            ArgKind::U16 => "u16",
            ArgKind::U32 => "u32",
            ArgKind::I32 => "i32",
            ArgKind::Bool => "bool",
            ArgKind::Text => "text",
            ArgKind::Bytes => "bytes",
        }
    }

    /// The format of Lua's `string.pack` for it, little-endian.
    pub fn pack_format(self) -> &'static str {
        match self {
            ArgKind::U8 | ArgKind::Bool => "I1",
            ArgKind::U16 => "I2",
            ArgKind::U32 => "I4",
            ArgKind::I32 => "i4",
            ArgKind::Text | ArgKind::Bytes => "s4",
        }
    }
}

/// The type of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultKind {
    /// [`Value::None`].
    None,
    /// [`Value::Bool`].
    Bool,
    /// [`Value::Int`].
    Int,
    /// [`Value::Text`].
    Text,
    /// [`Value::Bytes`].
    Bytes,
    /// [`Value::List`] of text.
    Names,
}

impl ResultKind {
    /// Its name in documents, in `GET /v1/operations` and in the script's table.
    pub fn name(self) -> &'static str {
        match self {
            ResultKind::None => "none",
            ResultKind::Bool => "bool",
            ResultKind::Int => "int",
            ResultKind::Text => "text",
            ResultKind::Bytes => "bytes",
            ResultKind::Names => "names",
        }
    }
}

/// An argument in the table.
#[derive(Debug, Clone, Copy)]
pub struct ArgInfo {
    /// Its name in documents and JSON.
    pub name: &'static str,
    /// Its type.
    pub kind: ArgKind,
    /// The smallest and the largest number that is accepted; `None` if the argument is not a number.
    pub range: Option<(i64, i64)>,
    /// What it means, with its unit.
    pub doc: &'static str,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct OpInfo {
    /// The byte that names it on a binary connection.
    pub code: u8,
    /// Its name in documents and JSON.
    pub name: &'static str,
    /// Whether it changes anything.
    pub effect: Effect,
    /// Its arguments in order.
    pub args: &'static [ArgInfo],
    /// The type of its result.
    pub result: ResultKind,
    /// The key of mGBA-http's message with the same arguments in the same order, if there is such a message.
    pub marker: Option<&'static str>,
    /// What it does.
    pub doc: &'static str,
}

/// A Rust type that an argument can have.
pub(super) trait Argument: Wire {
    const KIND: ArgKind;
    /// The smallest and the largest number of the type; `None` if its values are not numbers.
    const RANGE: Option<(i64, i64)> = None;
    /// The size of its binary form in bytes.
    fn size(&self) -> usize;
    /// Its form in a text message of mGBA-http (see `marker`).
    fn to_marker(&self) -> Vec<u8>;
    /// The argument, if it is text.
    fn text_mut(&mut self) -> Option<&mut String> {
        None
    }
}

macro_rules! numbers {
    ($($ty:ty = $kind:ident),* $(,)?) => {$(
        impl Argument for $ty {
            const KIND: ArgKind = ArgKind::$kind;
            const RANGE: Option<(i64, i64)> = Some((<$ty>::MIN as i64, <$ty>::MAX as i64));
            fn size(&self) -> usize {
                size_of_val(self)
            }
            fn to_marker(&self) -> Vec<u8> {
                self.to_string().into_bytes()
            }
        }
    )*};
}
numbers!(u8 = U8, u16 = U16, u32 = U32, i32 = I32);

impl Argument for bool {
    const KIND: ArgKind = ArgKind::Bool;
    fn size(&self) -> usize {
        1
    }
    fn to_marker(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }
}

impl Argument for String {
    const KIND: ArgKind = ArgKind::Text;
    fn size(&self) -> usize {
        4 + self.len()
    }
    fn to_marker(&self) -> Vec<u8> {
        self.clone().into_bytes()
    }
    fn text_mut(&mut self) -> Option<&mut String> {
        Some(self)
    }
}

impl Argument for Vec<u8> {
    const KIND: ArgKind = ArgKind::Bytes;
    fn size(&self) -> usize {
        4 + self.len()
    }
    fn to_marker(&self) -> Vec<u8> {
        format!("[{}]", hex_pairs(self)).into_bytes()
    }
}
