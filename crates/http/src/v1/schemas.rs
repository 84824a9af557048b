//! The OpenAPI schemas of the operations of a batch. Each operation is a component: the operations in the table
//! ([`OPS`]) that clients may use, and the convenience operations ([`super::convenience`]).

use std::borrow::Cow;

use framewire_expression::Type as NumberType;
use framewire_protocol::op::{ArgInfo, ArgKind, OPS};
use framewire_protocol::run::MAX_RUN_STEPS;
use framewire_protocol::{Key, OpInfo};
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, Discriminator, Object, ObjectBuilder, OneOfBuilder, RefBuilder,
    Schema, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::operations::{in_domain, public, range};
use super::run::{Conditions, Expressions, RunStep};
use super::timeline::{Input, KeySet, Press, Step};

/// The schema of an operation of a batch: exactly one of the schemas in [`operations`]. The field `op` says which one.
pub(crate) struct BatchOp;

impl PartialSchema for BatchOp {
    fn schema() -> RefOr<Schema> {
        let mut discriminator = Discriminator::new("op");
        let mut all = OneOfBuilder::new();
        for (name, _) in operations() {
            let component = Ref::from_schema_name(component_name(name));
            discriminator.mapping.insert(name.to_owned(), component.ref_location.clone());
            all = all.item(component);
        }
        all.discriminator(Some(discriminator)).description(Some("An operation. `op` is its name.")).into()
    }
}

impl ToSchema for BatchOp {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let all = operations().map(|(name, object)| (component_name(name), Schema::Object(object).into()));
        schemas.extend(all);
        schemas.push((AddressSchema::name().into(), AddressSchema::schema()));
        schemas.push((Number::name().into(), Number::schema()));
        schemas.push((<NumberType as ToSchema>::name().into(), NumberType::schema()));
        schemas.push((KeyName::name().into(), KeyName::schema()));
        schemas.push((KeySet::name().into(), KeySet::schema()));
        schemas.push((Input::name().into(), Input::schema()));
        schemas.push((Press::name().into(), Press::schema()));
        schemas.push((Step::name().into(), Step::schema()));
        schemas.push((RunStep::name().into(), RunStep::schema()));
        schemas.push((Conditions::name().into(), Conditions::schema()));
        schemas.push((Expressions::name().into(), Expressions::schema()));
    }
}

/// A reference to the component of `T`.
pub(super) fn reference<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
}

/// All operations of a batch with their names: the public ones in the table, and the convenience operations.
fn operations() -> impl Iterator<Item = (&'static str, Object)> {
    public(OPS).map(|info| (info.name, row(info))).chain(conveniences())
}

/// The name of an operation's component, such as `OpReadMany`. Generated clients have a type with this name. Without
/// `Op`, some names would be those of other components, such as `Tap` and `Domains`.
fn component_name(name: &str) -> String {
    let mut component = "Op".to_owned();
    for word in name.split('_') {
        let (first, rest) = word.split_at(1);
        component.push_str(&first.to_ascii_uppercase());
        component.push_str(rest);
    }
    component
}

/// The schema of an address.
pub(crate) struct AddressSchema;

impl PartialSchema for AddressSchema {
    fn schema() -> RefOr<Schema> {
        let number = integer(0, u32::MAX.into());
        let text = string().examples(["0x02000000", "score", "score+2", "u32[0x03005D8C] + 4"]);
        let description = "A number; a number as a string, in decimal, or in hex after 0x; a symbol of GET /v1/symbols, with or \
                           without an offset or index; or an expression that reads the address from memory.";
        OneOfBuilder::new().item(number).item(text).description(Some(description)).into()
    }
}

impl ToSchema for AddressSchema {
    fn name() -> Cow<'static, str> {
        "Address".into()
    }
}

/// The schema of a number to write. Its type decides which numbers are accepted.
pub(crate) struct Number;

impl PartialSchema for Number {
    fn schema() -> RefOr<Schema> {
        number(i32::MIN.into(), u32::MAX.into())
            .description(Some("A number in the range of its type, or a string in hex after 0x."))
            .into()
    }
}

impl ToSchema for Number {
    fn name() -> Cow<'static, str> {
        "Value".into()
    }
}

/// The schema of the name of a key.
pub(crate) struct KeyName;

impl PartialSchema for KeyName {
    fn schema() -> RefOr<Schema> {
        string().enum_values(Some(Key::ALL.map(Key::name))).into()
    }
}

impl ToSchema for KeyName {
    fn name() -> Cow<'static, str> {
        "Key".into()
    }
}

/// The schema of an object whose field `op` is the constant `name`. Generated clients fill in this field themselves.
fn named(name: &str, doc: &str) -> ObjectBuilder {
    // utoipa does not support `const`, but writes extensions into the document unchanged.
    let constant = Extensions::from_iter([("const", name)]);
    let op = string().default(Some(name.into())).extensions(Some(constant));
    let object = ObjectBuilder::new().description(Some(doc));
    required(object, "op", op).additional_properties(Some(AdditionalProperties::FreeForm(false)))
}

fn required(object: ObjectBuilder, name: &str, schema: impl Into<RefOr<Schema>>) -> ObjectBuilder {
    object.property(name, schema).required(name)
}

fn row(info: &'static OpInfo) -> Object {
    let object = named(info.name, info.doc);
    let object = info.args.iter().fold(object, |object, arg| required(object, arg.name, argument(info, arg)));
    match in_domain(info.name) {
        Some(_) => object.property("domain", text("The name of a memory domain. Default: the bus.")).build(),
        None => object.build(),
    }
}

fn argument(info: &OpInfo, arg: &ArgInfo) -> RefOr<Schema> {
    let has_domain = info.args.iter().any(|arg| arg.name == "domain");
    let doc = |object: ObjectBuilder| Schema::Object(object.description(Some(arg.doc)).build()).into();
    let number = |min, max| number(min, max).description(Some(arg.doc)).into();
    let (least, most) = range(arg);
    match (arg.name, arg.kind) {
        ("address", ArgKind::U32) if !has_domain => reference::<AddressSchema>().into(),
        ("keys", ArgKind::U16) => reference::<KeySet>().into(),
        ("key", ArgKind::U8) => {
            let name = reference::<KeyName>();
            OneOfBuilder::new().item(name).item(integer(0, 9)).description(Some(arg.doc)).into()
        }
        (_, ArgKind::U8 | ArgKind::U16 | ArgKind::U32 | ArgKind::I32) => number(least, most),
        (_, ArgKind::Bool) => doc(ObjectBuilder::new().schema_type(Type::Boolean)),
        (_, ArgKind::Text) => doc(string()),
        (_, ArgKind::Bytes) => doc(string().content_encoding("base64").pattern(Some(BASE64))),
    }
}

/// The pattern of base64 text (RFC 4648, section 4).
const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";

fn integer(min: i64, max: i64) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(min)).maximum(Some(max))
}

/// The schema of a number, or of a string that contains the number in hex.
fn number(min: i64, max: i64) -> OneOfBuilder {
    let digits = format!("{max:x}").len();
    let pattern = format!("^0x[0-9a-fA-F]{{1,{digits}}}$");
    OneOfBuilder::new().item(integer(min, max)).item(string().pattern(Some(pattern)))
}

pub(super) fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn text(doc: &str) -> ObjectBuilder {
    string().description(Some(doc))
}

fn kind() -> Ref {
    RefBuilder::new()
        .ref_location_from_schema_name(<NumberType as ToSchema>::name())
        .description(Some("Default: the type of the symbol, or u8."))
        .build()
}

fn conveniences() -> impl Iterator<Item = (&'static str, Object)> {
    let with_address = |object| required(object, "address", reference::<AddressSchema>());
    let with_value = |object| required(object, "value", reference::<Number>());
    super::convenience::ALL.into_iter().map(move |(name, doc)| {
        let object = named(name, doc);
        let object = match name {
            "read" => in_some_domain(with_address(object)),
            "read_many" => {
                let addresses = ArrayBuilder::new().items(reference::<AddressSchema>()).max_items(Some(4096));
                in_some_domain(required(object, "addresses", addresses))
            }
            "write" => in_some_domain(with_value(with_address(object))),
            "read_text" => required(with_address(object), "length", integer(1, 4096)),
            "freeze" => with_value(with_address(object)).property("type", kind()),
            "unfreeze" => object.property("address", reference::<AddressSchema>()),
            "frozen" => object,
            "write_many" => {
                let one = with_value(with_address(ObjectBuilder::new())).property("type", kind());
                let one = one.additional_properties(Some(AdditionalProperties::FreeForm(false)));
                let writes = ArrayBuilder::new().items(one).max_items(Some(4096));
                let domain = text("Name of a memory domain. Default: the bus.");
                required(object, "writes", writes).property("domain", domain)
            }
            "tap" => {
                let object = required(object, "keys", reference::<KeySet>());
                object.property("frames", integer(1, u32::MAX.into()))
            }
            "run" => {
                let steps = ArrayBuilder::new().items(reference::<RunStep>());
                let steps = steps.min_items(Some(1)).max_items(Some(MAX_RUN_STEPS));
                required(object, "steps", steps).property("stop", reference::<Conditions>())
            }
            "evaluate" => required(object, "values", reference::<Expressions>()),
            // `input`, the only operation that is left.
            _ => {
                let list = |item: Ref| ArrayBuilder::new().items(item);
                let object = object.property("sequence", text("Such as A:2 .:10 Up+B:30."));
                let object = object.property("append", ObjectBuilder::new().schema_type(Type::Boolean));
                object
                    .property("presses", list(reference::<Press>()))
                    .property("steps", list(reference::<Step>()))
            }
        }
        .build();
        (name, object)
    })
}

/// Adds the properties `type` and `domain`, which operations on numbers have.
fn in_some_domain(object: ObjectBuilder) -> ObjectBuilder {
    object.property("type", kind()).property("domain", text("Name of a memory domain. Default: the bus."))
}
