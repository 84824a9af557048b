//! Operations that a batch takes in addition to those of the table. Each becomes one or more operations of the table.

use framewire_expression::Type;
use framewire_protocol::{Op, Value};
use framewire_symbols::Location;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::input::Planned;
use super::run::{self, RunTexts};
use super::timeline::{Input, KeySet, Timeline};
use crate::problem::Problem;
use crate::reading::fields::{self, Context, Fields, Object, shown};
use crate::reading::{self, Whole};

/// Their names, with a word on each.
pub(crate) const ALL: [(&str, &str); 8] = [
    ("read", "A number of type u8, u16, u32, i8, i16 or i32 at `address`, on the bus or in `domain`."),
    ("read_many", "The numbers at each of `addresses`, which are of one type or each of its symbol's."),
    ("write", "Writes `value` of a type to `address`, on the bus or in `domain`."),
    ("write_many", "Does `writes`, each with address, value and, if need be, type."),
    ("tap", "Holds `keys` for `frames` frames (1) from the next one on, and names those frames."),
    (
        "input",
        "Plays a `sequence`, `presses` or `steps` as POST /v1/input does, and names the frames of each press.",
    ),
    (
        "run",
        "Runs `steps` as POST /v1/run does, until a condition of `stop` holds or the last step ends. The operations after it \
         are done at that frame.",
    ),
    (
        "evaluate",
        "The `values` of expressions by name, or of a list of expressions; null for one without a value.",
    ),
];

/// How the results of an operation are written.
pub(crate) enum Form {
    /// One operation's result as it is.
    Plain,
    /// One number of this type.
    Number(Type),
    /// Numbers of these types.
    Numbers(Vec<Type>),
    /// This many results without a value.
    Nothing(usize),
    /// The frame counter and the number of a timeline.
    Played(Timeline),
    /// How the steps of a run ended.
    Ran(RunTexts),
    /// The values of expressions with these names.
    Evaluated(Vec<String>),
}

impl Form {
    /// How many operations it takes.
    pub(crate) fn count(&self) -> usize {
        match self {
            Form::Plain | Form::Number(_) | Form::Ran(_) | Form::Evaluated(_) => 1,
            Form::Numbers(types) => types.len(),
            Form::Nothing(count) => *count,
            Form::Played(_) => 2,
        }
    }

    /// Writes the results of its operations, except [`Form::Plain`]'s.
    pub(crate) fn write(&self, values: &[Value]) -> Json {
        match (self, values) {
            (Form::Number(kind), [value]) => number(*kind, value),
            (Form::Numbers(types), values) => {
                types.iter().zip(values).map(|(kind, value)| number(*kind, value)).collect()
            }
            (Form::Played(timeline), [Value::Int(frame), Value::Int(id)]) => {
                json!(Planned::new(timeline, *frame, *id))
            }
            (Form::Ran(texts), [value]) => texts.write(value),
            (Form::Evaluated(names), [value]) => run::write_values(names, value),
            _ => Json::Null,
        }
    }
}

/// A number that was read unsigned.
pub(super) fn number(kind: Type, value: &Value) -> Json {
    match value {
        Value::Int(number) => json!(kind.read(&(*number as u32).to_le_bytes())),
        other => super::operations::value(other, Default::default()),
    }
}

/// Reads the operation `name`; `None` if it is not one of [`ALL`].
pub(crate) fn read(
    name: &str,
    object: Object,
    context: Context<'_>,
    ops: &mut Vec<Op>,
) -> Option<Result<Form, Problem>> {
    Some(match name {
        "read" => read_one(Fields::new(object, context), ops),
        "read_many" => read_many(Fields::new(object, context), context, ops),
        "write" => write_one(Fields::new(object, context), ops),
        "write_many" => write_many(Fields::new(object, context), context, ops),
        "tap" => tap(object, ops),
        "input" => {
            reading::object::<Input>(object).and_then(Timeline::try_from).map(|input| play(input, ops))
        }
        "run" => run::read_run(object, context, ops),
        "evaluate" => run::read_evaluate(object, context, ops),
        _ => return None,
    })
}

fn read_one(mut fields: Fields<'_>, ops: &mut Vec<Op>) -> Result<Form, Problem> {
    let domain = domain(&mut fields)?;
    let place = fields.place_in("address", domain.as_deref())?;
    let kind = kind(&mut fields)?.or(place.kind).unwrap_or(Type::U8);
    fields.end()?;
    ops.push(read_op(kind, place.address, domain));
    Ok(Form::Number(kind))
}

fn read_many(mut fields: Fields<'_>, context: Context<'_>, ops: &mut Vec<Op>) -> Result<Form, Problem> {
    let addresses = list(&mut fields, "addresses", "a list of addresses")?;
    let (domain, kind) = (domain(&mut fields)?, kind(&mut fields)?);
    fields.end()?;
    let mut types = Vec::with_capacity(addresses.len());
    for (index, address) in addresses.iter().enumerate() {
        let name = format!("addresses[{index}]");
        let place = fields::place_in(address, domain.as_deref(), context.symbols, &name)?;
        let kind = kind.or(place.kind).unwrap_or(Type::U8);
        types.push(kind);
        ops.push(read_op(kind, place.address, domain.clone()));
    }
    Ok(Form::Numbers(types))
}

fn write_one(mut fields: Fields<'_>, ops: &mut Vec<Op>) -> Result<Form, Problem> {
    let domain = domain(&mut fields)?;
    ops.push(write(&mut fields, domain)?);
    fields.end()?;
    Ok(Form::Nothing(1))
}

fn write_many(mut fields: Fields<'_>, context: Context<'_>, ops: &mut Vec<Op>) -> Result<Form, Problem> {
    const ACCEPTS: &str = "a list of objects with address, value and, if need be, type";
    let (writes, domain) = (list(&mut fields, "writes", ACCEPTS)?, domain(&mut fields)?);
    fields.end()?;
    let count = writes.len();
    for (index, one) in writes.into_iter().enumerate() {
        let place = format!("writes[{index}]");
        let Json::Object(object) = one else {
            return Err(Problem::parameter(place, &format!("is {}", shown(&one)), ACCEPTS));
        };
        let mut fields = Fields::new(object, context);
        let op = write(&mut fields, domain.clone()).and_then(|op| fields.end().map(|()| op));
        ops.push(op.map_err(|problem| problem.within(&place))?);
    }
    Ok(Form::Nothing(count))
}

fn write(fields: &mut Fields<'_>, domain: Option<String>) -> Result<Op, Problem> {
    let Location { address, kind: known } = fields.place_in("address", domain.as_deref())?;
    let kind = kind(fields)?.or(known).unwrap_or(Type::U8);
    let (min, max) = kind.range();
    let bits = fields.integer("value", min, max)? as u32;
    Ok(write_op(kind, address, domain, bits))
}

fn tap(object: Object, ops: &mut Vec<Op>) -> Result<Form, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct TapArguments {
        keys: KeySet,
        frames: Option<Whole<1, { u32::MAX }>>,
    }
    let TapArguments { keys, frames } = reading::object(object)?;
    Ok(play(Timeline::press(keys.0, frames.map_or(1, Whole::get))?, ops))
}

/// The frame counter is asked for just before, because an operation of the same batch may move it.
fn play(timeline: Timeline, ops: &mut Vec<Op>) -> Form {
    ops.extend([Op::CurrentFrame {}, timeline.op()]);
    Form::Played(timeline)
}

fn domain(fields: &mut Fields<'_>) -> Result<Option<String>, Problem> {
    fields.optional("domain", Fields::text)
}

fn kind(fields: &mut Fields<'_>) -> Result<Option<Type>, Problem> {
    const ACCEPTS: &str = "u8, u16, u32, i8, i16 or i32";
    let Some(name) = fields.optional("type", Fields::text)? else { return Ok(None) };
    Type::named(&name).map(Some).ok_or_else(|| Problem::parameter("type", &format!("is {name:?}"), ACCEPTS))
}

fn list(fields: &mut Fields<'_>, name: &'static str, accepts: &str) -> Result<Vec<Json>, Problem> {
    match fields.required(name, accepts)? {
        Json::Array(items) => Ok(items),
        other => Err(Problem::parameter(name, &format!("is {}", shown(&other)), accepts)),
    }
}

/// The operation that reads a number.
pub(super) fn read_op(kind: Type, address: u32, domain: Option<String>) -> Op {
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
pub(super) fn write_op(kind: Type, address: u32, domain: Option<String>, bits: u32) -> Op {
    match (kind, domain) {
        (Type::U8 | Type::I8, None) => Op::Write8 { address, value: bits as u8 },
        (Type::U16 | Type::I16, None) => Op::Write16 { address, value: bits as u16 },
        (Type::U32 | Type::I32, None) => Op::Write32 { address, value: bits },
        (Type::U8 | Type::I8, Some(domain)) => Op::DomainWrite8 { domain, address, value: bits as u8 },
        (Type::U16 | Type::I16, Some(domain)) => Op::DomainWrite16 { domain, address, value: bits as u16 },
        (Type::U32 | Type::I32, Some(domain)) => Op::DomainWrite32 { domain, address, value: bits },
    }
}
