use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use framewire_expression::Type;
use framewire_protocol::{Batch, MAX_OPS, OpError, Value};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::place;
use crate::operations::Operations;
use crate::problem::Problem;
use crate::reading::fields::NumberType;
use crate::routing::extract::{EmulatorParam, Query, SelectedEmulator};
use crate::v1::bounds::perform_one;
use crate::v1::convenience::{number, read_op};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ScatteredQuery {
    /// An address, repeated for each: decimal, hex after 0x, or a symbol such as score, score+2 or presses[1].
    #[serde(default)]
    #[param(min_items = 1, max_items = 4096)]
    address: Vec<String>,
    /// The type of all of them; left out, that of each symbol, or u8.
    #[serde(rename = "type")]
    #[param(inline)]
    kind: Option<NumberType>,
    /// The memory domain, such as wram; left out, the bus.
    domain: Option<String>,
}

/// Numbers read at one frame.
#[derive(Serialize, ToSchema)]
pub(super) struct Numbers {
    /// The frame counter then.
    frame: u32,
    /// One for each address, in order.
    #[schema(value_type = Vec<i64>)]
    values: Vec<serde_json::Value>,
}

/// Reads numbers at scattered addresses, all at one frame.
#[utoipa::path(get, path = "/v1/memory", operation_id = "readScattered", tag = "memory", params(EmulatorParam, ScatteredQuery),
    responses((status = 200, description = "The numbers.", body = Numbers)))]
pub(super) async fn scattered(
    State(operations): State<Arc<Operations>>,
    SelectedEmulator(served): SelectedEmulator,
    Query(many): Query<ScatteredQuery>,
) -> Result<Json<Numbers>, Problem> {
    if !(1..=MAX_OPS).contains(&many.address.len()) {
        let problem = format!("is given {} times", many.address.len());
        return Err(Problem::parameter(
            "address",
            &problem,
            "1 to 4096 addresses (address=score&address=lives)",
        ));
    }
    let (mut ops, mut types) = (Vec::new(), Vec::new());
    let symbols = served.symbols().await;
    for text in &many.address {
        let place = place(text, many.domain.as_deref(), &symbols)?;
        let kind = many.kind.map(Type::from).or(place.kind).unwrap_or(Type::U8);
        ops.push(read_op(kind, place.address, many.domain.clone()));
        types.push(kind);
    }
    let outcome = perform_one(&operations, &served, Batch::new(ops)).await?;
    let values: Vec<Value> = outcome.results.into_iter().collect::<Result<_, OpError>>()?;
    let values = types.iter().zip(&values).map(|(kind, value)| number(*kind, value)).collect();
    Ok(Json(Numbers { frame: outcome.frame, values }))
}
