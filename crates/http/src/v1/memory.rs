//! Memory by address: numbers and bytes, on the bus or in a memory domain.

use axum::extract::Request;
use framewire_expression::Type;
use framewire_protocol::{MAX_OPS, MAX_RANGE, Op, OpError, Value};
use framewire_symbols::Symbols;

use super::control::{AtFrame, change};
use super::convenience::{NumberForm, check_domain, number, read_at, read_op, type_to_write, write_op};
use super::schemas::Number;
use super::states::next_result;
use crate::headers::{FRAME, content_type};
use crate::reading::fields::{self, Address, Encoding, Target, integer, wrong_value};
use crate::reading::{self, Whole};
use crate::routing::prelude::*;
use crate::transport::incoming::BodyReader;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(scattered)).routes(routes!(read, write)).routes(routes!(domains))
}

/// An address in a path or query. With a domain, it is an offset in that domain.
fn target(text: &str, domain: Option<&str>, symbols: &Symbols) -> Result<Target> {
    fields::target(&text.into(), domain, symbols, "address")
}

/// The form of the bytes in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum BytesFormat {
    /// In JSON, as text.
    #[default]
    Json,
    /// Unchanged, as the body of the reply.
    Raw,
    /// As text, decoded with the game's character table. Without a table, as UTF-8 up to the first byte that is 0.
    Text,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ReadQuery {
    /// The type of the number. Default: the type of the symbol, or u8.
    #[serde(rename = "type")]
    #[param(inline)]
    kind: Option<Type>,
    /// How many bytes to read. Without this parameter, a number is read.
    #[param(value_type = Option<u32>, minimum = 0, maximum = 16777216)]
    length: Option<Whole<0, MAX_RANGE>>,
    /// The memory domain, such as wram. Default: the bus.
    domain: Option<String>,
    /// How bytes are written in JSON.
    #[serde(default)]
    #[param(inline)]
    encoding: Encoding,
    /// Whether the reply has bytes in JSON, unchanged bytes as its body, or the text that they stand for.
    #[serde(default)]
    #[param(inline)]
    format: BytesFormat,
}

/// A number, or bytes.
#[derive(Serialize, ToSchema)]
#[schema(as = Content)]
struct MemoryContent {
    /// The frame counter when it was read.
    frame: u32,
    /// Bus address, or offset in the domain.
    address: u32,
    /// The type of the number.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// The number. It is a whole number, unless it has another format in the memory map, such as fixed point.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    value: Option<serde_json::Value>,
    /// The bytes, in the requested encoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    /// The text that the bytes stand for.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// Reads a number, or bytes if `length` is given.
///
/// The address is a decimal number, a hex number after 0x, a symbol such as score, score+2 or presses\[1\], or an
/// expression that reads the address from memory, such as u32\[0x03005D8C\] + 4.
#[utoipa::path(get, path = "/v1/memory/{address}", operation_id = "readMemory", tag = "memory",
    params(("address" = String, Path, description = "The address."), EmulatorParam, ReadQuery),
    responses((status = 200, description = "The number or the bytes.", content(
        (MemoryContent = "application/json"), (Vec<u8> = "application/octet-stream")))))]
async fn read(
    selected: SelectedEmulator,
    Path(text): Path<String>,
    Query(wanted): Query<ReadQuery>,
) -> Result<Response> {
    let symbols = selected.symbols().await;
    let target = target(&text, wanted.domain.as_deref(), &symbols)?;
    let address = &target.address;
    let Some(length) = wanted.length.map(Whole::get) else {
        if wanted.format != BytesFormat::Json {
            let accepts = "raw or text together with length";
            return Err(Problem::parameter("format", "is given for a number", accepts));
        }
        let form = NumberForm::of(wanted.kind, &target);
        let op = read_op(form.kind, address.clone(), wanted.domain);
        let outcome = selected.perform_checked(op).await?;
        let (frame, value) = (outcome.frame, outcome.single()?);
        let address = address_of(address, &value)?;
        let value = Some(number(form, &value));
        let content =
            MemoryContent { frame, address, kind: Some(form.kind.name()), value, data: None, text: None };
        return Ok(Json(content).into_response());
    };
    if wanted.kind.is_some() {
        let accepts = "either type, for a number, or length, for bytes";
        return Err(Problem::parameter("type", "is given with length", accepts));
    }
    let op = match (address, wanted.domain) {
        (Address::Known(address), None) => Op::ReadRange { address: *address, length },
        (Address::Known(address), Some(domain)) => Op::DomainReadRange { domain, address: *address, length },
        (Address::Computed(code), _) => Op::ReadAt { address: code.clone(), length },
    };
    // Reserve memory for the reply.
    let share = selected.share(&op)?;
    let outcome = selected.perform_checked(op).await?;
    let (frame, value) = (outcome.frame, outcome.single()?);
    let known = address_of(address, &value)?;
    let mut bytes: Vec<u8> = value.try_into()?;
    if matches!(address, Address::Computed(_)) {
        bytes.drain(..size_of_val(&known));
    }
    let (data, text) = match wanted.format {
        BytesFormat::Raw => {
            let reply = share.bytes("application/octet-stream", bytes);
            return Ok(([(FRAME, frame.to_string())], reply).into_response());
        }
        BytesFormat::Json => (Some(wanted.encoding.text(&bytes)), None),
        BytesFormat::Text => (None, Some(symbols.decode_text(&bytes))),
    };
    Ok(share.json(&MemoryContent { frame, address: known, kind: None, value: None, data, text }))
}

/// The address that was read. The result of [`Op::ReadAt`] begins with it.
fn address_of(address: &Address, result: &Value) -> Result<u32, OpError> {
    match (address, result) {
        (Address::Known(address), _) => Ok(*address),
        (Address::Computed(_), Value::Bytes(bytes)) => {
            read_at(bytes).map(|(address, _)| address).ok_or_else(OpError::unexpected_reply)
        }
        (Address::Computed(_), _) => Err(OpError::unexpected_reply()),
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ScatteredQuery {
    /// An address, in the same form as in readMemory. Repeat the parameter for each address.
    #[serde(default)]
    #[param(min_items = 1, max_items = 4096)]
    address: Vec<String>,
    /// The type of all numbers. Default: the type of each symbol, or u8.
    #[serde(rename = "type")]
    #[param(inline)]
    kind: Option<Type>,
    /// The memory domain, such as wram. Default: the bus.
    domain: Option<String>,
}

/// Numbers read at one frame.
#[derive(Serialize, ToSchema)]
struct Numbers {
    /// The frame counter at that time.
    frame: u32,
    /// One number for each address, in order.
    #[schema(value_type = Vec<f64>)]
    values: Vec<serde_json::Value>,
}

/// Reads numbers at several addresses, all at the same frame.
#[utoipa::path(get, path = "/v1/memory", operation_id = "readScattered", tag = "memory", params(EmulatorParam, ScatteredQuery),
    responses((status = 200, description = "The numbers.", body = Numbers)))]
async fn scattered(selected: SelectedEmulator, Query(many): Query<ScatteredQuery>) -> Result<Json<Numbers>> {
    if !(1..=MAX_OPS).contains(&many.address.len()) {
        let problem = format!("is given {} times", many.address.len());
        let accepts = "1 to 4096 addresses (address=score&address=lives)";
        return Err(Problem::parameter("address", &problem, accepts));
    }
    check_domain(many.domain.as_deref())?;
    let (mut ops, mut types) = (Vec::new(), Vec::new());
    let symbols = selected.symbols().await;
    for text in &many.address {
        let target = target(text, many.domain.as_deref(), &symbols)?;
        let number = NumberForm::of(many.kind, &target);
        ops.push(read_op(number.kind, target.address, many.domain.clone()));
        types.push(number);
    }
    let outcome = selected.perform_checked(ops).await?;
    let values: Vec<Value> = outcome.results.into_iter().collect::<Result<_, OpError>>()?;
    let values = types.iter().zip(&values).map(|(form, value)| number(*form, value)).collect();
    Ok(Json(Numbers { frame: outcome.frame, values }))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct WriteQuery {
    /// The memory domain, such as wram. Default: the bus.
    domain: Option<String>,
}

/// What to write: a value or data.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"value": 1}))]
pub(super) struct NewContent {
    /// A number, or a string in hex such as 0x1f.
    #[schema(value_type = Number, required = false)]
    value: Option<serde_json::Value>,
    /// The type of the number. Default: the type of the symbol, or u8.
    #[serde(rename = "type")]
    kind: Option<Type>,
    /// Bytes, encoded as text.
    data: Option<String>,
    /// The encoding of the bytes.
    #[serde(default)]
    encoding: Encoding,
}

/// Writes a number, or bytes.
///
/// The address has the same form as in readMemory. A body of type application/octet-stream is written to memory
/// unchanged.
#[utoipa::path(put, path = "/v1/memory/{address}", operation_id = "writeMemory", tag = "memory",
    params(("address" = String, Path, description = "The address."), EmulatorParam, WriteQuery),
    request_body(description = "What to write.", content(
        (NewContent = "application/json"), (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, description = "The memory was written.", body = AtFrame)))]
async fn write(
    State(bodies): State<Arc<BodyReader>>,
    selected: SelectedEmulator,
    Path(text): Path<String>,
    Query(WriteQuery { domain }): Query<WriteQuery>,
    request: Request,
) -> Result<Json<AtFrame>> {
    let symbols = selected.symbols().await;
    let target = target(&text, domain.as_deref(), &symbols)?;
    let kind = content_type(request.headers()).split(';').next().unwrap_or_default().trim();
    let raw = kind.eq_ignore_ascii_case("application/octet-stream");
    let bytes = bodies.read(request.into_body()).await?;
    let content = if raw {
        Content::Bytes(bytes.into())
    } else {
        reading::body::<NewContent>(&bytes)?.read(&target)?
    };
    let op = match (content, target.address, domain) {
        (Content::Number(kind, bits), address, domain) => write_op(kind, address, domain, bits),
        (Content::Bytes(data), Address::Known(address), None) => Op::WriteRange { address, data },
        (Content::Bytes(data), Address::Computed(address), None) => Op::WriteAt { address, data },
        (Content::Bytes(_), _, Some(_)) => {
            let accepts = "no domain: bytes are written to the bus, and GET /v1/domains lists the bus address of each domain";
            return Err(Problem::parameter("domain", "is given with bytes", accepts));
        }
    };
    change(&selected, op).await
}

/// Checked content to write.
pub(super) enum Content {
    /// A number of this type, as its lowest 32 bits.
    Number(Type, u32),
    Bytes(Vec<u8>),
}

impl NewContent {
    /// Checks the content, which is to be written to `target`.
    pub(super) fn read(self, target: &Target) -> Result<Content> {
        match self {
            NewContent { value: Some(value), data: None, kind, .. } => {
                let kind = type_to_write(kind, target)?;
                let (min, max) = kind.range();
                let bits = integer(&value).filter(|bits| (min..=max).contains(bits)).ok_or_else(|| {
                    let accepts =
                        format!("a whole number from {min} to {max} ({}), or text in hex", kind.name());
                    wrong_value("value", &value, accepts)
                })?;
                Ok(Content::Number(kind, bits as u32))
            }
            NewContent { value: None, data: Some(data), kind: None, encoding } => {
                let bytes = encoding.bytes(&data).ok_or_else(|| {
                    let accepts = "base64 text, or hex with \"encoding\": \"hex\"";
                    Problem::parameter("data", "cannot be read", accepts)
                })?;
                Ok(Content::Bytes(bytes))
            }
            _ => Err(Problem::bad_request("give either value (type is optional) or data (without type)")),
        }
    }
}

/// A memory domain.
#[derive(Serialize, ToSchema)]
struct Domain {
    /// The name that the parameter `domain` accepts.
    id: String,
    /// The name to display.
    name: String,
    /// The bus address at which it begins.
    base: u32,
    /// Its size in bytes.
    size: u32,
}

/// Memory domains.
#[derive(Serialize, ToSchema)]
struct Domains {
    /// The domains, in the emulator's order.
    domains: Vec<Domain>,
}

/// Lists the memory domains of the game's console.
#[utoipa::path(get, path = "/v1/domains", operation_id = "domains", tag = "memory", params(EmulatorParam),
    responses((status = 200, description = "The domains.", body = Domains)))]
async fn domains(selected: SelectedEmulator) -> Result<Json<Domains>> {
    let names: Vec<Value> = selected.perform_one(Op::Domains {}).await?.try_into()?;
    let ids = names.into_iter().map(String::try_from).collect::<Result<Vec<String>, OpError>>()?;
    let ask = |id: &String| {
        let domain = || id.clone();
        [
            Op::DomainName { domain: domain() },
            Op::DomainBase { domain: domain() },
            Op::DomainSize { domain: domain() },
        ]
    };
    let ops: Vec<Op> = ids.iter().flat_map(ask).collect();
    let mut values = selected.perform(ops).await?.results.into_iter();
    let mut next = || next_result(&mut values);
    let mut domains = Vec::with_capacity(ids.len());
    for id in ids {
        let (name, base, size) = (next()?.try_into()?, unsigned(next()?)?, unsigned(next()?)?);
        domains.push(Domain { id, name, base, size });
    }
    Ok(Json(Domains { domains }))
}

fn unsigned(value: Value) -> Result<u32, OpError> {
    Ok(i64::try_from(value)? as u32)
}
