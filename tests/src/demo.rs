//! The documented addresses and lamps of the demo game, from `rom/memory-map.toml`. A lamp is a mark in the picture
//! that shows whether a key is held.

use std::sync::LazyLock;

use toml::{Table, Value};

use crate::paths;

static MAP: LazyLock<Table> = LazyLock::new(|| {
    let path = paths::root().join("rom/memory-map.toml");
    let text = std::fs::read_to_string(path).expect("the map is part of the checkout");
    text.parse().expect("the map is TOML")
});

/// The position of a key's lamp in the picture, and its colours as `#rrggbb`.
#[derive(Debug, Clone)]
pub struct Lamp {
    /// The column of the lamp's middle, in pixels from the left.
    pub x: usize,
    /// The row of the lamp's middle, in pixels from the top.
    pub y: usize,
    /// The colour while the key is held.
    pub lit: String,
    /// The colour while the key is not held.
    pub unlit: String,
}

/// The address of a field in the game's memory, such as `scratch`.
///
/// # Panics
///
/// If the map has no such field.
#[must_use]
pub fn field(name: &str) -> u32 {
    number(&entry("field", "name", name)["address"])
}

/// The lamp of a key, such as `A`.
///
/// # Panics
///
/// If the map has no such lamp.
#[must_use]
pub fn lamp(key: &str) -> Lamp {
    let lamp = entry("lamp", "key", key);
    let text = |name: &str| lamp[name].as_str().expect("a colour is text").to_owned();
    Lamp { x: number(&lamp["x"]), y: number(&lamp["y"]), lit: text("lit"), unlit: text("unlit") }
}

fn entry(table: &str, by: &str, name: &str) -> &'static Value {
    let entries = MAP[table].as_array().expect("an array of tables");
    let found = entries.iter().find(|entry| entry[by].as_str() == Some(name));
    found.unwrap_or_else(|| panic!("the demo game's map has no {table} {name:?}"))
}

fn number<T: TryFrom<i64>>(value: &Value) -> T {
    let number = value.as_integer().and_then(|number| T::try_from(number).ok());
    number.expect("a number in its range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_lamps_are_found() {
        assert_eq!(field("magic"), 0x0200_0000);
        assert!(lamp("L").x < 240 && lamp("L").lit.starts_with('#'));
    }
}
