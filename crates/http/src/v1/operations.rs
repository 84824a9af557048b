//! Operations and results as JSON. This uses the table of operations, so a new row in the table needs no change here.

use framewire_protocol::op::{ArgInfo, ArgKind, OPS};
use framewire_protocol::wire::{Reader, Wire};
use framewire_protocol::{Effect, Op, OpInfo, Value};
use serde_json::{Value as Json, json};

use super::convenience;
use crate::reading::fields::{Context, Encoding, Fields, Object};
use crate::routing::prelude::*;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(table))
}

/// The table of operations.
#[derive(Serialize, ToSchema)]
struct Table {
    /// The operations that the emulator itself performs.
    operations: Vec<OperationInfo>,
    /// The convenience operations, which Framewire translates into other operations.
    conveniences: Vec<Convenience>,
}

/// An operation that Framewire translates into others.
#[derive(Serialize, ToSchema)]
struct Convenience {
    /// Its name.
    name: &'static str,
    /// Its arguments, and what it does.
    doc: &'static str,
}

/// An operation that the emulator itself performs.
#[derive(Serialize, ToSchema)]
struct OperationInfo {
    /// Its name.
    name: &'static str,
    /// What it does.
    doc: &'static str,
    /// `read` if it only reads, `change` if it changes something.
    effect: &'static str,
    /// Its arguments.
    args: Vec<Argument>,
    /// The type of its `value`: none, bool, int, text, bytes or names.
    result: &'static str,
}

/// An argument of an operation.
#[derive(Serialize, ToSchema)]
struct Argument {
    name: &'static str,
    /// u8, u16, u32, i32, bool, text or bytes.
    #[serde(rename = "type")]
    kind: &'static str,
    doc: &'static str,
}

/// Lists the operations that POST /v1/batch accepts.
#[utoipa::path(get, path = "/v1/operations", operation_id = "operations", tag = "batch",
    responses((status = 200, description = "The table.", body = Table)))]
async fn table() -> axum::Json<Table> {
    let conveniences = convenience::ALL.iter().map(|(name, doc)| Convenience { name, doc });
    axum::Json(Table {
        operations: public(OPS).map(OperationInfo::from).collect(),
        conveniences: conveniences.collect(),
    })
}

impl From<&'static OpInfo> for OperationInfo {
    fn from(info: &'static OpInfo) -> OperationInfo {
        let arg = |arg: &ArgInfo| Argument { name: arg.name, kind: arg.kind.name(), doc: arg.doc };
        OperationInfo {
            name: info.name,
            doc: info.doc,
            effect: match info.effect {
                Effect::Read => "read",
                Effect::Change => "change",
            },
            args: info.args.iter().map(arg).collect(),
            result: info.result.name(),
        }
    }
}

/// Operations that clients cannot use directly. Some of their names are also names of convenience operations, which
/// have other arguments.
const INTERNAL: [&str; 11] = [
    "watch",
    "unwatch",
    "run",
    "evaluate",
    "read_at",
    "write_at",
    "append_keys",
    "freeze",
    "unfreeze",
    "frozen",
    "script",
];

/// The rows that clients may use.
pub(crate) fn public(ops: &'static [OpInfo]) -> impl Iterator<Item = &'static OpInfo> {
    ops.iter().filter(|info| !INTERNAL.contains(&info.name))
}

/// The row with this name, if clients may use it.
pub(crate) fn row(name: &str) -> Option<&'static OpInfo> {
    public(OPS).find(|info| info.name == name)
}

/// The row of the operation that does the same as `name`, but in a memory domain.
pub(crate) fn in_domain(name: &str) -> Option<&'static OpInfo> {
    row(&format!("domain_{name}"))
}

/// Reads an operation that `info` describes. Its arguments are the fields of `arguments`.
pub(crate) fn op(info: &OpInfo, arguments: Object, context: Context<'_>) -> Result<Op> {
    let mut fields = Fields::new(arguments, context);
    let mut binary = vec![info.code];
    for arg in info.args {
        argument(info, arg, &mut fields, &mut binary)?;
    }
    fields.end()?;
    Op::decode(&mut Reader::new(&binary)).map_err(|error| Problem::bad_request(error.to_string()))
}

/// The smallest and the largest number that an argument may be; (0, 0) if it is not a number.
pub(crate) fn range(arg: &ArgInfo) -> (i64, i64) {
    match arg.range.unwrap_or_default() {
        // The value of a register may also be given as an unsigned number.
        (least, most) if (least, most) == (i32::MIN.into(), i32::MAX.into()) => (least, u32::MAX.into()),
        range => range,
    }
}

/// Reads an argument and appends its binary form.
fn argument(info: &OpInfo, arg: &ArgInfo, fields: &mut Fields<'_>, binary: &mut Vec<u8>) -> Result<()> {
    let on_bus = !info.args.iter().any(|arg| arg.name == "domain");
    let (least, most) = range(arg);
    match (arg.name, arg.kind) {
        ("address", ArgKind::U32) if on_bus => fields.address(arg.name)?.encode(binary),
        ("address", ArgKind::U32) => fields.offset(arg.name)?.encode(binary),
        ("keys", ArgKind::U16) => fields.keys(arg.name)?.mask().encode(binary),
        ("key", ArgKind::U8) => (fields.key(arg.name)? as u8).encode(binary),
        (name, ArgKind::U8) => (fields.integer(name, least, most)? as u8).encode(binary),
        (name, ArgKind::U16) => (fields.integer(name, least, most)? as u16).encode(binary),
        (name, ArgKind::U32) => (fields.integer(name, least, most)? as u32).encode(binary),
        (name, ArgKind::I32) => (fields.integer(name, least, most)? as i32).encode(binary),
        (name, ArgKind::Bool) => fields.boolean(name)?.encode(binary),
        ("path", ArgKind::Text) => fields.path(arg.name)?.encode(binary),
        (name, ArgKind::Text) => fields.text(name)?.encode(binary),
        (name, ArgKind::Bytes) => fields.bytes(name)?.encode(binary),
    }
    Ok(())
}

pub(crate) fn value(value: &Value, encoding: Encoding) -> Json {
    match value {
        Value::None => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::Bytes(bytes) => json!(encoding.text(bytes)),
        Value::List(items) => items.iter().map(|item| self::value(item, encoding)).collect(),
    }
}
