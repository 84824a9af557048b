//! Memory by address: numbers and bytes, on the bus or in a memory domain.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use framewire_expression::Type;
use framewire_protocol::{Batch, MAX_OPS, MAX_RANGE, Op, OpError, Value};
use serde::{Deserialize, Serialize};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::bounds::perform_one;
use super::control::AtFrame;
use super::convenience::{number, range, read_op, write_op};
use super::extract::{Chosen, Key, Once, Path, Query, Which};
use super::fields::{Encoding, integer, place_in, shown};
use super::{Problem, reading};
use crate::app::Site;
use crate::budget::Share;
use crate::symbols::{Place, Symbols};
use crate::{body, openapi};

/// The header that says at which frame bytes were read.
pub(super) const FRAME: HeaderName = HeaderName::from_static("framewire-frame");

pub(super) fn router() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(scattered)).routes(routes!(read, write)).routes(routes!(domains))
}

/// A type of number.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum NumberType {
    U8,
    U16,
    U32,
    I8,
    I16,
    I32,
}

impl From<NumberType> for Type {
    fn from(kind: NumberType) -> Type {
        match kind {
            NumberType::U8 => Type::U8,
            NumberType::U16 => Type::U16,
            NumberType::U32 => Type::U32,
            NumberType::I8 => Type::I8,
            NumberType::I16 => Type::I16,
            NumberType::I32 => Type::I32,
        }
    }
}

/// How bytes are given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// In JSON, as text.
    #[default]
    Json,
    /// As they are.
    Raw,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Many {
    /// An address, repeated for each: decimal, hex behind 0x, or a symbol such as score, score+2 or presses[1].
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
struct Numbers {
    /// The frame counter then.
    frame: u32,
    /// One for each address, in order.
    #[schema(value_type = Vec<i64>)]
    values: Vec<serde_json::Value>,
}

/// Reads numbers at scattered addresses, all at one frame.
#[utoipa::path(get, path = "/v1/memory", operation_id = "readScattered", tag = "memory", params(Which, Many),
    responses((status = 200, description = "The numbers.", body = Numbers)))]
async fn scattered(
    State(site): State<Arc<Site>>,
    Chosen(served): Chosen,
    Query(many): Query<Many>,
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
    for text in &many.address {
        let place = place(text, many.domain.as_deref(), &served.symbols)?;
        let kind = many.kind.map(Type::from).or(place.kind).unwrap_or(Type::U8);
        ops.push(read_op(kind, place.address, many.domain.clone()));
        types.push(kind);
    }
    let outcome = perform_one(&site, &served, Batch::new(ops)).await?;
    let values: Vec<Value> = outcome.results.into_iter().collect::<Result<_, OpError>>()?;
    let values = types.iter().zip(&values).map(|(kind, value)| number(*kind, value)).collect();
    Ok(Json(Numbers { frame: outcome.frame, values }))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Wanted {
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
    format: Format,
}

/// A number, or bytes.
#[derive(Serialize, ToSchema)]
struct Content {
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
/// The address is decimal, hex behind 0x, or a symbol such as score, score+2 or presses\[1\].
#[utoipa::path(get, path = "/v1/memory/{address}", operation_id = "readMemory", tag = "memory",
    params(("address" = String, Path, description = "The address."), Which, Wanted),
    responses((status = 200, description = "What is there.", content(
        (Content = "application/json"), (Vec<u8> = "application/octet-stream")))))]
async fn read(
    State(site): State<Arc<Site>>,
    Chosen(served): Chosen,
    Path(text): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Problem> {
    let Place { address, kind } = place(&text, wanted.domain.as_deref(), &served.symbols)?;
    let Some(length) = wanted.length else {
        if wanted.format == Format::Raw {
            return Err(Problem::parameter("format", "is raw for a number", "raw together with length"));
        }
        let kind = wanted.kind.map(Type::from).or(kind).unwrap_or(Type::U8);
        let outcome = perform_one(&site, &served, read_op(kind, address, wanted.domain)).await?;
        let frame = outcome.frame;
        let value = Some(number(kind, &outcome.single()?));
        let content = Content { frame, address, kind: Some(kind.name()), value, data: None };
        return Ok(Json(content).into_response());
    };
    if length > MAX_RANGE {
        return Err(Problem::parameter("length", &format!("is {length}"), format!("0 to {MAX_RANGE} bytes")));
    }
    let op = match wanted.domain {
        None => Op::ReadRange { address, length },
        Some(domain) => Op::DomainReadRange { domain, address, length },
    };
    let share = site.replies.share(&op)?;
    let outcome = perform_one(&site, &served, op).await?;
    let frame = outcome.frame;
    let Value::Bytes(bytes) = outcome.single()? else {
        return Err(OpError::failed("the emulator gave something else than bytes").into());
    };
    Ok(match wanted.format {
        Format::Raw => raw(frame, bytes, share),
        Format::Json => {
            let data = Some(wanted.encoding.text(&bytes));
            let content = Content { frame, address, kind: None, value: None, data };
            share.json(&content)
        }
    })
}

fn raw(frame: u32, bytes: Vec<u8>, share: Share) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (FRAME, HeaderValue::from(frame)),
    ];
    (headers, share.body(bytes)).into_response()
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Where {
    /// The memory domain, such as wram; left out, the bus.
    domain: Option<String>,
}

/// What to write: a value or data.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"value": 1}))]
struct NewContent {
    /// A number, or text in hex such as 0x1f.
    #[schema(schema_with = value_schema, required = false)]
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

fn value_schema() -> RefOr<Schema> {
    openapi::number(i32::MIN.into(), u32::MAX.into()).into()
}

/// Writes a number, or bytes.
///
/// The address is decimal, hex behind 0x, or a symbol. A body of type application/octet-stream is written as it is.
#[utoipa::path(put, path = "/v1/memory/{address}", operation_id = "writeMemory", tag = "memory",
    params(("address" = String, Path, description = "The address."), Which, Once, Where),
    request_body(description = "What to write.", content(
        (NewContent = "application/json"), (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, description = "It was written.", body = AtFrame)))]
async fn write(
    State(site): State<Arc<Site>>,
    Chosen(served): Chosen,
    Path(text): Path<String>,
    Key(key): Key,
    Query(Where { domain }): Query<Where>,
    request: Request,
) -> Result<Json<AtFrame>, Problem> {
    let place = place(&text, domain.as_deref(), &served.symbols)?;
    let raw = request.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/octet-stream");
    let bytes = body::read(request.into_body(), site.app.limits.max_body, &site).await?;
    let op = match raw {
        true => write_bytes(place.address, domain, bytes.into())?,
        false => new_content(reading::body(&bytes)?, place, domain)?,
    };
    let outcome = perform_one(&site, &served, Batch { key, ..op.into() }).await?;
    let frame = outcome.frame;
    outcome.single()?;
    Ok(Json(AtFrame { frame }))
}

fn new_content(content: NewContent, place: Place, domain: Option<String>) -> Result<Op, Problem> {
    match content {
        NewContent { value: Some(value), data: None, kind, .. } => {
            let kind = kind.map(Type::from).or(place.kind).unwrap_or(Type::U8);
            let (min, max) = range(kind);
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
struct Domains {
    /// In the emulator's order.
    domains: Vec<Domain>,
}

/// The memory domains of the game's console.
#[utoipa::path(get, path = "/v1/domains", operation_id = "domains", tag = "memory", params(Which),
    responses((status = 200, description = "The domains.", body = Domains)))]
async fn domains(State(site): State<Arc<Site>>, Chosen(served): Chosen) -> Result<Json<Domains>, Problem> {
    let Value::List(ids) = site.perform(&served, Op::Domains {}.into()).await?.single()? else {
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
    let outcome = site.perform(&served, Batch::new(ids.iter().flat_map(ask).collect())).await?;
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

/// An address in a path or query, or with a domain an offset there.
fn place(text: &str, domain: Option<&str>, symbols: &Symbols) -> Result<Place, Problem> {
    place_in(&text.into(), domain, symbols, "address")
}
