use crate::Code;

/// The size of a number in memory, and whether it has a sign. All are little-endian, as on the consoles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "openapi", derive(serde::Deserialize, serde::Serialize, utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", serde(rename_all = "lowercase"), schema(as = NumberType))]
pub enum Type {
    /// 8 bits, unsigned.
    U8,
    /// 16 bits, unsigned.
    U16,
    /// 32 bits, unsigned.
    U32,
    /// 8 bits, signed.
    I8,
    /// 16 bits, signed.
    I16,
    /// 32 bits, signed.
    I32,
}

impl Type {
    /// All types, in the order of their codes in [`Code::encode`].
    pub const ALL: [Type; 6] = [Type::U8, Type::U16, Type::U32, Type::I8, Type::I16, Type::I32];

    /// Its name, such as `u16`.
    pub fn name(self) -> &'static str {
        match self {
            Type::U8 => "u8",
            Type::U16 => "u16",
            Type::U32 => "u32",
            Type::I8 => "i8",
            Type::I16 => "i16",
            Type::I32 => "i32",
        }
    }

    /// The type with this name.
    pub fn named(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its size in bytes.
    pub fn size(self) -> u16 {
        match self {
            Type::U8 | Type::I8 => 1,
            Type::U16 | Type::I16 => 2,
            Type::U32 | Type::I32 => 4,
        }
    }

    /// Its smallest and its largest number.
    pub fn range(self) -> (i64, i64) {
        match self {
            Type::U8 => (0, u8::MAX.into()),
            Type::U16 => (0, u16::MAX.into()),
            Type::U32 => (0, u32::MAX.into()),
            Type::I8 => (i8::MIN.into(), i8::MAX.into()),
            Type::I16 => (i16::MIN.into(), i16::MAX.into()),
            Type::I32 => (i32::MIN.into(), i32::MAX.into()),
        }
    }

    /// The number at the start of `bytes`. Missing bytes count as 0.
    pub fn read(self, bytes: &[u8]) -> i64 {
        let mut four = [0; 4];
        for (to, from) in four.iter_mut().zip(bytes).take(self.size().into()) {
            *to = *from;
        }
        let unsigned = u32::from_le_bytes(four);
        match self {
            Type::U8 | Type::U16 | Type::U32 => unsigned.into(),
            Type::I8 => (unsigned as i8).into(),
            Type::I16 => (unsigned as i16).into(),
            Type::I32 => (unsigned as i32).into(),
        }
    }
}

/// Bytes of memory, on the bus or in a memory domain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Range {
    /// The memory domain, such as `wram`; `None` is the bus.
    pub domain: Option<String>,
    /// Bus address, or offset in the domain, of the first byte.
    pub address: u32,
    /// Number of bytes.
    pub length: u16,
}

/// A number in memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The memory domain, such as `wram`; `None` is the bus.
    pub domain: Option<String>,
    /// Bus address, or offset in the domain.
    pub address: u32,
    /// The type of the number there.
    pub kind: Type,
}

impl Place {
    /// The bytes of the number.
    pub fn range(&self) -> Range {
        Range { domain: self.domain.clone(), address: self.address, length: self.kind.size() }
    }
}

/// The meaning of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// Its bus address.
    pub address: u32,
    /// The type of the numbers there, if the symbol file names one.
    pub kind: Option<Type>,
    /// The number of elements of an array; 1 for a single number.
    pub count: u32,
}

/// How a number in memory represents a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The number is the value.
    #[default]
    Plain,
    /// Some bits of the number are the value.
    Bits {
        /// The index of the lowest of these bits, from 0.
        first: u8,
        /// The number of these bits.
        count: u8,
    },
    /// Each half of a byte is a decimal digit.
    Bcd,
    /// The number is the value multiplied by this factor.
    Fixed(u32),
    /// The number has the bits of a 32-bit floating point number.
    Float,
}

/// A name whose address is computed: an element of an array of structures, a field of a structure, or memory that a
/// pointer leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// The address if all indices are 0.
    pub base: Code,
    /// For each index, the number of elements and the size of an element in bytes.
    pub dimensions: Vec<(u32, u32)>,
    /// The type of the number there; `None` for a whole structure.
    pub kind: Option<Type>,
    /// How the number represents a value.
    pub format: Format,
}

/// Looks up names, for example in symbol files.
pub trait Names {
    /// The meaning of `name`.
    ///
    /// # Errors
    /// A sentence that says why the name is unknown, such as `no symbol is called "scroe"; did you mean "score"?`
    fn find(&self, name: &str) -> Result<Symbol, String>;

    /// Encodes a text as the game stores it in memory. By default, the encoding is UTF-8.
    ///
    /// # Errors
    /// If a character cannot be written. The error names it.
    fn text(&self, text: &str) -> Result<Vec<u8>, String> {
        Ok(text.as_bytes().to_vec())
    }

    /// The variable of a path such as `party[].hp`, which has `[]` in place of each index.
    fn variable(&self, path: &str) -> Option<&Variable> {
        let _ = path;
        None
    }
}

/// An implementation of [`Names`] without any names.
pub struct NoNames;

impl Names for NoNames {
    fn find(&self, name: &str) -> Result<Symbol, String> {
        Err(format!("no symbol is called `{name}`: no symbol file is loaded"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_sign() {
        let bytes = [0xFE, 0xFF, 0xFF, 0xFF, 0x12];
        let read = Type::ALL.map(|kind| kind.read(&bytes));
        assert_eq!(read, [0xFE, 0xFFFE, 0xFFFF_FFFE, -2, -2, -2]);
        assert_eq!(Type::U32.read(&[1]), 1);
        for kind in Type::ALL {
            let (least, greatest) = kind.range();
            assert_eq!(greatest - least, (1i64 << (8 * kind.size())) - 1, "{}", kind.name());
        }
    }
}
