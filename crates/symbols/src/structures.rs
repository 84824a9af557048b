//! The variables of memory maps that are not plain numbers at fixed addresses: structures and their arrays, numbers in
//! special formats, and variables at an address that a pointer in memory contains.

use std::collections::BTreeMap;

use framewire_expression::{Code, Format, Type, Variable};
use serde::Deserialize;

/// The deepest nesting of structures. This limit also detects a structure that contains itself.
const MAX_DEPTH: usize = 8;

/// The type of a field: numbers, or a structure by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldType {
    /// The type as the memory map writes it, without the count.
    pub name: String,
    /// The type and format of the number; `None` for a structure.
    pub(crate) number: Option<(Type, Format)>,
    /// The number of elements of an array; `None` if the field is not an array.
    pub(crate) count: Option<u32>,
}

impl FieldType {
    /// Reads `TYPE` or `TYPE[n]`.
    pub(crate) fn parse(text: &str) -> Result<FieldType, String> {
        let (name, count) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((name, count)) => {
                let count: Option<u32> = count.parse().ok().filter(|count| *count > 0);
                let problem = || format!("{text:?} has no count; write for example {name}[4]");
                (name, Some(count.ok_or_else(problem)?))
            }
            None => (text, None),
        };
        Ok(FieldType { name: name.to_owned(), number: number(name)?, count })
    }

    /// The number of elements; 1 if the field is not an array.
    pub fn count(&self) -> u32 {
        self.count.unwrap_or(1)
    }
}

/// Parses the type of a number: `u16`, `u16:4..7` for bits, `u16/256` for fixed point, `bcd16`, `f32`. Returns `None`
/// for other names, which may be structures.
fn number(name: &str) -> Result<Option<(Type, Format)>, String> {
    if let Some(kind) = Type::named(name) {
        return Ok(Some((kind, Format::Plain)));
    }
    match name {
        "bcd8" => return Ok(Some((Type::U8, Format::Bcd))),
        "bcd16" => return Ok(Some((Type::U16, Format::Bcd))),
        "bcd32" => return Ok(Some((Type::U32, Format::Bcd))),
        "f32" => return Ok(Some((Type::U32, Format::Float))),
        _ => {}
    }
    if let Some((kind, bits)) = name.split_once(':') {
        let wrong =
            || format!("{name:?} is not a type; bits are written u16:4 or u16:4..7, the lowest bit is 0");
        let kind = Type::named(kind).ok_or_else(wrong)?;
        let (first, last) = bits.split_once("..").unwrap_or((bits, bits));
        let (first, last): (u8, u8) =
            (first.parse().map_err(|_| wrong())?, last.parse().map_err(|_| wrong())?);
        if first > last || u16::from(last) >= kind.size() * 8 {
            return Err(wrong());
        }
        return Ok(Some((kind, Format::Bits { first, count: last - first + 1 })));
    }
    if let Some((kind, divisor)) = name.split_once('/') {
        let wrong = || format!("{name:?} is not a type; fixed point is written i16/256");
        let kind = Type::named(kind).ok_or_else(wrong)?;
        let divisor = divisor.parse().ok().filter(|divisor| *divisor > 0).ok_or_else(wrong)?;
        return Ok(Some((kind, Format::Fixed(divisor))));
    }
    Ok(None)
}

/// A structure.
#[derive(Debug, Clone, Deserialize)]
#[serde(expecting = "a table [[struct]] with `name`, `size` and tables [[struct.field]]")]
pub(crate) struct Structure {
    pub(crate) name: String,
    pub(crate) size: u32,
    #[serde(rename = "field")]
    pub(crate) fields: Vec<StructureField>,
}

impl Structure {
    /// Checks that all fields are within the structure. A field whose type is not known is not checked.
    pub(crate) fn check(&self, structures: &Structures) -> Result<(), String> {
        for StructureField { name, offset, kind, .. } in &self.fields {
            let Ok(size) = size_of(kind, structures) else { continue };
            let end = u64::from(*offset) + u64::from(size) * u64::from(kind.count());
            if end > u64::from(self.size) {
                let Structure { name: structure, size, .. } = self;
                return Err(format!(
                    "the field {name:?} of the structure {structure:?} ends {end} bytes after the start of the structure, \
                     whose `size` is {size}; correct the size, or the offset or the type of the field"
                ));
            }
        }
        Ok(())
    }
}

/// A field of a structure.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(expecting = "a table [[struct.field]] with `name`, `offset` and `type`")]
pub struct StructureField {
    /// Its name, such as `hp`.
    pub name: String,
    /// The field's offset in the structure, in bytes.
    pub offset: u32,
    /// The type of the field.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// The field's description, if the file has one.
    pub doc: Option<String>,
}

/// A variable of a memory map that is not a plain number at a fixed address.
#[derive(Debug, Clone)]
pub struct MapVariable {
    /// Its bus address, if the address is fixed.
    pub address: Option<u32>,
    /// The expression for its address, if the address is not fixed.
    pub pointer: Option<String>,
    /// The type of the variable.
    pub kind: FieldType,
    /// The size of an element in bytes.
    pub size: u32,
    /// The variable's description, if the file has one.
    pub doc: Option<String>,
    /// Its fields, if it is a structure.
    pub fields: Vec<StructureField>,
}

/// The structures of a memory map by name.
pub(crate) type Structures = BTreeMap<String, Structure>;

/// The size in bytes of one element of this type.
///
/// # Errors
/// If there is no such type.
pub(crate) fn size_of(kind: &FieldType, structures: &Structures) -> Result<u32, String> {
    match (kind.number, structures.get(&kind.name)) {
        (Some((number, _)), _) => Ok(number.size().into()),
        (None, Some(structure)) => Ok(structure.size),
        (None, None) => Err(format!(
            "{:?} is neither a type nor a [[struct]]; use u8, u16, u32, i8, i16, i32, f32, bcd8, bcd16, bcd32, bits such as \
             u16:4..7, fixed point such as i16/256, or the name of a structure, each also as T[n]",
            kind.name
        )),
    }
}

/// Adds the paths of a variable and of its fields, such as `party[]` and `party[].hp`, to `paths`. `dimensions` has
/// the count and the element size of each array on the path.
///
/// # Errors
/// If a type is not known, or structures are nested too deeply.
pub(crate) fn add_paths(
    path: &str,
    base: Code,
    dimensions: &[(u32, u32)],
    kind: &FieldType,
    structures: &Structures,
    paths: &mut BTreeMap<String, Variable>,
) -> Result<(), String> {
    if path.matches('.').count() > MAX_DEPTH {
        return Err(format!("{path} is a structure within {MAX_DEPTH} others; use fewer"));
    }
    let size = size_of(kind, structures)?;
    let (mut path, mut dimensions) = (path.to_owned(), dimensions.to_vec());
    let number = kind.number;
    let variable = |base: &Code, dimensions: &[(u32, u32)]| Variable {
        base: base.clone(),
        dimensions: dimensions.to_vec(),
        kind: number.map(|(number, _)| number),
        format: number.map_or(Format::Plain, |(_, format)| format),
    };
    if let Some(count) = kind.count {
        // The name without an index is the address of the first element.
        let whole = Variable { kind: None, ..variable(&base, &dimensions) };
        paths.entry(path.clone()).or_insert(whole);
        path.push_str("[]");
        dimensions.push((count, size));
    }
    paths.entry(path.clone()).or_insert(variable(&base, &dimensions));
    let fields = structures.get(&kind.name).filter(|_| number.is_none()).map(|structure| &structure.fields);
    for field in fields.into_iter().flatten() {
        let field_path = format!("{path}.{}", field.name);
        let base = base.clone().plus(field.offset);
        add_paths(&field_path, base, &dimensions, &field.kind, structures, paths)?;
    }
    Ok(())
}
