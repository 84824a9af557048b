//! Little-endian primitives over a byte buffer.
//!
//! Integers have a fixed width. The length of text or bytes precedes them, as a `u32`. For Lua's `string.pack`, a `u32`
//! is `<I4`, and text or bytes with their length are `<s4`.

/// Why bytes could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end before the item does.
    #[error("the bytes end inside {0}")]
    Truncated(&'static str),
    /// Text that is not UTF-8.
    #[error("text is not UTF-8")]
    NotText,
    /// A tag, code or kind that does not exist in this version of the protocol.
    #[error("unknown {what} {value:#04x}")]
    Unknown {
        /// What kind of tag it was.
        what: &'static str,
        /// The byte found.
        value: u8,
    },
    /// Bytes left over after a complete item.
    #[error("{0} bytes too many")]
    Trailing(usize),
    /// Something with more items or bytes than the protocol allows, such as a batch.
    #[error("{what} larger than {limit}")]
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// The largest that is accepted.
        limit: usize,
    },
}

/// A cursor over bytes that were received.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts reading at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// Number of bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Takes the next `count` bytes. If there are fewer, the error names `what`: the item that they belong to.
    pub fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Truncated(what))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads one item.
    pub fn get<T: Wire>(&mut self) -> Result<T, DecodeError> {
        T::decode(self)
    }

    /// Reads items until no bytes are left.
    pub(crate) fn get_all<T: Wire>(&mut self) -> Result<Vec<T>, DecodeError> {
        let mut items = Vec::new();
        while self.remaining() > 0 {
            items.push(self.get()?);
        }
        Ok(items)
    }

    /// Fails if anything is left over.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing(left)),
        }
    }
}

/// An item that has a binary form.
pub trait Wire: Sized {
    /// Appends the binary form to `out`.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads the binary form.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
    /// The binary form.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }
}

macro_rules! integers {
    ($($ty:ident)*) => {$(
        impl Wire for $ty {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                const WIDTH: usize = size_of::<$ty>();
                let bytes = reader.take(WIDTH, stringify!($ty))?;
                let mut array = [0; WIDTH];
                array.copy_from_slice(bytes);
                Ok($ty::from_le_bytes(array))
            }
        }
    )*};
}
integers!(u8 u16 u32 i32 i64);

impl Wire for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.get::<u8>()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(DecodeError::Unknown { what: "boolean", value }),
        }
    }
}

/// Appends the length of `bytes`, then the bytes. The length always fits a `u32`, because a frame of the protocol is
/// far smaller.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    (bytes.len() as u32).encode(out);
    out.extend_from_slice(bytes);
}

impl Wire for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, self);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = reader.get::<u32>()? as usize;
        Ok(reader.take(length, "bytes")?.to_vec())
    }
}

impl Wire for String {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.as_bytes());
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        String::from_utf8(reader.get()?).map_err(|_| DecodeError::NotText)
    }
}
