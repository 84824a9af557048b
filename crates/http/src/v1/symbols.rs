//! Names for addresses.

use crate::routing::prelude::*;

/// Most symbols in one answer.
const MAX: usize = 10_000;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SymbolQuery {
    /// Only names that hold this text, in any letter case.
    #[serde(default)]
    contains: String,
    /// Only names after this one, to go on where an answer ended.
    after: Option<String>,
}

/// Symbols.
#[derive(Serialize, ToSchema)]
struct SymbolList {
    /// In the order of their names, at most 10,000.
    symbols: Vec<Symbol>,
    /// Whether there are more after the last of these.
    more: bool,
}

/// A name for an address.
#[derive(Serialize, ToSchema)]
struct Symbol {
    name: String,
    /// Bus address.
    address: u32,
    /// What is there, where the symbol file says so: u8, u16, u32, i8, i16 or i32.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// How many of them are there in a row.
    count: u32,
    /// What it means, where the symbol file says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<String>,
}

/// The names that stand for addresses, from the symbol files that were loaded.
#[utoipa::path(get, path = "/v1/symbols", operation_id = "symbols", tag = "memory", params(EmulatorParam, SymbolQuery),
    responses((status = 200, description = "The symbols.", body = SymbolList)))]
async fn list(
    selected: SelectedEmulator,
    Query(wanted): Query<SymbolQuery>,
) -> Result<Json<SymbolList>, Problem> {
    let part = wanted.contains.to_lowercase();
    let after = |name: &str| wanted.after.as_deref().is_none_or(|after| name > after);
    let all = selected.symbols().await;
    let mut found = all
        .iter()
        .filter(|(name, _)| after(name) && (part.is_empty() || name.to_lowercase().contains(&part)));
    let symbols = found.by_ref().take(MAX).map(|(name, entry)| Symbol {
        name: name.to_owned(),
        address: entry.symbol.address,
        kind: entry.symbol.kind.map(|kind| kind.name()),
        count: entry.symbol.count,
        doc: entry.doc.clone(),
    });
    Ok(Json(SymbolList { symbols: symbols.collect(), more: found.next().is_some() }))
}
