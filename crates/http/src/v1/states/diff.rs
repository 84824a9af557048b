//! Finds the memory that changed between two snapshots, or since one snapshot.

use framewire_protocol::Op;
use framewire_states::diff::{Difference, differences};
use framewire_states::{Name, OnBus, Snapshot, Snapshots, State as StateFile};
use framewire_symbols::Symbols;

use crate::reading::Whole;
use crate::reading::fields::Encoding;
use crate::routing::prelude::*;
use crate::storage::blocking;

/// An upper limit for the size of a range in the reply, without its bytes.
const RANGE_SIZE: usize = 512;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(diff))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct DiffQuery {
    /// The earlier snapshot.
    from: String,
    /// The later snapshot. Default: the current state of the emulator.
    to: Option<String>,
    /// Only this memory domain.
    domain: Option<String>,
    /// Differences with at most this many equal bytes between them are one range.
    #[serde(default = "Whole::constant::<0>")]
    #[param(value_type = usize, default = 0, minimum = 0, maximum = 4096)]
    join: Whole<0, 4096>,
    /// How bytes are written.
    #[serde(default)]
    encoding: Encoding,
    /// The number of ranges to skip: `next` of the previous reply.
    #[serde(default)]
    #[param(default = 0)]
    offset: usize,
    /// The largest number of ranges.
    #[serde(default = "Whole::constant::<100>")]
    #[param(value_type = usize, default = 100, minimum = 1, maximum = 1000)]
    limit: Whole<1, 1000>,
}

/// The memory that changed.
#[derive(Serialize, ToSchema)]
struct Diff {
    /// The frame counter of the earlier state.
    from: u32,
    /// The frame counter of the later state.
    to: u32,
    /// The ranges, in the order of domains and addresses. No range is longer than 4096 bytes.
    ranges: Vec<Range>,
    /// The total number of ranges.
    total: usize,
    /// The total number of bytes in all ranges.
    bytes: usize,
    /// The `offset` of the next part; null if this is the last one.
    next: Option<usize>,
}

/// A range of bytes that changed, all in one bank.
#[derive(Serialize, ToSchema)]
struct Range {
    #[serde(flatten)]
    place: MemoryPlace,
    /// The number of bytes.
    length: usize,
    /// An expression that watches can use to read the bytes.
    watch: String,
    /// The bytes of the earlier state.
    old: String,
    /// The bytes of the later state.
    new: String,
}

/// Returns the memory that changed between two snapshots, or since one snapshot.
#[utoipa::path(get, path = "/v1/snapshots/diff", operation_id = "diffSnapshots", tag = "states",
    params(EmulatorParam, DiffQuery), responses((status = 200, description = "The ranges that differ.", body = Diff)))]
async fn diff(
    State(snapshots): State<Storage<Snapshots>>,
    selected: SelectedEmulator,
    Query(query): Query<DiffQuery>,
) -> Result<Response> {
    let from = query.from.parse::<Name>().map_err(|error| Problem::at("from", &error.to_string()))?;
    let to = query.to.as_deref().map(str::parse::<Name>).transpose();
    let to = to.map_err(|error| Problem::at("to", &error.to_string()))?;
    let snapshots = snapshots.get()?;
    // Reserves memory for the largest state; the flags do not matter for this.
    let _share = selected.share(&Op::SaveState { flags: 31 })?;
    let (old, new) = blocking(move || -> Result<_> {
        let read = |name: &Name| -> Result<Snapshot> { Ok(snapshots.read(name)?) };
        Ok((read(&from)?, to.as_ref().map(read).transpose()?))
    })
    .await?;
    let new = match new {
        Some(snapshot) => snapshot.into_file(),
        // The state includes the battery save, because snapshots contain it too.
        None => selected.perform_one(Op::SaveState { flags: 2 }).await?.try_into()?,
    };
    let symbols = selected.symbols().await;
    let compared = move || compare(&StateFile::read(old.file())?, &StateFile::read(&new)?, &query, &symbols);
    let diff = blocking(compared).await?;
    let size = diff.ranges.iter().map(|range| range.old.len() + range.new.len() + RANGE_SIZE).sum();
    Ok(selected.operations.replies.share_bytes(size)?.json(&diff))
}

fn compare(old: &StateFile<'_>, new: &StateFile<'_>, query: &DiffQuery, symbols: &Symbols) -> Result<Diff> {
    if old.console() != new.console() {
        let detail = format!("a {} and a {} have no memory in common", old.console(), new.console());
        return Err(Problem::conflict(detail));
    }
    let domains: Vec<&str> = old.memory().map(|region| region.domain).collect();
    if let Some(domain) = &query.domain
        && !domains.contains(&domain.as_str())
    {
        let accepts = format!("one of {}", domains.join(", "));
        return Err(Problem::parameter("domain", &format!("is {domain:?}"), accepts));
    }
    let page = Page { offset: query.offset, limit: query.limit };
    let (mut ranges, mut total, mut bytes) = (Vec::new(), 0, 0);
    for found in differences(old, new, query.join.get() as usize) {
        if query.domain.as_deref().is_some_and(|domain| domain != found.domain) {
            continue;
        }
        bytes += found.new.len();
        if (page.offset..page.offset.saturating_add(page.limit())).contains(&total) {
            ranges.push(found);
        }
        total += 1;
    }
    let places = ranges.iter().map(|found| (Some(found.domain), found.offset, found.on_bus));
    let places = MemoryPlace::all(places, symbols);
    let shown = |(found, place): (Difference<'_>, MemoryPlace)| Range {
        length: found.new.len(),
        watch: format!("bytes[{}, {}]", place.in_brackets(), found.new.len()),
        old: query.encoding.text(found.old),
        new: query.encoding.text(found.new),
        place,
    };
    let ranges: Vec<Range> = ranges.into_iter().zip(places).map(shown).collect();
    let next = page.next(ranges.len(), total);
    Ok(Diff { from: old.frame(), to: new.frame(), ranges, total, bytes, next })
}

/// Where a byte of memory is.
#[derive(Serialize, ToSchema)]
pub(in crate::v1) struct MemoryPlace {
    /// The memory domain; null for the bus.
    domain: Option<String>,
    /// Its offset in the domain; null for the bus.
    offset: Option<u32>,
    /// Its bank; null for the bus, and for a domain without banks.
    bank: Option<u32>,
    /// Its address on the bus while its bank is mapped; null if it is never on the bus.
    address: Option<u32>,
    /// The symbol at this address, if one is loaded.
    symbol: Option<String>,
}

impl MemoryPlace {
    /// The places of bytes. Each item of `places` has three parts: the byte's domain, or `None` for the bus; its offset
    /// in the domain, or its address on the bus; and where it is on the bus, or `None` if it is never there.
    pub(in crate::v1) fn all<'a>(
        places: impl Iterator<Item = (Option<&'a str>, u32, Option<OnBus>)> + Clone,
        symbols: &Symbols,
    ) -> Vec<MemoryPlace> {
        // Symbols have no banks. So in banked memory, only places in the first two banks get a symbol: programs that do
        // not switch banks use these two.
        let unbanked = |place: &OnBus| place.bank.is_none_or(|bank| bank < 2);
        let named = |on_bus: Option<OnBus>| on_bus.filter(unbanked).map(|place| place.address);
        let addresses: Vec<u32> = places.clone().filter_map(|(_, _, on_bus)| named(on_bus)).collect();
        let names = symbols.names_of(&addresses);
        let place = |(domain, at, on_bus): (Option<&str>, u32, Option<OnBus>)| MemoryPlace {
            domain: domain.map(str::to_owned),
            offset: domain.map(|_| at),
            bank: on_bus.and_then(|place| place.bank),
            address: on_bus.map(|place| place.address),
            symbol: named(on_bus).and_then(|address| names.get(&address).cloned()),
        };
        places.map(place).collect()
    }

    /// The place as expressions name it between brackets: the bus address, or the domain and the offset if the memory
    /// has banks or is never on the bus.
    pub(in crate::v1) fn in_brackets(&self) -> String {
        match (self, &self.domain) {
            (MemoryPlace { bank: None, address: Some(address), .. }, _) => format!("{address:#x}"),
            (MemoryPlace { offset: Some(offset), .. }, Some(domain)) => format!("{domain}:{offset:#x}"),
            (MemoryPlace { address, .. }, _) => format!("{:#x}", address.unwrap_or_default()),
        }
    }
}
