//! Frozen values: numbers and bytes that an emulator writes to memory again after each frame.

use framewire_expression::Type;
use framewire_protocol::hex::parse_hex_pairs;
use framewire_protocol::{Op, Value};
use serde_json::Value as Json;

use super::control::{AtFrame, change};
use super::convenience::bytes_of;
use super::memory::{Content, NewContent};
use crate::reading::fields::{Encoding, Target, numeric_place, target};
use crate::routing::prelude::{Json as Body, *};

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, unfreeze_all)).routes(routes!(freeze, unfreeze))
}

/// The name that means all frozen values.
pub(super) const ALL: &str = "*";

/// A frozen value.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FrozenValue {
    /// The address. A number is written as `0x` and eight hex digits; any other address is as it was given.
    address: String,
    /// The type of the number. Absent for bytes.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// The number.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<i64>,
    /// The bytes as base64 text; absent for a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

/// The frozen values.
#[derive(Serialize, ToSchema)]
struct FrozenValues {
    /// The frame counter now.
    frame: u32,
    /// The values in the order in which they were frozen.
    frozen: Vec<FrozenValue>,
}

/// The operation that freezes `content` at an address.
pub(super) fn freeze_op(address: &Json, target: &Target, content: Content) -> Op {
    let (kind, data) = match content {
        Content::Number(kind, bits) => (kind.name(), bytes_of(kind, bits)),
        Content::Bytes(bytes) => ("bytes", bytes),
    };
    Op::Freeze { name: name_of(address), kind: kind.to_owned(), address: target.address.code(), data }
}

/// The name of a frozen value: its address. A number is always written in the same way; any other address is kept as it
/// was given.
pub(super) fn name_of(address: &Json) -> String {
    match (numeric_place(address), address) {
        (Some(number), _) => format!("{number:#010x}"),
        (None, Json::String(text)) => text.trim().to_owned(),
        (None, value) => value.to_string(),
    }
}

/// The values in the result of [`Op::Frozen`].
pub(super) fn values(result: &Value) -> Vec<FrozenValue> {
    let Value::List(words) = result else { return Vec::new() };
    let value = |words: &[Value]| {
        let [Value::Text(address), Value::Text(kind), Value::Text(pairs)] = words else { return None };
        let (bytes, kind) = (parse_hex_pairs(pairs)?, Type::named(kind));
        let value = kind.map(|kind| kind.read(&bytes));
        let data = if kind.is_none() { Some(Encoding::default().text(&bytes)) } else { None };
        Some(FrozenValue { address: address.clone(), kind: kind.map(Type::name), value, data })
    };
    words.chunks(3).filter_map(value).collect()
}

/// Lists the frozen values.
#[utoipa::path(get, path = "/v1/freeze", operation_id = "frozenMemory", tag = "memory", params(EmulatorParam),
    responses((status = 200, description = "The values.", body = FrozenValues)))]
async fn list(selected: SelectedEmulator) -> Result<Response> {
    let op = Op::Frozen {};
    let share = selected.share(&op)?;
    let outcome = selected.perform(op).await?;
    let frame = outcome.frame;
    Ok(share.json(&FrozenValues { frame, frozen: values(&outcome.single()?) }))
}

/// Freezes a value: writes it to memory now, and again after each frame.
///
/// The address has the same form as in readMemory. If it is an expression that reads memory, it is evaluated again each
/// time. While a recording or a replay is under way, the reply is a 503, because recordings do not contain writes.
#[utoipa::path(put, path = "/v1/freeze/{address}", operation_id = "freezeMemory", tag = "memory",
    params(("address" = String, Path, description = "The address."), EmulatorParam), request_body = NewContent,
    responses((status = 200, description = "The value is frozen.", body = AtFrame)))]
async fn freeze(
    selected: SelectedEmulator,
    Path(text): Path<String>,
    Payload(content): Payload<NewContent>,
) -> Result<Body<AtFrame>> {
    let symbols = selected.symbols().await;
    let address = Json::String(text);
    let target = target(&address, None, &symbols, "address")?;
    drop(symbols);
    let op = freeze_op(&address, &target, content.read(&target)?);
    change(&selected, op).await
}

/// Unfreezes a value. The game can change it again.
#[utoipa::path(delete, path = "/v1/freeze/{address}", operation_id = "unfreezeMemory", tag = "memory",
    params(("address" = String, Path, description = "The address, as it was given."), EmulatorParam),
    responses((status = 200, description = "The value is not frozen any more.", body = AtFrame)))]
async fn unfreeze(selected: SelectedEmulator, Path(text): Path<String>) -> Result<Body<AtFrame>> {
    let name = name_of(&Json::String(text));
    if name == ALL {
        let detail = format!("no value at {name:?} is frozen; DELETE /v1/freeze unfreezes all values");
        return Err(Problem::not_found(detail));
    }
    let outcome = selected.perform(selected.keyed(Op::Unfreeze { name: name.clone() })).await?;
    let frame = outcome.frame;
    if outcome.single()? != Value::Bool(true) {
        let detail = format!("no value at {name:?} is frozen; GET /v1/freeze lists the frozen values");
        return Err(Problem::not_found(detail));
    }
    Ok(Body(AtFrame { frame }))
}

/// Unfreezes all values.
#[utoipa::path(delete, path = "/v1/freeze", operation_id = "unfreezeAllMemory", tag = "memory", params(EmulatorParam),
    responses((status = 200, description = "No value is frozen any more.", body = AtFrame)))]
async fn unfreeze_all(selected: SelectedEmulator) -> Result<Body<AtFrame>> {
    change(&selected, Op::Unfreeze { name: ALL.to_owned() }).await
}
