//! Searches in memory: clients begin a search, narrow it step by step, and read the remaining candidates.

use std::time::Instant;

use axum::http::header::LOCATION;
use framewire_expression::Type;
use framewire_protocol::{Op, Value};
use framewire_states::Console;
use framewire_states::search::{Area, MAX_AREAS, OtherSize, Plan, PlanError, Search, Test};
use parking_lot::Mutex;

use self::shapes::{
    NewSearch, SearchArea, SearchCandidate, SearchCandidates, SearchList, SearchResponse, SearchTest,
};
use super::states::next_result;
use crate::access::caller::Owner;
use crate::failure::Failure;
use crate::operations::Operations;
use crate::operations::emulators::Served;
use crate::reading::fields::place_in;
use crate::routing::prelude::*;
use crate::storage::{SEARCHES, SearchSubject, SearchTable, blocking};

mod find;
mod shapes;

pub(super) fn router() -> OpenApiRouter<AppState> {
    // `judged_later`: read-only callers may begin searches too. `Owner` decides which searches a caller may change.
    OpenApiRouter::new()
        .routes(routes!(list, begin).judged_later())
        .routes(routes!(candidates, remove).judged_later())
        .routes(routes!(narrow).judged_later())
        .routes(routes!(undo).judged_later())
        .merge(find::router())
}

/// The open searches.
#[utoipa::path(get, path = "/v1/search", operation_id = "searches", tag = "search",
    responses((status = 200, description = "All open searches.", body = SearchList)))]
async fn list(State(searches): State<Arc<SearchTable>>) -> Json<SearchList> {
    let all = searches.list(Instant::now());
    let response = |(id, search, subject): (u64, Arc<Mutex<Search>>, SearchSubject)| {
        respond(&searches, id, subject.emulator, &search)
    };
    Json(SearchList { searches: all.into_iter().map(response).collect() })
}

/// Begins a search. At first, every place is a candidate.
///
/// A search covers at most 1 MiB. The server keeps 8 searches, each for 10 minutes after its last use. A further search
/// replaces the one that has not been used for the longest time.
#[utoipa::path(post, path = "/v1/search", operation_id = "beginSearch", tag = "search", params(EmulatorParam),
    request_body = NewSearch,
    responses((status = 201, description = "The search has begun.", body = SearchResponse, headers(("location" = String, description = "The path of the search.")))))]
async fn begin(
    State(searches): State<Arc<SearchTable>>,
    selected: SelectedEmulator,
    owner: Owner,
    Payload(request): Payload<NewSearch>,
) -> Result<Created<SearchResponse>> {
    let console = console(&selected).await?;
    let areas = areas(&selected, console, request.areas).await?;
    let plan = Plan::new(areas, request.kind, request.alignment)?.of(console);
    let Reading { frame, game, memory } = read(&selected.operations, &selected, &plan).await?;
    let search = Search::begin(plan, memory, frame)?;
    let subject = SearchSubject { emulator: selected.name.clone(), game, owner };
    let added = searches.add(search, subject, Instant::now(), |other| owner.may_change(&other.owner));
    let (id, search) = added.ok_or_else(|| {
        Failure::busy(format!(
            "{SEARCHES} searches of other callers are open, and a read-only token cannot replace them; try again later"
        ))
    })?;
    let location = [(LOCATION, format!("/v1/search/{id}"))];
    Ok((StatusCode::CREATED, location, Json(respond(&searches, id, selected.name.clone(), &search))))
}

/// The remaining candidates of a search.
#[utoipa::path(get, path = "/v1/search/{id}", operation_id = "searchCandidates", tag = "search",
    params(("id" = u64, Path, description = "Number of the search."), Page),
    responses((status = 200, description = "A part of the candidates.", body = SearchCandidates)))]
async fn candidates(
    State(operations): State<Arc<Operations>>,
    State(searches): State<Arc<SearchTable>>,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<SearchCandidates>> {
    let open = Open::find(&operations, &searches, &id)?;
    open.check_game(open.served.emulator.checksum())?;
    let response = open.response(&searches);
    let symbols = open.served.symbols().await;
    let search = open.search.lock();
    let found: Vec<_> = search.candidates(page.offset).take(page.limit()).collect();
    let found = SearchCandidate::page(found, search.plan().number(), &symbols);
    let next = page.next(found.len(), search.count());
    Ok(Json(SearchCandidates { search: response, candidates: found, next }))
}

/// Reads memory again and keeps the candidates that pass a test.
#[utoipa::path(post, path = "/v1/search/{id}/narrow", operation_id = "narrowSearch", tag = "search",
    params(("id" = u64, Path, description = "Number of the search.")), request_body = SearchTest,
    responses((status = 200, description = "The narrowed search.", body = SearchResponse)))]
async fn narrow(
    State(operations): State<Arc<Operations>>,
    State(searches): State<Arc<SearchTable>>,
    caller: Owner,
    Path(id): Path<String>,
    Payload(SearchTest { is, value }): Payload<SearchTest>,
) -> Result<Json<SearchResponse>> {
    let open = Open::to_change(&operations, &searches, &id, caller)?;
    let plan = open.search.lock().plan().clone();
    let test = test(&is, value, plan.number())?;
    open.check_game(open.served.emulator.checksum())?;
    let Reading { frame, game, memory } = read(&operations, &open.served, &plan).await?;
    open.check_game(game)?;
    let search = open.search.clone();
    blocking(move || search.lock().narrow(test, memory, frame)).await?;
    Ok(Json(open.response(&searches)))
}

/// Undoes the last step of a search. Up to 8 steps can be undone.
#[utoipa::path(post, path = "/v1/search/{id}/undo", operation_id = "undoSearch", tag = "search",
    params(("id" = u64, Path, description = "Number of the search.")),
    responses((status = 200, description = "The search in its state before that step.", body = SearchResponse)))]
async fn undo(
    State(operations): State<Arc<Operations>>,
    State(searches): State<Arc<SearchTable>>,
    caller: Owner,
    Path(id): Path<String>,
) -> Result<Json<SearchResponse>> {
    let open = Open::to_change(&operations, &searches, &id, caller)?;
    if !open.search.lock().undo() {
        return Err(Problem::conflict(format!("search {} has no step that can be undone", open.id)));
    }
    Ok(Json(open.response(&searches)))
}

/// Ends a search.
#[utoipa::path(delete, path = "/v1/search/{id}", operation_id = "endSearch", tag = "search",
    params(("id" = u64, Path, description = "Number of the search.")),
    responses((status = 204, description = "The search has ended.")))]
async fn remove(
    State(operations): State<Arc<Operations>>,
    State(searches): State<Arc<SearchTable>>,
    caller: Owner,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let open = Open::to_change(&operations, &searches, &id, caller)?;
    searches.remove(open.id, Instant::now());
    Ok(StatusCode::NO_CONTENT)
}

/// A search that a request names.
struct Open {
    id: u64,
    search: Arc<Mutex<Search>>,
    subject: SearchSubject,
    served: Arc<Served>,
}

impl Open {
    /// Finds a search, for a caller that changes it.
    fn to_change(operations: &Operations, searches: &SearchTable, id: &str, caller: Owner) -> Result<Open> {
        let open = Open::find(operations, searches, id)?;
        caller.check_change(&open.subject.owner, &format!("search {id}"))?;
        Ok(open)
    }

    /// Finds a search, for a caller that only reads. Every caller may do that.
    fn find(operations: &Operations, searches: &SearchTable, id: &str) -> Result<Open> {
        let missing = || {
            let idle = searches.idle().as_secs() / 60;
            Problem::not_found(format!(
                "there is no search {id}; begin a new one with POST /v1/search (a search ends {idle} minutes after its \
                 last request; if {SEARCHES} searches are open, a new one replaces the least recently used one)"
            ))
        };
        let number = id.parse().map_err(|_| missing())?;
        let (search, subject) = searches.get(number, Instant::now()).ok_or_else(missing)?;
        let served = operations.emulators.get(&subject.emulator).cloned().ok_or_else(missing)?;
        Ok(Open { id: number, search, subject, served })
    }

    fn response(&self, searches: &SearchTable) -> SearchResponse {
        respond(searches, self.id, self.subject.emulator.clone(), &self.search)
    }

    /// Fails if the emulator now has another game, in which the same addresses mean something else.
    fn check_game(&self, now: Option<u32>) -> Result<()> {
        let Some((own, now)) = self.subject.game.zip(now).filter(|(own, now)| own != now) else {
            return Ok(());
        };
        let id = self.id;
        Err(Problem::conflict(format!(
            "search {id} belongs to the game with the checksum {own:08x}, but another game ({now:08x}) is loaded; load the \
             first game again, or begin a new search with POST /v1/search"
        )))
    }
}

fn respond(searches: &SearchTable, id: u64, emulator: String, search: &Mutex<Search>) -> SearchResponse {
    SearchResponse::new(id, emulator, &search.lock(), searches.idle().as_secs())
}

/// The test with this name. Returns a problem if there is no such test, or if `value` does not fit the test and the
/// type.
fn test(is: &str, value: Option<i64>, number: Type) -> Result<Test> {
    let Some((_, takes_value)) = Test::NAMES.iter().find(|(name, _)| *name == is) else {
        let names: Vec<&str> = Test::NAMES.iter().map(|(name, _)| *name).collect();
        return Err(Problem::parameter("is", &format!("is {is:?}"), format!("one of {}", names.join(", "))));
    };
    let test = Test::named(is, value).ok_or_else(|| {
        if *takes_value {
            Problem::parameter("value", "is missing", format!("the number for {is}"))
        } else {
            Problem::parameter("value", &format!("is given, but {is} takes no value"), "no value")
        }
    })?;
    let (least, greatest) = test.values(number);
    match value {
        Some(value) if !(least..=greatest).contains(&value) => {
            let accepts = format!("{least} to {greatest} for {is} and {}", number.name());
            Err(Problem::parameter("value", &format!("is {value}"), accepts))
        }
        _ => Ok(test),
    }
}

impl From<PlanError> for Problem {
    fn from(error: PlanError) -> Problem {
        match error {
            PlanError::Alignment(other) => {
                Problem::parameter("alignment", &format!("is {other}"), "1, 2 or 4")
            }
            _ => Problem::at("areas", &error.to_string()),
        }
    }
}

impl From<OtherSize> for Problem {
    fn from(error: OtherSize) -> Problem {
        Problem::new(StatusCode::BAD_GATEWAY, error.to_string())
    }
}

async fn console(selected: &SelectedEmulator) -> Result<Console> {
    match i64::try_from(selected.perform_one(Op::Platform {}).await?)? {
        0 => Ok(Console::Gba),
        _ => Ok(Console::Gb),
    }
}

/// The areas in the request, or the default areas if the request has none.
async fn areas(selected: &SelectedEmulator, console: Console, wanted: Vec<SearchArea>) -> Result<Vec<Area>> {
    let domain = |name: &str| SearchArea { domain: Some(name.to_owned()), address: None, length: None };
    let usual = match console {
        Console::Gba => [domain("wram"), domain("iwram")],
        Console::Gb => [domain("wram"), domain("hram")],
    };
    let wanted = if wanted.is_empty() { Vec::from(usual) } else { wanted };
    // `Plan::new` checks this too, but only after the emulator was asked about each area.
    if wanted.len() > MAX_AREAS {
        return Err(PlanError::Areas(wanted.len()).into());
    }
    let mut areas = Vec::new();
    for (number, wanted) in wanted.into_iter().enumerate() {
        areas.push(area(selected, wanted, &format!("areas[{number}]")).await?);
    }
    Ok(areas)
}

async fn area(selected: &SelectedEmulator, wanted: SearchArea, at: &str) -> Result<Area> {
    let SearchArea { domain, address, length } = wanted;
    let name = format!("{at}.address");
    let symbols = selected.symbols().await;
    let place = |address| place_in(&address, domain.as_deref(), &symbols, &name).map(|place| place.address);
    let address = address.map(place).transpose()?;
    let Some(domain) = domain else {
        let missing = |field: &str, accepts: &str| {
            Problem::parameter(format!("{at}.{field}"), "is missing", format!("{accepts}, or a domain"))
        };
        let address = address.ok_or_else(|| missing("address", "an address on the bus"))?;
        let length = length.ok_or_else(|| missing("length", "a number of bytes"))?;
        return Ok(Area { domain: None, address, length });
    };
    let size: i64 = selected.perform_one(Op::DomainSize { domain: domain.clone() }).await?.try_into()?;
    let (address, size) = (address.unwrap_or(0), u32::try_from(size).unwrap_or(u32::MAX));
    if size == 0 {
        let problem = format!("is {domain:?}, which has no bytes in this game");
        return Err(Problem::parameter(format!("{at}.domain"), &problem, "a domain with bytes"));
    }
    if address >= size {
        let problem = format!("is {address}, but {domain} has only {size} bytes");
        return Err(Problem::parameter(name, &problem, format!("0 to {}", size - 1)));
    }
    let room = size - address;
    match length.unwrap_or(room) {
        length if (1..=room).contains(&length) => Ok(Area { domain: Some(domain), address, length }),
        length => {
            let problem = format!("is {length} from offset {address}, but {domain} has only {size} bytes");
            Err(Problem::parameter(format!("{at}.length"), &problem, format!("1 to {room}")))
        }
    }
}

/// The memory of a search's areas, all read after the same frame.
struct Reading {
    frame: u32,
    /// The checksum of the game at that time, if the emulator provides it.
    game: Option<u32>,
    /// The bytes of all areas, joined.
    memory: Vec<u8>,
}

async fn read(operations: &Operations, served: &Served, plan: &Plan) -> Result<Reading> {
    let op = |area: &Area| match &area.domain {
        None => Op::ReadRange { address: area.address, length: area.length },
        Some(domain) => {
            Op::DomainReadRange { domain: domain.clone(), address: area.address, length: area.length }
        }
    };
    let mut ops: Vec<Op> = plan.areas().iter().map(op).collect();
    ops.push(Op::Checksum {});
    let _share = operations.replies.share_all(&ops)?;
    let outcome = operations.perform(served, ops.into()).await?;
    if let Some((index, error)) = outcome.refusal()
        && index < plan.areas().len()
    {
        return Err(Problem::refused_access(&format!("areas[{index}].address"), error));
    }
    let mut results = outcome.results.into_iter();
    let mut memory = Vec::new();
    for _ in plan.areas() {
        memory.extend(Vec::<u8>::try_from(next_result(&mut results)?)?);
    }
    let game = match results.next() {
        Some(Ok(Value::Int(checksum))) => Some(checksum as u32),
        _ => None,
    };
    Ok(Reading { frame: outcome.frame, game, memory })
}
