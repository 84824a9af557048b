//! Memory maps like the demo game's (`rom/memory-map.toml`): fields with types and descriptions, and structures.

use std::collections::BTreeMap;

use framewire_expression::{Code, Format, Names, Symbol, Variable};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::Entry;
use crate::structures::{FieldType, MapVariable, Structure, Structures, add_paths, size_of};

#[derive(Deserialize)]
struct Map {
    #[serde(default)]
    field: Vec<Field>,
    #[serde(default, rename = "struct")]
    structures: Vec<Structure>,
    rom: Option<Rom>,
}

/// The game that a memory map names. The game must match each of these values that is given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(expecting = "the table [rom] with `title`, `code` or `checksum`")]
pub(crate) struct Rom {
    pub(crate) title: Option<String>,
    /// The game code. It may begin with the console, as in `AGB-XFWE`, which is how mGBA 0.10 reports it.
    pub(crate) code: Option<String>,
    /// The CRC-32 of the ROM.
    pub(crate) checksum: Option<u32>,
}

#[derive(Deserialize)]
#[serde(expecting = "a table [[field]] with `name`, `address` and `type`")]
struct Field {
    name: String,
    address: Address,
    #[serde(rename = "type")]
    kind: FieldType,
    doc: Option<String>,
}

/// An address: a number, or an expression such as `u32[0x03005D8C] + 4`.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "not an address; use a number such as 0x02000044, or an expression such as \"u32[0x03005D8C] + 4\""
)]
enum Address {
    Known(u32),
    Pointer(String),
}

impl<'de> Deserialize<'de> for FieldType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FieldType, D::Error> {
        FieldType::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

pub(crate) struct MemoryMap {
    /// The fields that are plain numbers, or arrays of them, at fixed addresses, by name.
    pub(crate) fields: Vec<(String, Entry)>,
    /// The other fields.
    others: Vec<Field>,
    structures: Structures,
    /// The game that it names, if any.
    pub(crate) rom: Option<Rom>,
}

pub(crate) fn read(text: &str) -> Result<MemoryMap, Box<toml::de::Error>> {
    let map: Map = toml::from_str(text)?;
    let (mut fields, mut others) = (Vec::new(), Vec::new());
    for field in map.field {
        match (&field.address, field.kind.number) {
            (Address::Known(address), Some((kind, Format::Plain))) => {
                let symbol = Symbol { address: *address, kind: Some(kind), count: field.kind.count() };
                fields.push((field.name, Entry { symbol, doc: field.doc }));
            }
            _ => others.push(field),
        }
    }
    let structures = map.structures.into_iter().map(|structure| (structure.name.clone(), structure));
    let structures: Structures = structures.collect();
    structures
        .values()
        .try_for_each(|structure| structure.check(&structures))
        .map_err(|problem| Box::new(toml::de::Error::custom(problem)))?;
    let named = |rom: &Rom| rom.title.is_some() || rom.code.is_some() || rom.checksum.is_some();
    Ok(MemoryMap { fields, others, structures, rom: map.rom.filter(named) })
}

impl MemoryMap {
    /// The fields that are not plain numbers at fixed addresses. Their addresses may be expressions with names from
    /// `names`.
    pub(crate) fn variables(self, names: &dyn Names) -> Result<Variables, Box<toml::de::Error>> {
        let mut all = Variables::default();
        for Field { name, address, kind, doc } in self.others {
            let wrong =
                |problem: String| Box::new(toml::de::Error::custom(format!("the field {name:?}: {problem}")));
            let (base, address, pointer) = match address {
                Address::Known(address) => (Code::constant(address.into()), Some(address), None),
                Address::Pointer(text) => {
                    let (base, _) =
                        Code::parse_address(&text, names).map_err(|error| wrong(error.to_string()))?;
                    (base, None, Some(text))
                }
            };
            let size = size_of(&kind, &self.structures).map_err(wrong)?;
            add_paths(&name, base, &[], &kind, &self.structures, &mut all.paths).map_err(wrong)?;
            let structure = self.structures.get(&kind.name);
            let fields = structure.map_or(Vec::new(), |structure| structure.fields.clone());
            all.by_name.entry(name).or_insert(MapVariable { address, pointer, kind, size, doc, fields });
        }
        Ok(all)
    }
}

/// The variables of memory maps that are not plain numbers at fixed addresses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables {
    /// The variables by name.
    pub(crate) by_name: BTreeMap<String, MapVariable>,
    /// What expressions can refer to, by paths such as `party[].hp`.
    pub(crate) paths: BTreeMap<String, Variable>,
}

impl Variables {
    /// Adds the fields of `others`, except for names that are already known.
    pub(crate) fn add(&mut self, others: &Variables) {
        for (name, variable) in &others.by_name {
            self.by_name.entry(name.clone()).or_insert_with(|| variable.clone());
        }
        for (path, variable) in &others.paths {
            self.paths.entry(path.clone()).or_insert_with(|| variable.clone());
        }
    }
}
