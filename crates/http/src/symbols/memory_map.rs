//! Memory maps like the demo game's (`rom/memory-map.toml`): fields with types and a word on each.

use framewire_expression::{Symbol, Type};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::Entry;

#[derive(Deserialize)]
struct Map {
    field: Vec<Field>,
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
            D::Error::custom(format!("{text:?} is no type: u8, u16, u32, i8, i16, i32 and T[n] are"))
        })
    }
}

/// The fields of a map by name.
pub(super) fn fields(text: &str) -> Result<impl Iterator<Item = (String, Entry)>, Box<toml::de::Error>> {
    let map: Map = toml::from_str(text)?;
    Ok(map.field.into_iter().map(|Field { name, address, kind: Elements { kind, count }, doc }| {
        (name, Entry { symbol: Symbol { address, kind: Some(kind), count }, doc })
    }))
}
