//! The parameters of a route: their names, the values that they accept, the types of these values, and the errors for
//! other values. They are read from a request's query.

use std::borrow::Cow;

use framewire_protocol::number::{decimal_integer, lua_integer};
use framewire_protocol::{Key, Keys};
use percent_encoding::percent_decode_str;

use crate::failure::Failure;

/// A parameter in a route's query.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Its name as mGBA-http's documentation spells it; any letter case is accepted.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// The value of a parameter that is absent or empty. Without a default, the parameter is required.
    pub default: Option<i64>,
    /// What it means.
    pub doc: &'static str,
}

/// What a parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number in decimal.
    Integer {
        /// The smallest accepted number.
        min: i64,
        /// The largest accepted number.
        max: i64,
    },
    /// A whole number as Lua's `tonumber` reads it: decimal, or hex after `0x`.
    LuaNumber {
        /// The largest accepted number; the smallest is 0.
        max: u32,
    },
    /// `true` or `false`, in any letter case.
    Boolean,
    /// Any text, including empty text.
    Text,
    /// Text that is not empty: a name that the emulator looks up.
    Name,
    /// A path on the emulator's machine: not empty and without NUL.
    Path,
    /// The name of a button, in exactly the spelling of [`Key::name`].
    Button,
    /// Names of buttons, at least one. The parameter is repeated for each of them.
    Buttons,
}

/// A parameter and how its values become a `T`. The constructors keep both consistent.
pub(super) struct Typed<T> {
    pub(super) param: Param,
    read: Read<T>,
}

enum Read<T> {
    Number { parse: fn(&str) -> Option<i64>, min: i64, max: i64, convert: fn(i64) -> Option<T> },
    One(fn(&Param, &str) -> Result<T, Failure>),
    All(fn(&Param, &[Cow<'_, str>]) -> Result<T, Failure>),
}

/// A whole number in decimal, from `min` to `max`.
pub(super) const fn integer<T>(
    name: &'static str,
    (min, max): (i64, i64),
    convert: fn(i64) -> Option<T>,
    default: Option<i64>,
    doc: &'static str,
) -> Typed<T> {
    let param = Param { name, kind: Kind::Integer { min, max }, default, doc };
    Typed { param, read: Read::Number { parse: decimal_integer, min, max, convert } }
}

/// A whole number from 0 to `max`, in decimal or hex.
pub(super) const fn lua_number(name: &'static str, max: u32, doc: &'static str) -> Typed<u32> {
    let read = Read::Number { parse: lua_integer, min: 0, max: max as i64, convert: exact };
    required(name, Kind::LuaNumber { max }, doc, read)
}

pub(super) const fn boolean(name: &'static str, doc: &'static str) -> Typed<bool> {
    required(name, Kind::Boolean, doc, Read::One(read_boolean))
}

pub(super) const fn text(name: &'static str, doc: &'static str) -> Typed<String> {
    required(name, Kind::Text, doc, Read::One(|_, value| Ok(value.to_owned())))
}

pub(super) const fn name(name: &'static str, doc: &'static str) -> Typed<String> {
    required(name, Kind::Name, doc, Read::One(read_name))
}

pub(super) const fn path(name: &'static str, doc: &'static str) -> Typed<String> {
    required(name, Kind::Path, doc, Read::One(read_name))
}

pub(super) const fn button(name: &'static str, doc: &'static str) -> Typed<Key> {
    required(name, Kind::Button, doc, Read::One(|param, value| param.key(value)))
}

pub(super) const fn buttons(name: &'static str, doc: &'static str) -> Typed<Keys> {
    let read = Read::All(|param, values| values.iter().map(|value| param.key(value)).collect());
    required(name, Kind::Buttons, doc, read)
}

/// A parameter without a default.
const fn required<T>(name: &'static str, kind: Kind, doc: &'static str, read: Read<T>) -> Typed<T> {
    Typed { param: Param { name, kind, default: None, doc }, read }
}

/// The same number in another type, if it fits.
pub(super) fn exact<T: TryFrom<i64>>(number: i64) -> Option<T> {
    T::try_from(number).ok()
}

impl<T> Typed<T> {
    /// Reads the values that a query gives for the parameter, in order.
    pub(super) fn read(&self, values: &[Cow<'_, str>]) -> Result<T, Failure> {
        let param = &self.param;
        match &self.read {
            Read::One(read) => read(param, param.only(values)?),
            Read::All(_) if values.is_empty() => Err(param.refusal("is missing")),
            Read::All(read) => read(param, values),
            Read::Number { parse, min, max, convert } => {
                let (number, value) = match (param.default, values) {
                    (Some(default), []) => (default, ""),
                    (Some(default), [value]) if value.is_empty() => (default, ""),
                    _ => {
                        let value = param.only(values)?;
                        let not_whole =
                            || param.refusal(&format!("is {}, not a whole number", quoted(value)));
                        (parse(value).ok_or_else(not_whole)?, &**value)
                    }
                };
                let accepted = if (*min..=*max).contains(&number) { convert(number) } else { None };
                accepted.ok_or_else(|| param.refusal(&format!("is {}, out of range", quoted(value))))
            }
        }
    }
}

fn read_boolean(param: &Param, value: &str) -> Result<bool, Failure> {
    match value.trim() {
        yes if yes.eq_ignore_ascii_case("true") => Ok(true),
        no if no.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(param.refusal(&format!("is {}", quoted(value)))),
    }
}

fn read_name(param: &Param, value: &str) -> Result<String, Failure> {
    if value.is_empty() {
        return Err(param.refusal("is empty"));
    }
    if param.kind == Kind::Path && value.contains('\0') {
        return Err(param.refusal("contains a NUL character"));
    }
    Ok(value.to_owned())
}

impl Param {
    /// The value of a parameter that may occur only once.
    fn only<'v, 'q>(&self, values: &'v [Cow<'q, str>]) -> Result<&'v Cow<'q, str>, Failure> {
        match values {
            [value] => Ok(value),
            [] => Err(self.refusal("is missing")),
            _ => Err(self.refusal("is given more than once")),
        }
    }

    fn key(&self, name: &str) -> Result<Key, Failure> {
        name.parse().map_err(|_| self.refusal(&format!("is {}, not a button", quoted(name))))
    }

    fn refusal(&self, problem: &str) -> Failure {
        let Param { name, kind, .. } = self;
        Failure::bad_request(format!("parameter {name} {problem}: it takes {}", kind.accepts()))
    }
}

impl Kind {
    /// What the parameter accepts, as the end of a sentence that begins with "it takes".
    pub fn accepts(&self) -> String {
        match self {
            Kind::Integer { min, max } => format!("a whole number from {min} to {max}, in decimal"),
            Kind::LuaNumber { max } => {
                format!("a whole number from 0 to {max} (0x{max:X}), in decimal or in hex after 0x")
            }
            Kind::Boolean => "true or false".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::Name => "a name".to_owned(),
            Kind::Path => "the path of a file on the emulator's machine".to_owned(),
            Kind::Button => format!("one of {}, in this spelling", all_buttons()),
            Kind::Buttons => {
                format!(
                    "one of {}, in this spelling; repeat the parameter for several buttons (buttons=A&buttons=B)",
                    all_buttons()
                )
            }
        }
    }
}

fn all_buttons() -> String {
    Key::ALL.into_iter().collect::<Keys>().names(", ")
}

/// A caller's text in quotes, shortened to 60 characters, with control characters made visible.
fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// A request's query, not yet decoded. Unknown parameters are ignored.
#[derive(Clone, Copy)]
pub(crate) struct RawQuery<'a>(pub(super) &'a str);

impl<'a> RawQuery<'a> {
    pub(super) fn get<T>(self, typed: &Typed<T>) -> Result<T, Failure> {
        let name = typed.param.name;
        let mut values = ParamValues::default();
        for pair in self.0.split('&') {
            let (given, value) = pair.split_once('=').unwrap_or((pair, ""));
            if is_called(given, name) {
                values.push(decode(value).ok_or_else(|| not_utf8(name))?);
            }
        }
        typed.read(values.as_slice())
    }
}

fn is_called(name: &str, wanted: &str) -> bool {
    name.eq_ignore_ascii_case(wanted)
        || (name.contains('%') && decode(name).is_some_and(|name| name.eq_ignore_ascii_case(wanted)))
}

/// Decodes the encoding of URLs and forms: `%2B`, and `+` for a space. `None` if the result is not UTF-8.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(Cow::Borrowed(text));
    }
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    Some(Cow::Owned(decoded.into_owned()))
}

fn not_utf8(name: &str) -> Failure {
    Failure::bad_request(format!(
        "parameter {name} is not UTF-8: encode it as UTF-8, then percent-encode the bytes"
    ))
}

/// The values of one parameter. There is nearly always exactly one, which is stored without an allocation.
#[derive(Default)]
struct ParamValues<'a> {
    /// The value, if there is exactly one.
    single: Option<Cow<'a, str>>,
    /// All values, if there are several.
    several: Vec<Cow<'a, str>>,
}

impl<'a> ParamValues<'a> {
    fn push(&mut self, value: Cow<'a, str>) {
        match self.single.take() {
            None if self.several.is_empty() => self.single = Some(value),
            first => self.several.extend(first.into_iter().chain([value])),
        }
    }

    fn as_slice(&self) -> &[Cow<'a, str>] {
        match &self.single {
            Some(single) => std::slice::from_ref(single),
            None => &self.several,
        }
    }
}
