//! Searches as JSON.

use framewire_expression::Type;
use framewire_states::search::{Candidate, Search};
use framewire_symbols::Symbols;

use crate::routing::prelude::*;
use crate::v1::schemas::Address;
use crate::v1::states::diff::MemoryPlace;

/// A search to begin.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSearch)]
pub(super) struct NewSearch {
    /// The type of the numbers.
    #[serde(rename = "type")]
    pub(super) kind: Type,
    /// Where to look; left out, in the console's work RAM.
    #[serde(default)]
    #[schema(max_items = 16)]
    pub(super) areas: Vec<SearchArea>,
    /// How many bytes numbers are apart: 1, 2 or 4; left out, as many as they have.
    #[schema(minimum = 1, maximum = 4)]
    pub(super) alignment: Option<u32>,
}

/// A stretch of memory to look at.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SearchArea)]
pub(super) struct SearchArea {
    /// The memory domain; left out, the bus.
    pub(super) domain: Option<String>,
    /// The first byte: an address on the bus as a number, a text or a symbol; or an offset in the domain, 0 if left out.
    #[schema(value_type = Option<Address>)]
    pub(super) address: Option<serde_json::Value>,
    /// How many bytes; may be left out for a domain: up to its end.
    #[schema(minimum = 1)]
    pub(super) length: Option<u32>,
}

/// What a candidate must hold to remain one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SearchTest)]
pub(super) struct SearchTest {
    /// Compared with `value`: equal, not_equal, greater, less, at_least, at_most. Compared with what it held when memory was
    /// read before: changed, unchanged, increased, decreased, and by exactly `value` increased_by, decreased_by.
    pub(super) is: String,
    /// What is compared with.
    pub(super) value: Option<i64>,
}

/// A search under way.
#[derive(Serialize, ToSchema)]
#[schema(as = Search)]
pub(super) struct SearchResponse {
    /// Its number.
    id: u64,
    /// The emulator in whose memory it looks.
    emulator: String,
    /// The type of the numbers.
    #[serde(rename = "type")]
    #[schema(value_type = Type)]
    kind: &'static str,
    /// How many bytes numbers are apart.
    alignment: u32,
    /// How many candidates there are.
    count: usize,
    /// How often it was narrowed.
    steps: usize,
    /// How many steps can be undone.
    undoable: usize,
    /// The frame counter when memory was read last.
    frame: u32,
    /// The search is forgotten after this many seconds without a request for it.
    expires: u64,
}

impl SearchResponse {
    pub(super) fn new(id: u64, emulator: String, search: &Search, expires: u64) -> SearchResponse {
        SearchResponse {
            id,
            emulator,
            kind: search.plan().number().name(),
            alignment: search.plan().alignment(),
            count: search.count(),
            steps: search.steps(),
            undoable: search.undoable(),
            frame: search.frame(),
            expires,
        }
    }
}

/// The searches under way.
#[derive(Serialize, ToSchema)]
#[schema(as = Searches)]
pub(super) struct SearchList {
    pub(super) searches: Vec<SearchResponse>,
}

/// What is left of a search.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchCandidates)]
pub(super) struct SearchCandidates {
    /// The search.
    pub(super) search: SearchResponse,
    /// A part of its candidates, in order of areas and addresses.
    pub(super) candidates: Vec<SearchCandidate>,
    /// The `offset` of those that follow; null if none do.
    pub(super) next: Option<usize>,
}

/// A place that may be the one.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchCandidate)]
pub(super) struct SearchCandidate {
    #[serde(flatten)]
    place: MemoryPlace,
    /// An expression for watches and conditions that reads it.
    watch: String,
    /// What it held when memory was read last.
    value: i64,
    /// What it held the time before that.
    previous: Option<i64>,
}

impl SearchCandidate {
    /// A page of candidates, which are numbers of this type.
    pub(super) fn page(
        candidates: Vec<Candidate<'_>>,
        kind: Type,
        symbols: &Symbols,
    ) -> Vec<SearchCandidate> {
        let addresses: Vec<u32> =
            candidates.iter().filter_map(|found| MemoryPlace::unbanked(found.on_bus)).collect();
        let names = symbols.names_of(&addresses);
        let found = |candidate: Candidate<'_>| {
            let Candidate { domain, address, on_bus, value, previous } = candidate;
            let place = MemoryPlace::new(domain, address, on_bus, &names);
            SearchCandidate {
                watch: format!("{}[{}]", kind.name(), place.in_brackets()),
                place,
                value,
                previous,
            }
        };
        candidates.into_iter().map(found).collect()
    }
}
