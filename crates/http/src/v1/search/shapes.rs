//! The JSON of requests and replies about searches.

use framewire_expression::Type;
use framewire_states::search::{Candidate, Search};
use framewire_symbols::Symbols;

use crate::routing::prelude::*;
use crate::v1::schemas::AddressSchema;
use crate::v1::states::diff::MemoryPlace;

/// A search to begin.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSearch {
    /// The type of the numbers.
    #[serde(rename = "type")]
    pub(super) kind: Type,
    /// Where to look. By default, the console's work RAM and, on the Game Boy, the high RAM.
    #[serde(default)]
    #[schema(max_items = 16)]
    pub(super) areas: Vec<SearchArea>,
    /// The distance between candidates in bytes: 1, 2 or 4. By default, the size of the type.
    #[schema(minimum = 1, maximum = 4)]
    pub(super) alignment: Option<u32>,
}

/// A range of memory to search.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArea {
    /// The memory domain. By default, the bus.
    pub(super) domain: Option<String>,
    /// The first byte: an address on the bus (a number, a string or a symbol), or an offset in the domain (0 by
    /// default).
    #[schema(value_type = Option<AddressSchema>)]
    pub(super) address: Option<serde_json::Value>,
    /// The number of bytes. With a domain, it can be left out; then the range ends at the end of the domain.
    #[schema(minimum = 1)]
    pub(super) length: Option<u32>,
}

/// The condition that a candidate must meet to stay in the search.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchTest {
    /// To compare with `value`: equal, not_equal, greater, less, at_least, at_most. To compare with the number that was
    /// there when memory was last read: changed, unchanged, increased, decreased, and also increased_by and
    /// decreased_by, for which the difference must be exactly `value`.
    pub(super) is: String,
    /// The number to compare with, or the exact difference.
    pub(super) value: Option<i64>,
}

/// An open search.
#[derive(Serialize, ToSchema)]
#[schema(as = Search)]
pub(super) struct SearchResponse {
    /// Its number.
    id: u64,
    /// The emulator whose memory is searched.
    emulator: String,
    /// The type of the numbers.
    #[serde(rename = "type")]
    kind: Type,
    /// The distance between candidates in bytes.
    alignment: u32,
    /// How many candidates there are.
    count: usize,
    /// How many times it was narrowed, not counting undone steps.
    steps: usize,
    /// How many steps can be undone.
    undoable: usize,
    /// The frame counter when memory was last read.
    frame: u32,
    /// The search is forgotten after this many seconds without a request for it.
    expires: u64,
}

impl SearchResponse {
    pub(super) fn new(id: u64, emulator: String, search: &Search, expires: u64) -> SearchResponse {
        SearchResponse {
            id,
            emulator,
            kind: search.plan().number(),
            alignment: search.plan().alignment(),
            count: search.count(),
            steps: search.steps(),
            undoable: search.undoable(),
            frame: search.frame(),
            expires,
        }
    }
}

/// The open searches.
#[derive(Serialize, ToSchema)]
#[schema(as = Searches)]
pub(super) struct SearchList {
    pub(super) searches: Vec<SearchResponse>,
}

/// The remaining candidates of a search.
#[derive(Serialize, ToSchema)]
pub(super) struct SearchCandidates {
    /// The search.
    pub(super) search: SearchResponse,
    /// A part of the candidates, in the order of areas and addresses.
    pub(super) candidates: Vec<SearchCandidate>,
    /// The `offset` of the next part; null if this is the last one.
    pub(super) next: Option<usize>,
}

/// A remaining candidate.
#[derive(Serialize, ToSchema)]
pub(super) struct SearchCandidate {
    #[serde(flatten)]
    place: MemoryPlace,
    /// An expression that watches and conditions can use to read the number.
    watch: String,
    /// The number there when memory was last read.
    value: i64,
    /// The number there when memory was read the time before that; null if it is not known.
    previous: Option<i64>,
}

impl SearchCandidate {
    /// Converts candidates for a reply. `kind` is the type of the search's numbers.
    pub(super) fn page(
        candidates: Vec<Candidate<'_>>,
        kind: Type,
        symbols: &Symbols,
    ) -> Vec<SearchCandidate> {
        let places = candidates.iter().map(|found| (found.domain, found.address, found.on_bus));
        let places = MemoryPlace::all(places, symbols);
        let found = |(candidate, place): (Candidate<'_>, MemoryPlace)| SearchCandidate {
            watch: format!("{}[{}]", kind.name(), place.in_brackets()),
            place,
            value: candidate.value,
            previous: candidate.previous,
        };
        candidates.into_iter().zip(places).map(found).collect()
    }
}
