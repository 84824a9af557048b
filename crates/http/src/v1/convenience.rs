//! Convenience operations. A batch accepts them in addition to the operations in the table of `crates/protocol`. Each
//! becomes one or more operations of the table.

use std::sync::Arc;

use axum::http::StatusCode;
use framewire_expression::{Format, Type};
use framewire_protocol::{MAX_OPS, MAX_RANGE, Op, Value};
use framewire_symbols::{TextTable, decode_text};
use serde_json::{Value as Json, json};

use super::freeze::{self, freeze_op, name_of};
use super::input::{Planned, Tap};
use super::memory::Content;
use super::run::{self, RunTexts};
use super::timeline::{Input, Timeline};
use crate::problem::{Problem, Result};
use crate::reading;
use crate::reading::fields::{self, Address, Context, Encoding, Fields, Object, Target, wrong_value};

/// The names of the operations, with descriptions.
pub(crate) const ALL: [(&str, &str); 12] = [
    ("read", "Reads a number of type u8, u16, u32, i8, i16 or i32 at `address`, on the bus or in `domain`."),
    (
        "read_many",
        "Reads the numbers at `addresses`. All have the given type, or each has the type of its symbol.",
    ),
    ("write", "Writes the number `value`, of a type such as u16, to `address`, on the bus or in `domain`."),
    ("write_many", "Performs `writes`, each with an address, a value and optionally a type."),
    (
        "tap",
        "Holds `keys` for `frames` frames (default: 1), beginning with the next frame, and returns the numbers of those frames.",
    ),
    (
        "input",
        "Plays a `sequence`, `presses` or `steps` as POST /v1/input does, and returns the frames of each press. With `append`, it \
         begins after all timelines that play or wait.",
    ),
    (
        "run",
        "Runs `steps` as POST /v1/run does, until a condition of `stop` holds or the last step ends. The operations after it \
         are performed at that frame.",
    ),
    (
        "evaluate",
        "Evaluates `values`, an object or a list of expressions, and returns their values; null if an expression has no value.",
    ),
    (
        "read_text",
        "Reads text in `length` bytes at `address`, up to the end of the text, with the character table or else as UTF-8.",
    ),
    (
        "freeze",
        "Writes the number `value`, of a type such as u16, to `address` now, and again after each frame.",
    ),
    (
        "unfreeze",
        "Ends the `freeze` of `address`, or of all addresses if that is left out; the result says whether a value was \
         frozen.",
    ),
    ("frozen", "Returns the values that `freeze` keeps."),
];

/// The largest length of the name of a memory domain in bytes. Each address of a list gets a copy of the name.
const MAX_DOMAIN: usize = 64;
/// The largest length of a text in bytes.
const MAX_TEXT: i64 = 4096;

/// How the results of an operation are written.
pub(crate) enum Form {
    /// The unchanged result of one operation.
    Plain,
    /// One number of this form.
    Number(NumberForm),
    /// Numbers of these forms.
    Numbers(Vec<NumberForm>),
    /// Bytes at an address that was computed.
    BytesAt(Encoding),
    /// The text that the bytes stand for, decoded with this character table of the game or, without a table, as UTF-8.
    Text(Option<Arc<TextTable>>),
    /// This many results that are not returned.
    Nothing(usize),
    /// The frame counter and the number of a timeline.
    Played(Timeline),
    /// How the steps of a run ended.
    Ran(RunTexts),
    /// The values of expressions with these names.
    Evaluated(Vec<String>),
    /// The frozen values.
    Frozen,
}

impl Form {
    /// The number of operations whose results are written together in this form.
    pub(crate) fn count(&self) -> usize {
        match self {
            Form::Plain
            | Form::Text(_)
            | Form::Number(_)
            | Form::BytesAt(_)
            | Form::Ran(_)
            | Form::Evaluated(_)
            | Form::Frozen => 1,
            Form::Numbers(types) => types.len(),
            Form::Nothing(count) => *count,
            Form::Played(_) => 2,
        }
    }

    /// Roughly how many bytes the results take in the reply, in addition to those of [`Op::largest_result`]. The texts
    /// of conditions do not count, because they are part of the request.
    pub(crate) fn further_bytes(&self) -> usize {
        match self {
            Form::Ran(texts) => texts.steps() * 192,
            Form::Played(timeline) => timeline.steps() * 96,
            _ => 0,
        }
    }

    /// Converts results to JSON in this form. [`Form::Plain`] is converted elsewhere.
    pub(crate) fn write(&self, values: &[Value]) -> Json {
        match (self, values) {
            (Form::Number(kind), [value]) => number(*kind, value),
            (Form::Numbers(types), values) => {
                types.iter().zip(values).map(|(kind, value)| number(*kind, value)).collect()
            }
            (Form::Played(timeline), [Value::Int(frame), begun]) => {
                json!(Planned::new(timeline, *frame, begun))
            }
            (Form::BytesAt(encoding), [Value::Bytes(bytes)]) => {
                read_at(bytes).map_or(Json::Null, |(_, bytes)| json!(encoding.text(bytes)))
            }
            (Form::Text(table), [Value::Bytes(bytes)]) => {
                read_at(bytes).map_or(Json::Null, |(_, bytes)| json!(decode_text(table.as_deref(), bytes)))
            }
            (Form::Ran(texts), [value]) => texts.write(value),
            (Form::Frozen, [value]) => json!(freeze::values(value)),
            (Form::Evaluated(names), [value]) => run::write_values(names, value),
            _ => Json::Null,
        }
    }
}

/// How a number is read from memory.
#[derive(Clone, Copy)]
pub(crate) struct NumberForm {
    pub(super) kind: Type,
    format: Format,
}

impl NumberForm {
    /// The type comes from the caller, or else from the memory map; without either, it is a byte.
    pub(super) fn of(given: Option<Type>, target: &Target) -> NumberForm {
        match (given, target.kind) {
            (None, Some(kind)) => NumberForm { kind, format: target.format },
            (given, _) => NumberForm { kind: given.unwrap_or(Type::U8), format: Format::Plain },
        }
    }
}

/// The value of a number whose bits were read as an unsigned number.
pub(super) fn number(form: NumberForm, value: &Value) -> Json {
    let bits = match value {
        Value::Int(number) => *number as u32,
        Value::Bytes(bytes) => read_at(bytes).map_or(0, |(_, bytes)| Type::U32.read(bytes) as u32),
        other => return super::operations::value(other, Default::default()),
    };
    let whole = form.kind.read(&bits.to_le_bytes());
    match form.format {
        Format::Plain => json!(whole),
        Format::Bits { first, count } => json!(whole >> first & ((1 << count) - 1)),
        Format::Bcd => {
            let digits = (0..form.kind.size() * 2).map(|place| i64::from(bits >> (place * 4) & 15));
            json!(digits.rev().fold(0, |number, digit| number * 10 + digit))
        }
        Format::Fixed(divisor) => json!(whole as f64 / f64::from(divisor)),
        Format::Float => json!(f32::from_bits(bits)),
    }
}

/// The type of a number to write. As for [`NumberForm::of`], it comes from the caller, or else from the memory map. But
/// if the memory map gives the number a special format, such as fixed point, only the caller can give the type.
pub(super) fn type_to_write(given: Option<Type>, target: &Target) -> Result<Type> {
    match (given, target.kind) {
        (None, Some(kind)) if target.format != Format::Plain => {
            let problem =
                "is missing, and values cannot be converted to this name's format (bits, BCD, fraction)";
            let accepts = format!("{} for the number in memory itself", kind.name());
            Err(Problem::parameter("type", problem, accepts))
        }
        (given, known) => Ok(given.or(known).unwrap_or(Type::U8)),
    }
}

/// Reads the operation `name`; `None` if it is not one of [`ALL`].
pub(crate) fn read(
    name: &str,
    object: Object,
    context: Context<'_>,
    ops: &mut Vec<Op>,
) -> Option<Result<Form>> {
    Some(match name {
        "read" => read_one(Fields::new(object, context), ops),
        "read_many" => read_many(Fields::new(object, context), ops),
        "write" => write_one(Fields::new(object, context), ops),
        "write_many" => write_many(Fields::new(object, context), ops),
        "tap" => tap(object, ops),
        "input" => input(object, ops),
        "run" => run::read_run(object, context, ops),
        "evaluate" => run::read_evaluate(object, context, ops),
        "read_text" => read_text(Fields::new(object, context), ops),
        "freeze" => freeze(Fields::new(object, context), ops),
        "unfreeze" => unfreeze(Fields::new(object, context), ops),
        "frozen" => frozen(Fields::new(object, context), ops),
        _ => return None,
    })
}

fn read_one(mut fields: Fields<'_>, ops: &mut Vec<Op>) -> Result<Form> {
    let domain = domain(&mut fields)?;
    let target = fields.target("address", domain.as_deref())?;
    let number = NumberForm::of(kind(&mut fields)?, &target);
    fields.end()?;
    ops.push(read_op(number.kind, target.address, domain));
    Ok(Form::Number(number))
}

fn read_text(mut fields: Fields<'_>, ops: &mut Vec<Op>) -> Result<Form> {
    let address = fields.target("address", None)?.address.code();
    let length = fields.integer("length", 1, MAX_TEXT)? as u32;
    let characters = fields.context.symbols.text().cloned();
    fields.end()?;
    ops.push(Op::ReadAt { address, length });
    Ok(Form::Text(characters))
}

fn read_many(mut fields: Fields<'_>, ops: &mut Vec<Op>) -> Result<Form> {
    let Context { symbols, .. } = fields.context;
    let addresses = list(&mut fields, "addresses", "a list of addresses")?;
    let (domain, kind) = (domain(&mut fields)?, kind(&mut fields)?);
    fields.end()?;
    let mut types = Vec::with_capacity(addresses.len());
    for (index, address) in addresses.iter().enumerate() {
        let name = format!("addresses[{index}]");
        let target = fields::target(address, domain.as_deref(), symbols, &name)?;
        let number = NumberForm::of(kind, &target);
        types.push(number);
        ops.push(read_op(number.kind, target.address, domain.clone()));
    }
    Ok(Form::Numbers(types))
}

fn write_one(mut fields: Fields<'_>, ops: &mut Vec<Op>) -> Result<Form> {
    let domain = domain(&mut fields)?;
    ops.push(write(&mut fields, domain)?);
    fields.end()?;
    Ok(Form::Nothing(1))
}

fn write_many(mut fields: Fields<'_>, ops: &mut Vec<Op>) -> Result<Form> {
    const ACCEPTS: &str = "a list of objects with address, value and, if needed, type";
    let context = fields.context;
    let (writes, domain) = (list(&mut fields, "writes", ACCEPTS)?, domain(&mut fields)?);
    fields.end()?;
    let count = writes.len();
    for (index, one) in writes.into_iter().enumerate() {
        let place = format!("writes[{index}]");
        let Json::Object(object) = one else {
            return Err(wrong_value(place, &one, ACCEPTS));
        };
        let mut fields = Fields::new(object, context);
        let op = write(&mut fields, domain.clone()).and_then(|op| fields.end().map(|()| op));
        ops.push(op.map_err(|problem| problem.within(&place))?);
    }
    Ok(Form::Nothing(count))
}

fn write(fields: &mut Fields<'_>, domain: Option<String>) -> Result<Op> {
    let target = fields.target("address", domain.as_deref())?;
    let (kind, bits) = new_number(fields, &target)?;
    Ok(write_op(kind, target.address, domain, bits))
}

/// The type and the low bits of a number to write.
fn new_number(fields: &mut Fields<'_>, target: &Target) -> Result<(Type, u32)> {
    let kind = type_to_write(kind(fields)?, target)?;
    let (min, max) = kind.range();
    Ok((kind, fields.integer("value", min, max)? as u32))
}

fn freeze(mut fields: Fields<'_>, ops: &mut Vec<Op>) -> Result<Form> {
    let (address, target) = fields.written_target("address")?;
    let (kind, bits) = new_number(&mut fields, &target)?;
    ops.push(freeze_op(&address, &target, Content::Number(kind, bits)));
    fields.end()?;
    Ok(Form::Nothing(1))
}

fn unfreeze(mut fields: Fields<'_>, ops: &mut Vec<Op>) -> Result<Form> {
    let name = match fields.take("address") {
        None => freeze::ALL.to_owned(),
        Some(address @ (Json::String(_) | Json::Number(_))) => name_of(&address),
        Some(other) => {
            let accepts =
                "the address as it was given to `freeze`; without an address, all values are unfrozen";
            return Err(wrong_value("address", &other, accepts));
        }
    };
    fields.end()?;
    ops.push(Op::Unfreeze { name });
    Ok(Form::Plain)
}

fn frozen(fields: Fields<'_>, ops: &mut Vec<Op>) -> Result<Form> {
    fields.end()?;
    ops.push(Op::Frozen {});
    Ok(Form::Frozen)
}

fn tap(object: Object, ops: &mut Vec<Op>) -> Result<Form> {
    let Tap { keys, frames } = reading::object(object)?;
    Ok(play(Timeline::press(keys.0, frames)?, false, ops))
}

fn input(object: Object, ops: &mut Vec<Op>) -> Result<Form> {
    let input: Input = reading::object(object)?;
    let append = input.append;
    Ok(play(input.try_into()?, append, ops))
}

/// Adds the operation for a timeline. Before it, adds one that reads the frame counter, because other operations of the
/// batch may change the counter.
fn play(timeline: Timeline, append: bool, ops: &mut Vec<Op>) -> Form {
    ops.extend([Op::CurrentFrame {}, timeline.op(append)]);
    Form::Played(timeline)
}

fn domain(fields: &mut Fields<'_>) -> Result<Option<String>> {
    let name = fields.optional("domain", Fields::text)?;
    check_domain(name.as_deref())?;
    Ok(name)
}

/// Refuses a name of a memory domain that is too long, before it is copied for each address of a list.
pub(super) fn check_domain(name: Option<&str>) -> Result<()> {
    match name {
        Some(long) if long.len() > MAX_DOMAIN => {
            let problem = format!("has {} bytes", long.len());
            Err(Problem::parameter("domain", &problem, "the name of a memory domain, as in GET /v1/domains"))
        }
        _ => Ok(()),
    }
}

fn kind(fields: &mut Fields<'_>) -> Result<Option<Type>> {
    const ACCEPTS: &str = "u8, u16, u32, i8, i16 or i32";
    let Some(name) = fields.optional("type", Fields::text)? else { return Ok(None) };
    Type::named(&name).map(Some).ok_or_else(|| Problem::parameter("type", &format!("is {name:?}"), ACCEPTS))
}

/// A list with an entry for each operation to make. An entry has only a few bytes in the request, but its
/// operation takes more memory. So a list that is too long is refused before its operations are made.
fn list(fields: &mut Fields<'_>, name: &'static str, accepts: &str) -> Result<Vec<Json>> {
    match fields.required(name, accepts)? {
        Json::Array(items) if items.len() > MAX_OPS => {
            let problem = format!("has {} entries", items.len());
            let accepts = format!("at most {MAX_OPS} of them; send fewer at a time");
            Err(Problem::parameter(name, &problem, accepts).with_status(StatusCode::PAYLOAD_TOO_LARGE))
        }
        Json::Array(items) => Ok(items),
        other => Err(wrong_value(name, &other, accepts)),
    }
}

pub(super) fn read_op(kind: Type, address: Address, domain: Option<String>) -> Op {
    let address = match address {
        Address::Known(address) => address,
        Address::Computed(address) => return Op::ReadAt { address, length: kind.size().into() },
    };
    match (kind, domain) {
        (Type::U8 | Type::I8, None) => Op::Read8 { address },
        (Type::U16 | Type::I16, None) => Op::Read16 { address },
        (Type::U32 | Type::I32, None) => Op::Read32 { address },
        (Type::U8 | Type::I8, Some(domain)) => Op::DomainRead8 { domain, address },
        (Type::U16 | Type::I16, Some(domain)) => Op::DomainRead16 { domain, address },
        (Type::U32 | Type::I32, Some(domain)) => Op::DomainRead32 { domain, address },
    }
}

/// The operation that writes the low bits of `bits`.
pub(super) fn write_op(kind: Type, address: Address, domain: Option<String>, bits: u32) -> Op {
    let address = match address {
        Address::Known(address) => address,
        Address::Computed(address) => return Op::WriteAt { address, data: bytes_of(kind, bits) },
    };
    match (kind, domain) {
        (Type::U8 | Type::I8, None) => Op::Write8 { address, value: bits as u8 },
        (Type::U16 | Type::I16, None) => Op::Write16 { address, value: bits as u16 },
        (Type::U32 | Type::I32, None) => Op::Write32 { address, value: bits },
        (Type::U8 | Type::I8, Some(domain)) => Op::DomainWrite8 { domain, address, value: bits as u8 },
        (Type::U16 | Type::I16, Some(domain)) => Op::DomainWrite16 { domain, address, value: bits as u16 },
        (Type::U32 | Type::I32, Some(domain)) => Op::DomainWrite32 { domain, address, value: bits },
    }
}

/// The bytes of a number in memory, from the low bits of `bits`.
pub(super) fn bytes_of(kind: Type, bits: u32) -> Vec<u8> {
    bits.to_le_bytes()[..kind.size().into()].to_vec()
}

/// The address and the bytes in the result of [`Op::ReadAt`].
pub(super) fn read_at(result: &[u8]) -> Option<(u32, &[u8])> {
    let (address, bytes) = result.split_first_chunk()?;
    Some((u32::from_le_bytes(*address), bytes))
}

/// Reads an operation of the table whose address on the bus is an expression, such as `u32[0x03005D8C] + 4`. Returns
/// `None` for all other operations and addresses.
pub(crate) fn read_computed(
    name: &str,
    object: &Object,
    context: Context<'_>,
    ops: &mut Vec<Op>,
) -> Option<Result<Form>> {
    let is_computed = |address: &Json| fields::computed(address, context.symbols).is_some();
    if !object.get("address").is_some_and(is_computed) {
        return None;
    }
    let (convenience, kind) = match name {
        "read8" => ("read", Type::U8),
        "read16" => ("read", Type::U16),
        "read32" => ("read", Type::U32),
        "write8" => ("write", Type::U8),
        "write16" => ("write", Type::U16),
        "write32" => ("write", Type::U32),
        "read_range" | "write_range" => {
            return Some(computed_range(name, Fields::new(object.clone(), context), ops));
        }
        _ => return None,
    };
    let mut object = object.clone();
    if object.insert("type".to_owned(), json!(kind.name())).is_some() {
        let accepts = "no type: the operation determines it";
        return Some(Err(Problem::parameter("type", "is not a field here", accepts)));
    }
    read(convenience, object, context, ops)
}

fn computed_range(name: &str, mut fields: Fields<'_>, ops: &mut Vec<Op>) -> Result<Form> {
    let address = fields.target("address", None)?.address.code();
    let form = if name == "read_range" {
        let length = fields.integer("length", 0, MAX_RANGE.into())? as u32;
        ops.push(Op::ReadAt { address, length });
        Form::BytesAt(fields.context.encoding)
    } else {
        ops.push(Op::WriteAt { address, data: fields.bytes("data")? });
        Form::Nothing(1)
    };
    fields.end()?;
    Ok(form)
}
