use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use framewire_protocol::{Batch, Op, OpError, Value};
use serde::Serialize;
use utoipa::ToSchema;

use crate::operations::Operations;
use crate::problem::Problem;
use crate::routing::extract::{EmulatorParam, SelectedEmulator};

/// A memory domain.
#[derive(Serialize, ToSchema)]
struct Domain {
    /// What `domain` calls it.
    id: String,
    /// What it is called for people.
    name: String,
    /// The bus address at which it begins.
    base: u32,
    /// Its size in bytes.
    size: u32,
}

/// Memory domains.
#[derive(Serialize, ToSchema)]
pub(super) struct Domains {
    /// In the emulator's order.
    domains: Vec<Domain>,
}

/// The memory domains of the game's console.
#[utoipa::path(get, path = "/v1/domains", operation_id = "domains", tag = "memory", params(EmulatorParam),
    responses((status = 200, description = "The domains.", body = Domains)))]
pub(super) async fn domains(
    State(operations): State<Arc<Operations>>,
    SelectedEmulator(served): SelectedEmulator,
) -> Result<Json<Domains>, Problem> {
    let Value::List(ids) = operations.perform(&served, Op::Domains {}.into()).await?.single()? else {
        return Err(OpError::failed("the emulator gave something else than names").into());
    };
    let ids: Vec<String> = ids.into_iter().filter_map(text).collect();
    let ask = |id: &String| {
        let domain = || id.clone();
        [
            Op::DomainName { domain: domain() },
            Op::DomainBase { domain: domain() },
            Op::DomainSize { domain: domain() },
        ]
    };
    let outcome = operations.perform(&served, Batch::new(ids.iter().flat_map(ask).collect())).await?;
    let mut values = outcome.results.into_iter();
    let mut next = || values.next().unwrap_or_else(|| Err(OpError::failed("the reply is too short")));
    let mut domains = Vec::with_capacity(ids.len());
    for id in ids {
        let (name, base, size) = (text(next()?).unwrap_or_default(), unsigned(next()?), unsigned(next()?));
        domains.push(Domain { id, name, base, size });
    }
    Ok(Json(Domains { domains }))
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn unsigned(value: Value) -> u32 {
    match value {
        Value::Int(number) => number as u32,
        _ => 0,
    }
}
