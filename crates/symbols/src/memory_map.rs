//! Memory maps like the demo game's (`rom/memory-map.toml`): fields with types and descriptions.

use framewire_expression::{Symbol, Type};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::Entry;

#[derive(Deserialize)]
struct Map {
    field: Vec<Field>,
    rom: Option<Rom>,
}

/// The game that a memory map names. The game must match every field that is given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Rom {
    pub(crate) title: Option<String>,
    /// With the console before it, as mGBA 0.10 reports it, or without.
    pub(crate) code: Option<String>,
    /// The CRC-32 of the ROM.
    pub(crate) checksum: Option<u32>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    address: u32,
    #[serde(rename = "type")]
    kind: Elements,
    doc: Option<String>,
}

/// `T` or `T[n]`.
struct Elements {
    kind: Type,
    count: u32,
}

impl<'de> Deserialize<'de> for Elements {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Elements, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (name, count) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((name, count)) => (name, count.parse().ok().filter(|count| *count > 0)),
            None => (text.as_str(), Some(1)),
        };
        let kind = Type::named(name).zip(count).map(|(kind, count)| Elements { kind, count });
        kind.ok_or_else(|| {
            D::Error::custom(format!("{text:?} is not a type; use u8, u16, u32, i8, i16, i32 or T[n]"))
        })
    }
}

/// A memory map.
pub(crate) struct MemoryMap {
    /// The fields by name.
    pub(crate) fields: Vec<(String, Entry)>,
    /// The game that it names, if any.
    pub(crate) rom: Option<Rom>,
}

/// Reads a memory map.
pub(crate) fn read(text: &str) -> Result<MemoryMap, Box<toml::de::Error>> {
    let map: Map = toml::from_str(text)?;
    let fields = map.field.into_iter().map(|Field { name, address, kind: Elements { kind, count }, doc }| {
        (name, Entry { symbol: Symbol { address, kind: Some(kind), count }, doc })
    });
    let named = |rom: &Rom| rom.title.is_some() || rom.code.is_some() || rom.checksum.is_some();
    Ok(MemoryMap { fields: fields.collect(), rom: map.rom.filter(named) })
}
