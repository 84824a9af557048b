//! Names for addresses.

use framewire_symbols::{MapVariable, StructureField};

use crate::routing::prelude::*;

/// The largest number of symbols in one reply.
const MAX: usize = 10_000;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SymbolQuery {
    /// Only names that contain this text, in any letter case.
    #[serde(default)]
    contains: String,
    /// Only names after this one, to continue where the previous reply ended.
    after: Option<String>,
}

/// Symbols.
#[derive(Serialize, ToSchema)]
struct SymbolList {
    /// The symbols in the order of their names, at most 10,000.
    symbols: Vec<Symbol>,
    /// Whether there are more symbols after the last of these.
    more: bool,
    /// The variables of memory maps that are not plain numbers at known addresses: structures, numbers in special
    /// formats, and targets of pointers. Empty if `after` is given.
    variables: Vec<Variable>,
}

/// A variable that is not a plain number at a known address.
#[derive(Serialize, ToSchema)]
struct Variable {
    name: String,
    /// Bus address, if it is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<u32>,
    /// The expression for its address, if the address is read from memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    /// A type of number, or the name of a structure.
    #[serde(rename = "type")]
    kind: String,
    /// The number of elements: 1, or the length of an array.
    count: u32,
    /// The size of an element in bytes.
    size: u32,
    /// Its meaning, if the memory map describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<String>,
    /// The fields of the structure. Empty for numbers.
    fields: Vec<VariableField>,
}

/// A field of a structure.
#[derive(Serialize, ToSchema)]
struct VariableField {
    name: String,
    /// The number of bytes from the beginning of the structure.
    offset: u32,
    /// A type of number, or the name of a structure.
    #[serde(rename = "type")]
    kind: String,
    /// The number of elements: 1, or the length of an array.
    count: u32,
    /// Its meaning, if the memory map describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<String>,
}

impl Variable {
    fn new((name, variable): (&str, &MapVariable)) -> Variable {
        let field = |field: &StructureField| VariableField {
            name: field.name.clone(),
            offset: field.offset,
            kind: field.kind.name.clone(),
            count: field.kind.count(),
            doc: field.doc.clone(),
        };
        Variable {
            name: name.to_owned(),
            address: variable.address,
            pointer: variable.pointer.clone(),
            kind: variable.kind.name.clone(),
            count: variable.kind.count(),
            size: variable.size,
            doc: variable.doc.clone(),
            fields: variable.fields.iter().map(field).collect(),
        }
    }
}

/// A name for an address.
#[derive(Serialize, ToSchema)]
struct Symbol {
    name: String,
    /// Bus address.
    address: u32,
    /// The type of the number there, if the symbol file has it: u8, u16, u32, i8, i16 or i32.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// The number of elements: 1, or the length of an array.
    count: u32,
    /// Its meaning, if the symbol file describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<String>,
}

/// Lists the names for addresses, from the loaded symbol files.
#[utoipa::path(get, path = "/v1/symbols", operation_id = "symbols", tag = "memory", params(EmulatorParam, SymbolQuery),
    responses((status = 200, description = "The symbols.", body = SymbolList)))]
async fn list(selected: SelectedEmulator, Query(wanted): Query<SymbolQuery>) -> Result<Json<SymbolList>> {
    let part = wanted.contains.to_lowercase();
    let after = |name: &str| wanted.after.as_deref().is_none_or(|after| name > after);
    let all = selected.symbols().await;
    let holds = |name: &str| part.is_empty() || name.to_lowercase().contains(&part);
    let mut found = all.iter().filter(|(name, _)| after(name) && holds(name));
    let symbols = found.by_ref().take(MAX).map(|(name, entry)| Symbol {
        name: name.to_owned(),
        address: entry.symbol.address,
        kind: entry.symbol.kind.map(|kind| kind.name()),
        count: entry.symbol.count,
        doc: entry.doc.clone(),
    });
    let symbols = symbols.collect();
    let variables = match wanted.after {
        None => all.variables().filter(|(name, _)| holds(name)).map(Variable::new).collect(),
        Some(_) => Vec::new(),
    };
    Ok(Json(SymbolList { symbols, more: found.next().is_some(), variables }))
}
