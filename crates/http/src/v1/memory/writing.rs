use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use framewire_expression::Type;
use framewire_protocol::{Batch, Op};
use framewire_symbols::Location;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::place;
use crate::operations::Operations;
use crate::problem::Problem;
use crate::reading;
use crate::reading::fields::{Encoding, NumberType, integer, shown};
use crate::routing::extract::{EmulatorParam, Path, Query, RequestKey, SelectedEmulator};
use crate::transport::incoming::BodyReader;
use crate::v1::bounds::perform_one;
use crate::v1::control::AtFrame;
use crate::v1::convenience::write_op;
use crate::v1::schemas::Number;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WriteQuery {
    /// The memory domain, such as wram; left out, the bus.
    domain: Option<String>,
}

/// What to write: a value or data.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"value": 1}))]
pub(super) struct NewContent {
    /// A number, or text in hex such as 0x1f.
    #[schema(value_type = Number, required = false)]
    value: Option<serde_json::Value>,
    /// The type of the number; left out, that of the symbol, or u8.
    #[serde(rename = "type")]
    kind: Option<NumberType>,
    /// Bytes as text.
    data: Option<String>,
    /// How the bytes are written.
    #[serde(default)]
    encoding: Encoding,
}

/// Writes a number, or bytes.
///
/// The address is decimal, hex after 0x, or a symbol. A body of type application/octet-stream is written as it is.
#[utoipa::path(put, path = "/v1/memory/{address}", operation_id = "writeMemory", tag = "memory",
    params(("address" = String, Path, description = "The address."), EmulatorParam, WriteQuery),
    request_body(description = "What to write.", content(
        (NewContent = "application/json"), (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, description = "It was written.", body = AtFrame)))]
pub(super) async fn write(
    State(operations): State<Arc<Operations>>,
    State(bodies): State<Arc<BodyReader>>,
    SelectedEmulator(served): SelectedEmulator,
    Path(text): Path<String>,
    RequestKey(key): RequestKey,
    Query(WriteQuery { domain }): Query<WriteQuery>,
    request: Request,
) -> Result<Json<AtFrame>, Problem> {
    let symbols = served.symbols().await;
    let place = place(&text, domain.as_deref(), &symbols)?;
    let raw = request.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/octet-stream");
    let bytes = bodies.read(request.into_body()).await?;
    let op = if raw {
        write_bytes(place.address, domain, bytes.into())?
    } else {
        new_content(reading::body(&bytes)?, place, domain)?
    };
    let outcome = perform_one(&operations, &served, Batch { key, ..op.into() }).await?;
    let frame = outcome.frame;
    outcome.single()?;
    Ok(Json(AtFrame { frame }))
}

fn new_content(content: NewContent, place: Location, domain: Option<String>) -> Result<Op, Problem> {
    match content {
        NewContent { value: Some(value), data: None, kind, .. } => {
            let kind = kind.map(Type::from).or(place.kind).unwrap_or(Type::U8);
            let (min, max) = kind.range();
            let bits = integer(&value).filter(|bits| (min..=max).contains(bits)).ok_or_else(|| {
                let accepts = format!("a whole number from {min} to {max} ({}), or text in hex", kind.name());
                Problem::parameter("value", &format!("is {}", shown(&value)), accepts)
            })?;
            Ok(write_op(kind, place.address, domain, bits as u32))
        }
        NewContent { value: None, data: Some(data), kind: None, encoding } => {
            let bytes = encoding.bytes(&data).ok_or_else(|| {
                Problem::parameter("data", "cannot be read", "base64 text, or hex with \"encoding\": \"hex\"")
            })?;
            write_bytes(place.address, domain, bytes)
        }
        _ => Err(Problem::bad_request("either value, with or without type, or data is accepted")),
    }
}

fn write_bytes(address: u32, domain: Option<String>, data: Vec<u8>) -> Result<Op, Problem> {
    match domain {
        None => Ok(Op::WriteRange { address, data }),
        Some(_) => Err(Problem::parameter(
            "domain",
            "is given with bytes",
            "no domain: bytes are written to the bus, and GET /v1/domains says where each domain is there",
        )),
    }
}
