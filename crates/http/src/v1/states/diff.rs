//! What memory changed between two snapshots, or since one.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use framewire_protocol::{Op, Value};
use framewire_states::diff::{Difference, differences};
use framewire_states::{Name, Snapshot, Snapshots, State as StateFile};
use framewire_symbols::Symbols;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::load::unexpected_reply;
use super::place::MemoryPlace;
use crate::operations::Operations;
use crate::operations::emulators::Served;
use crate::problem::Problem;
use crate::reading::fields::Encoding;
use crate::routing::extract::{EmulatorParam, Query, SelectedEmulator};
use crate::routing::state::AppState;
use crate::storage::Storage;
use crate::storage::blocking;
use crate::v1::page::Page;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(diff))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Between {
    /// The earlier snapshot.
    from: String,
    /// The later snapshot; left out, the emulator as it is now.
    to: Option<String>,
    /// Only this memory domain.
    domain: Option<String>,
    /// Differences with at most this many equal bytes between them are one range.
    #[serde(default)]
    #[param(default = 0, maximum = 4096)]
    join: usize,
    /// How bytes are written.
    #[serde(default)]
    encoding: Encoding,
    /// How many ranges to leave out at the beginning: `next` of the reply before.
    #[serde(default)]
    #[param(default = 0)]
    offset: usize,
    /// How many ranges at most.
    #[serde(default = "usual")]
    #[param(default = 100, minimum = 1, maximum = 1000)]
    limit: usize,
}

fn usual() -> usize {
    100
}

/// What changed.
#[derive(Serialize, ToSchema)]
struct Diff {
    /// The frame counter of the earlier state.
    from: u32,
    /// The frame counter of the later state.
    to: u32,
    /// In the order of domains and addresses. None is longer than 4096 bytes.
    ranges: Vec<Range>,
    /// How many ranges there are in all.
    total: usize,
    /// How many bytes they hold in all.
    bytes: usize,
    /// The `offset` of the ranges that follow; null if none do.
    next: Option<usize>,
}

/// A range of bytes that changed, all in one bank.
#[derive(Serialize, ToSchema)]
struct Range {
    #[serde(flatten)]
    place: MemoryPlace,
    /// How many bytes.
    length: usize,
    /// An expression for watches that reads them.
    watch: String,
    /// What was there.
    old: String,
    /// What is there.
    new: String,
}

/// What memory changed between two snapshots, or since one.
#[utoipa::path(get, path = "/v1/snapshots/diff", operation_id = "diffSnapshots", tag = "states",
    params(EmulatorParam, Between), responses((status = 200, description = "The ranges that differ.", body = Diff)))]
async fn diff(
    State(operations): State<Arc<Operations>>,
    State(snapshots): State<Storage<Snapshots>>,
    SelectedEmulator(served): SelectedEmulator,
    Query(between): Query<Between>,
) -> Result<Json<Diff>, Problem> {
    let page = Page { offset: between.offset, limit: between.limit };
    page.check()?;
    let from = between.from.parse::<Name>().map_err(|error| Problem::in_body("from", &error.to_string()))?;
    let to = between.to.as_deref().map(str::parse::<Name>).transpose();
    let to = to.map_err(|error| Problem::in_body("to", &error.to_string()))?;
    let snapshots = snapshots.get()?;
    let _share = operations.replies.share(&Op::SaveState { flags: 31 })?;
    let (old, new) = blocking(move || -> Result<_, Problem> {
        let read = |name: &Name| -> Result<Snapshot, Problem> { Ok(snapshots.read(name)?) };
        Ok((read(&from)?, to.as_ref().map(read).transpose()?))
    })
    .await?;
    let new = match new {
        Some(snapshot) => snapshot.into_file(),
        None => now(&operations, &served).await?,
    };
    let symbols = served.symbols().await;
    let compared =
        move || compare(&StateFile::read(old.file())?, &StateFile::read(&new)?, &between, &page, &symbols);
    blocking(compared).await.map(Json)
}

/// The emulator's state, with what snapshots have of memory.
async fn now(operations: &Operations, served: &Served) -> Result<Vec<u8>, Problem> {
    match operations.perform(served, Op::SaveState { flags: 2 }.into()).await?.single()? {
        Value::Bytes(state) => Ok(state),
        _ => Err(unexpected_reply()),
    }
}

fn compare(
    old: &StateFile<'_>,
    new: &StateFile<'_>,
    between: &Between,
    page: &Page,
    symbols: &Symbols,
) -> Result<Diff, Problem> {
    if old.console() != new.console() {
        let detail = format!("a {} and a {} have no memory in common", old.console(), new.console());
        return Err(Problem::new(axum::http::StatusCode::CONFLICT, detail));
    }
    let domains: Vec<&str> = old.memory().map(|region| region.domain).collect();
    if let Some(domain) = &between.domain
        && !domains.contains(&domain.as_str())
    {
        let accepts = format!("one of {}", domains.join(", "));
        return Err(Problem::parameter("domain", &format!("is {domain:?}"), accepts));
    }
    let (mut ranges, mut total, mut bytes) = (Vec::new(), 0, 0);
    for found in differences(old, new, between.join.min(framewire_states::diff::LONGEST)) {
        if between.domain.as_deref().is_some_and(|domain| domain != found.domain) {
            continue;
        }
        let length = found.new.len();
        if (page.offset..page.offset.saturating_add(page.limit)).contains(&total) {
            ranges.push(found);
        }
        total += 1;
        bytes += length;
    }
    let names = symbols.names_of(ranges.iter().filter_map(|found| MemoryPlace::unbanked(found.on_bus)));
    let shown = |found: Difference<'_>| {
        let place = MemoryPlace::new(Some(found.domain), found.offset, found.on_bus, &names);
        Range {
            length: found.new.len(),
            watch: format!("bytes[{}, {}]", place.in_brackets(), found.new.len()),
            old: between.encoding.text(found.old),
            new: between.encoding.text(found.new),
            place,
        }
    };
    let ranges: Vec<Range> = ranges.into_iter().map(shown).collect();
    let next = page.next(ranges.len(), total).filter(|_| !ranges.is_empty());
    Ok(Diff { from: old.frame(), to: new.frame(), ranges, total, bytes, next })
}
