use framewire_protocol::hex::parse_hex_digits;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use sha2::{Digest, Sha256};

/// Identifies a ROM by the SHA-256 of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RomHash([u8; 32]);

/// The error for a ROM that is not the one that the game file names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is another ROM: its SHA-256 is {found}, but the game file names {expected}; use the ROM that the game file is for, or change `sha256` in it"
)]
pub struct WrongRom {
    found: String,
    expected: String,
}

impl RomHash {
    /// The identity of these bytes.
    pub fn of(bytes: &[u8]) -> RomHash {
        RomHash(Sha256::digest(bytes).into())
    }

    /// Checks that these bytes are this ROM.
    ///
    /// # Errors
    /// If they are another ROM.
    pub fn check(&self, bytes: &[u8]) -> Result<(), WrongRom> {
        let found = RomHash::of(bytes);
        if found == *self {
            return Ok(());
        }
        Err(WrongRom { found: found.to_string(), expected: self.to_string() })
    }
}

/// Writes the hash as 64 hexadecimal digits.
impl std::fmt::Display for RomHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<'de> Deserialize<'de> for RomHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RomHash, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom(format!("{text:?} is not a SHA-256; use its 64 hexadecimal digits"));
        let bytes = parse_hex_digits(&text).and_then(|bytes| bytes.try_into().ok());
        bytes.map(RomHash).ok_or_else(wrong)
    }
}
