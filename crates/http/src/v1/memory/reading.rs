use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use framewire_expression::Type;
use framewire_protocol::{MAX_RANGE, Op, OpError, Value};
use framewire_symbols::Location;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::place;
use crate::headers::FRAME;
use crate::operations::Operations;
use crate::operations::budget::BudgetShare;
use crate::problem::Problem;
use crate::reading::fields::{Encoding, NumberType};
use crate::routing::extract::{EmulatorParam, Path, Query, SelectedEmulator};
use crate::v1::bounds::perform_one;
use crate::v1::convenience::{number, read_op};

/// How bytes are given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum BytesFormat {
    /// In JSON, as text.
    #[default]
    Json,
    /// As they are.
    Raw,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReadQuery {
    /// The type of the number; left out, that of the symbol, or u8.
    #[serde(rename = "type")]
    #[param(inline)]
    kind: Option<NumberType>,
    /// Number of bytes to read instead of a number.
    #[param(minimum = 0, maximum = 16777216)]
    length: Option<u32>,
    /// The memory domain, such as wram; left out, the bus.
    domain: Option<String>,
    /// How bytes are written in JSON.
    #[serde(default)]
    #[param(inline)]
    encoding: Encoding,
    /// Whether bytes come in JSON or as they are.
    #[serde(default)]
    #[param(inline)]
    format: BytesFormat,
}

/// A number, or bytes.
#[derive(Serialize, ToSchema)]
#[schema(as = Content)]
pub(super) struct MemoryContent {
    /// The frame counter when it was read.
    frame: u32,
    /// Bus address, or offset in the domain.
    address: u32,
    /// The type of the number.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// The number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    value: Option<serde_json::Value>,
    /// The bytes, in the encoding that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

/// Reads a number, or with length bytes.
///
/// The address is decimal, hex after 0x, or a symbol such as score, score+2 or presses\[1\].
#[utoipa::path(get, path = "/v1/memory/{address}", operation_id = "readMemory", tag = "memory",
    params(("address" = String, Path, description = "The address."), EmulatorParam, ReadQuery),
    responses((status = 200, description = "What is there.", content(
        (MemoryContent = "application/json"), (Vec<u8> = "application/octet-stream")))))]
pub(super) async fn read(
    State(operations): State<Arc<Operations>>,
    SelectedEmulator(served): SelectedEmulator,
    Path(text): Path<String>,
    Query(wanted): Query<ReadQuery>,
) -> Result<Response, Problem> {
    let symbols = served.symbols().await;
    let Location { address, kind } = place(&text, wanted.domain.as_deref(), &symbols)?;
    let Some(length) = wanted.length else {
        if wanted.format == BytesFormat::Raw {
            return Err(Problem::parameter("format", "is raw for a number", "raw together with length"));
        }
        let kind = wanted.kind.map(Type::from).or(kind).unwrap_or(Type::U8);
        let outcome = perform_one(&operations, &served, read_op(kind, address, wanted.domain)).await?;
        let frame = outcome.frame;
        let value = Some(number(kind, &outcome.single()?));
        let content = MemoryContent { frame, address, kind: Some(kind.name()), value, data: None };
        return Ok(Json(content).into_response());
    };
    if length > MAX_RANGE {
        return Err(Problem::parameter("length", &format!("is {length}"), format!("0 to {MAX_RANGE} bytes")));
    }
    let op = match wanted.domain {
        None => Op::ReadRange { address, length },
        Some(domain) => Op::DomainReadRange { domain, address, length },
    };
    let share = operations.replies.share(&op)?;
    let outcome = perform_one(&operations, &served, op).await?;
    let frame = outcome.frame;
    let Value::Bytes(bytes) = outcome.single()? else {
        return Err(OpError::failed("the emulator gave something else than bytes").into());
    };
    Ok(match wanted.format {
        BytesFormat::Raw => raw(frame, bytes, share),
        BytesFormat::Json => {
            let data = Some(wanted.encoding.text(&bytes));
            let content = MemoryContent { frame, address, kind: None, value: None, data };
            share.json(&content)
        }
    })
}

fn raw(frame: u32, bytes: Vec<u8>, share: BudgetShare) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (FRAME, HeaderValue::from(frame)),
    ];
    (headers, share.body(bytes)).into_response()
}
