//! The ten buttons, in the order of the GBA's KEYINPUT register (GBATEK, "GBA Keypad Input": 0x04000130).

use std::fmt;
use std::str::FromStr;

/// A button. Its number is its bit in KEYINPUT and in mGBA's key masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Key {
    A = 0,
    B = 1,
    Select = 2,
    Start = 3,
    Right = 4,
    Left = 5,
    Up = 6,
    Down = 7,
    R = 8,
    L = 9,
}

impl Key {
    /// All keys by number.
    pub const ALL: [Key; 10] =
        [Key::A, Key::B, Key::Select, Key::Start, Key::Right, Key::Left, Key::Up, Key::Down, Key::R, Key::L];

    /// The key with this number, 0 to 9.
    pub fn from_number(number: u8) -> Option<Key> {
        Key::ALL.get(usize::from(number)).copied()
    }

    /// Its name as mGBA-http writes it.
    pub fn name(self) -> &'static str {
        match self {
            Key::A => "A",
            Key::B => "B",
            Key::Select => "Select",
            Key::Start => "Start",
            Key::Right => "Right",
            Key::Left => "Left",
            Key::Up => "Up",
            Key::Down => "Down",
            Key::R => "R",
            Key::L => "L",
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no button has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown button {0:?}; buttons are A, B, Select, Start, Right, Left, Up, Down, R and L, with exactly these letters"
)]
pub struct UnknownKey(pub String);

impl FromStr for Key {
    type Err = UnknownKey;

    /// Reads a name exactly as [`Key::name`] writes it. Other letter cases are refused, as in mGBA-http.
    fn from_str(name: &str) -> Result<Self, UnknownKey> {
        Key::ALL.into_iter().find(|key| key.name() == name).ok_or_else(|| UnknownKey(name.to_owned()))
    }
}

/// A set of keys as a mask: bit N is key number N.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Keys(u16);

impl Keys {
    /// The mask with every key held.
    pub const MASK: u16 = 0x3FF;

    /// The set of keys with this mask; `None` if the mask has a bit above the tenth.
    pub fn from_mask(mask: u16) -> Option<Keys> {
        if mask & !Keys::MASK == 0 { Some(Keys(mask)) } else { None }
    }

    /// Its mask.
    pub fn mask(self) -> u16 {
        self.0
    }

    /// The keys of the set in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = Key> {
        Key::ALL.into_iter().filter(move |key| self.0 & (1 << *key as u8) != 0)
    }

    /// The names of its keys, joined by `separator`.
    pub fn names(self, separator: &str) -> String {
        self.iter().map(Key::name).collect::<Vec<_>>().join(separator)
    }
}

impl From<Key> for Keys {
    fn from(key: Key) -> Keys {
        Keys(1 << key as u8)
    }
}

impl FromIterator<Key> for Keys {
    fn from_iter<I: IntoIterator<Item = Key>>(keys: I) -> Keys {
        keys.into_iter().fold(Keys::default(), |set, key| Keys(set.0 | Keys::from(key).0))
    }
}
