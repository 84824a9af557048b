//! Finds the keys of the display's keyboard that type a character.

use std::collections::HashMap;

use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

use crate::{Error, Result};

/// A key, identified by its meaning (an X11 "keysym"), not by its position on the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(u32);

impl Key {
    /// Left Shift.
    pub const SHIFT: Self = Self(0xffe1);
    /// Left Control.
    pub const CONTROL: Self = Self(0xffe3);
    /// Left Alt.
    pub const ALT: Self = Self(0xffe9);
    /// Return.
    pub const RETURN: Self = Self(0xff0d);
    /// Arrow down.
    pub const DOWN: Self = Self(0xff54);

    /// The key for a Latin-1 character. The character's code is also its keysym.
    #[must_use]
    pub const fn of(character: char) -> Self {
        Self(character as u32)
    }
}

/// A position on the keyboard, and whether Shift is needed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stroke {
    /// The number of the key in the X server.
    pub(super) code: u8,
    pub(super) shifted: bool,
}

/// The display's keyboard.
#[derive(Debug)]
pub(super) struct Keyboard {
    strokes: HashMap<Key, Stroke>,
}

impl Keyboard {
    /// Asks the server for its keyboard.
    pub(super) fn read(connection: &RustConnection) -> Result<Self> {
        let (first, last) = (connection.setup().min_keycode, connection.setup().max_keycode);
        let mapping = connection.get_keyboard_mapping(first, last - first + 1)?.reply()?;
        let mut strokes = HashMap::new();
        let width = usize::from(mapping.keysyms_per_keycode).max(1);
        for (code, symbols) in (first..=last).zip(mapping.keysyms.chunks(width)) {
            // The first two columns are a key's symbols without and with Shift.
            for (column, &symbol) in symbols.iter().take(2).enumerate() {
                strokes.entry(Key(symbol)).or_insert(Stroke { code, shifted: column == 1 });
            }
        }
        Ok(Self { strokes })
    }

    /// Returns the position of a key.
    pub(super) fn stroke(&self, key: Key) -> Result<Stroke> {
        let stroke = self.strokes.get(&key).copied();
        stroke.ok_or_else(|| Error::X11(format!("the display's keyboard has no key for keysym {:#x}", key.0)))
    }
}
