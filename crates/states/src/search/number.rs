use serde::{Deserialize, Serialize};

/// The type of the numbers looked for. All are little-endian, as both consoles have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Number {
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
}

impl Number {
    /// All of them.
    pub const ALL: [Number; 6] = [Number::U8, Number::U16, Number::U32, Number::I8, Number::I16, Number::I32];

    /// Its name, such as `u16`.
    pub fn name(self) -> &'static str {
        match self {
            Number::U8 => "u8",
            Number::U16 => "u16",
            Number::U32 => "u32",
            Number::I8 => "i8",
            Number::I16 => "i16",
            Number::I32 => "i32",
        }
    }

    /// Its bytes.
    pub fn width(self) -> usize {
        match self {
            Number::U8 | Number::I8 => 1,
            Number::U16 | Number::I16 => 2,
            Number::U32 | Number::I32 => 4,
        }
    }

    /// The least and the greatest.
    pub fn range(self) -> (i64, i64) {
        match self {
            Number::U8 => (0, u8::MAX.into()),
            Number::U16 => (0, u16::MAX.into()),
            Number::U32 => (0, u32::MAX.into()),
            Number::I8 => (i8::MIN.into(), i8::MAX.into()),
            Number::I16 => (i16::MIN.into(), i16::MAX.into()),
            Number::I32 => (i32::MIN.into(), i32::MAX.into()),
        }
    }

    /// The number at the beginning of `bytes`, which has at least its width.
    pub(super) fn at(self, bytes: &[u8]) -> i64 {
        let mut word = [0; 4];
        word[..self.width()].copy_from_slice(&bytes[..self.width()]);
        let word = u32::from_le_bytes(word);
        match self {
            Number::U8 | Number::U16 | Number::U32 => word.into(),
            Number::I8 => (word as u8 as i8).into(),
            Number::I16 => (word as u16 as i16).into(),
            Number::I32 => (word as i32).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_sign() {
        let bytes = [0xFE, 0xFF, 0xFF, 0xFF, 0x12];
        let read = Number::ALL.map(|number| number.at(&bytes));
        assert_eq!(read, [0xFE, 0xFFFE, 0xFFFF_FFFE, -2, -2, -2]);
        for number in Number::ALL {
            let (least, greatest) = number.range();
            assert_eq!(greatest - least, (1i64 << (8 * number.width())) - 1, "{}", number.name());
        }
    }
}
