//! Where a search looks, and what is there.

use framewire_protocol::{Batch, Op, Value};
use framewire_states::Console;
use framewire_states::search::{Area, Plan};

use super::shapes::SearchArea;
use crate::operations::Operations;
use crate::operations::emulators::Served;
use crate::problem::Problem;
use crate::reading::fields::place_in;
use crate::v1::bounds::refused;
use crate::v1::states::load::{next, unexpected_reply};

/// The console whose memory it is.
pub(super) async fn console(operations: &Operations, served: &Served) -> Result<Console, Problem> {
    match operations.perform(served, Op::Platform {}.into()).await?.single()? {
        Value::Int(0) => Ok(Console::Gba),
        _ => Ok(Console::Gb),
    }
}

/// The areas that a caller wants; without any, all of the console's work RAM.
pub(super) async fn areas(
    operations: &Operations,
    served: &Served,
    console: Console,
    wanted: Vec<SearchArea>,
) -> Result<Vec<Area>, Problem> {
    let domain = |name: &str| SearchArea { domain: Some(name.to_owned()), address: None, length: None };
    let wanted = match (wanted.is_empty(), console) {
        (false, _) => wanted,
        (true, Console::Gba) => vec![domain("wram"), domain("iwram")],
        (true, Console::Gb) => vec![domain("wram"), domain("hram")],
    };
    let mut areas = Vec::new();
    for (number, wanted) in wanted.into_iter().enumerate() {
        areas.push(area(operations, served, wanted, &format!("areas[{number}]")).await?);
    }
    Ok(areas)
}

async fn area(
    operations: &Operations,
    served: &Served,
    wanted: SearchArea,
    at: &str,
) -> Result<Area, Problem> {
    let SearchArea { domain, address, length } = wanted;
    let name = format!("{at}.address");
    let symbols = served.symbols().await;
    let place = |address| place_in(&address, domain.as_deref(), &symbols, &name);
    let address = address.map(place).transpose()?;
    let address = address.map(|place| place.address);
    let Some(domain) = domain else {
        let missing = |field: &str, accepts: &str| {
            Problem::parameter(
                format!("{at}.{field}"),
                "is missing",
                format!("{accepts}, or a domain with it"),
            )
        };
        let address = address.ok_or_else(|| missing("address", "an address on the bus"))?;
        let length = length.ok_or_else(|| missing("length", "a number of bytes"))?;
        return Ok(Area { domain: None, address, length });
    };
    // Asked for even if it is not needed: so a domain that is not there is named.
    let size =
        operations.perform(served, Op::DomainSize { domain: domain.clone() }.into()).await?.single()?;
    let Value::Int(size) = size else { return Err(unexpected_reply()) };
    let (address, size) = (address.unwrap_or(0), u32::try_from(size).unwrap_or(u32::MAX));
    let room = size.saturating_sub(address);
    match length.unwrap_or(room) {
        length if (1..=room).contains(&length) => Ok(Area { domain: Some(domain), address, length }),
        length => {
            let problem = format!("is {length} from offset {address} on, where {domain} has {size} bytes");
            Err(Problem::parameter(format!("{at}.length"), &problem, format!("1 to {room}")))
        }
    }
}

/// What the areas hold at one frame boundary, joined, and which that is.
pub(super) async fn read(
    operations: &Operations,
    served: &Served,
    plan: &Plan,
) -> Result<(u32, Vec<u8>), Problem> {
    let op = |area: &Area| match &area.domain {
        None => Op::ReadRange { address: area.address, length: area.length },
        Some(domain) => {
            Op::DomainReadRange { domain: domain.clone(), address: area.address, length: area.length }
        }
    };
    let ops: Vec<Op> = plan.areas().iter().map(op).collect();
    let _share = operations.replies.share_all(&ops)?;
    let outcome = operations.perform(served, Batch::new(ops)).await?;
    if let Some((index, error)) = outcome.refusal() {
        return Err(refused(&format!("areas[{index}].address"), error));
    }
    let mut results = outcome.results.into_iter();
    let mut memory = Vec::new();
    for _ in plan.areas() {
        match next(&mut results)? {
            Value::Bytes(bytes) => memory.extend(bytes),
            _ => return Err(unexpected_reply()),
        }
    }
    Ok((outcome.frame, memory))
}
