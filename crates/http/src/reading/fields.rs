//! The fields of a JSON object, read one by one. Errors name the field.

use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use framewire_expression::{Code, Format, Names, ParseError, Type};
use framewire_protocol::hex::{hex_digits, parse_hex_digits};
use framewire_protocol::{Key, Keys};
use framewire_symbols::{Location, Symbols};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value as Json};
use utoipa::ToSchema;

use crate::problem::{Problem, Result};
use framewire_protocol::number::lua_integer;

pub(crate) type Object = serde_json::Map<String, Json>;

/// How bytes are written in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Encoding {
    /// RFC 4648, section 4, with padding.
    #[default]
    Base64,
    /// Two digits for each byte.
    Hex,
}

impl Encoding {
    pub(crate) fn text(self, bytes: &[u8]) -> String {
        match self {
            Encoding::Base64 => STANDARD.encode(bytes),
            Encoding::Hex => hex_digits(bytes),
        }
    }

    /// Reads bytes from text; `None` if the text is not in this encoding.
    pub(crate) fn bytes(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Encoding::Base64 => STANDARD.decode(text).ok(),
            Encoding::Hex => parse_hex_digits(text),
        }
    }
}

/// The context in which the values of fields are read.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) symbols: &'a Symbols,
    pub(crate) encoding: Encoding,
}

/// The fields of an object, which are read one by one.
pub(crate) struct Fields<'a> {
    left: Object,
    /// The names that were read, for the error about an unknown field.
    known: Vec<&'static str>,
    pub(crate) context: Context<'a>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(object: Object, context: Context<'a>) -> Fields<'a> {
        Fields { left: object, known: Vec::new(), context }
    }

    /// A field; `null` counts as left out.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<Json> {
        self.known.push(name);
        self.left.remove(name).filter(|value| !value.is_null())
    }

    /// A required field; `accepts` says what it accepts.
    pub(crate) fn required(&mut self, name: &'static str, accepts: &str) -> Result<Json> {
        self.take(name).ok_or_else(|| Problem::parameter(name, "is missing", accepts))
    }

    /// A field that may be left out.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Fields<'a>, &'static str) -> Result<T>,
    ) -> Result<Option<T>> {
        if self.left.get(name).is_some_and(|value| !value.is_null()) {
            return read(self, name).map(Some);
        }
        self.take(name);
        Ok(None)
    }

    /// Refuses fields that were not read, if there are any.
    pub(crate) fn end(self) -> Result<()> {
        let Some(name) = self.left.keys().next() else { return Ok(()) };
        let known = if self.known.is_empty() { "no field".to_owned() } else { self.known.join(", ") };
        Err(Problem::parameter(name.as_str(), "is not a field here", known))
    }

    /// A whole number, as [`integer`] reads it.
    pub(crate) fn integer(&mut self, name: &'static str, min: i64, max: i64) -> Result<i64> {
        let accepts = format!("a whole number from {min} to {max}, or text in hex such as \"0x1f\"");
        let value = self.required(name, &accepts)?;
        let number = integer(&value).filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| wrong_value(name, &value, accepts))
    }

    /// An address: a number or a symbol.
    pub(crate) fn address(&mut self, name: &'static str) -> Result<u32> {
        let value = self.required(name, ADDRESSES)?;
        Ok(place(&value, self.context.symbols, name)?.address)
    }

    /// An offset in a memory domain: a number.
    pub(crate) fn offset(&mut self, name: &'static str) -> Result<u32> {
        let value = self.required(name, OFFSETS)?;
        offset(&value, name)
    }

    /// An address and, if it is known, the type of the number there; with a domain, an offset in the domain.
    pub(crate) fn target(&mut self, name: &'static str, domain: Option<&str>) -> Result<Target> {
        let accepts = if domain.is_some() { OFFSETS } else { ADDRESSES };
        let value = self.required(name, accepts)?;
        target(&value, domain, self.context.symbols, name)
    }

    /// An address on the bus, as the caller wrote it and as a [`Target`].
    pub(crate) fn written_target(&mut self, name: &'static str) -> Result<(Json, Target)> {
        let value = self.required(name, ADDRESSES)?;
        let target = target(&value, None, self.context.symbols, name)?;
        Ok((value, target))
    }

    pub(crate) fn boolean(&mut self, name: &'static str) -> Result<bool> {
        let value = self.required(name, "true or false")?;
        value.as_bool().ok_or_else(|| wrong_value(name, &value, "true or false"))
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Result<String> {
        match self.required(name, "a text")? {
            Json::String(text) => Ok(text),
            other => Err(wrong_value(name, &other, "a text")),
        }
    }

    /// The path of a file.
    pub(crate) fn path(&mut self, name: &'static str) -> Result<String> {
        let path = self.text(name)?;
        check_path(name, &path)?;
        Ok(path)
    }

    /// Bytes as text, in the encoding of the request.
    pub(crate) fn bytes(&mut self, name: &'static str) -> Result<Vec<u8>> {
        let accepts = match self.context.encoding {
            Encoding::Base64 => "bytes as base64 text, or as hex with \"encoding\": \"hex\"",
            Encoding::Hex => "bytes as hex text, two digits each",
        };
        let value = self.required(name, accepts)?;
        let bytes = value.as_str().and_then(|text| self.context.encoding.bytes(text));
        bytes.ok_or_else(|| wrong_value(name, &value, accepts))
    }

    /// Keys by name or as a mask.
    pub(crate) fn keys(&mut self, name: &'static str) -> Result<Keys> {
        let value = self.required(name, KEYS)?;
        keys(&value).ok_or_else(|| wrong_value(name, &value, KEYS))
    }

    /// A key by name or number.
    pub(crate) fn key(&mut self, name: &'static str) -> Result<Key> {
        const ACCEPTS: &str = "the name of a key, such as \"A\", or its number from 0 to 9";
        let value = self.required(name, ACCEPTS)?;
        let by_name = value.as_str().and_then(|name| name.parse().ok());
        let by_number =
            || integer(&value).and_then(|number| u8::try_from(number).ok()).and_then(Key::from_number);
        by_name.or_else(by_number).ok_or_else(|| wrong_value(name, &value, ACCEPTS))
    }
}

const ADDRESSES: &str = "a number from 0 to 4294967295, a text such as \"0x02000000\", a symbol such as \"score\" or \"score+2\", or \
                         an address in memory such as \"u32[0x03005D8C] + 4\"";
const OFFSETS: &str = "an offset in the domain, from 0 on, as a number or in hex such as \"0x1f\"; a symbol is an address on \
                       the bus, so it cannot be used with a domain";
/// What [`keys`] reads, in the words of error messages. The function also reads names joined by `+`, which these words
/// leave out.
pub(crate) const KEYS: &str =
    "a list of the names A, B, Select, Start, Right, Left, Up, Down, R and L, or a mask from 0 to 1023";

/// Refuses a path that no file can have.
pub(crate) fn check_path(name: &str, path: &str) -> Result<()> {
    if path.is_empty() || path.contains('\0') {
        let accepts = "the path of a file on the emulator's machine";
        return Err(Problem::parameter(name, "is empty or contains a NUL", accepts));
    }
    Ok(())
}

/// The value of a JSON number that is whole, even if it is written with a fraction or an exponent, such as 2.0.
pub(super) fn whole(number: &Number) -> Option<i128> {
    let fraction = || number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
    let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    whole.or_else(|| fraction().map(|number| number as i128))
}

/// A whole number: a JSON number or, because JSON has no hex numbers, a text such as `0x1f`.
pub(crate) fn integer(value: &Json) -> Option<i64> {
    match value {
        Json::Number(number) => whole(number).and_then(|number| i64::try_from(number).ok()),
        Json::String(text) => {
            let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'))?;
            u32::from_str_radix(digits, 16).ok().map(i64::from)
        }
        _ => None,
    }
}

/// An address or an offset that is a number: a JSON number, or a text as Lua's `tonumber` reads it.
pub(crate) fn numeric_place(value: &Json) -> Option<i64> {
    match value {
        Json::String(text) => lua_integer(text.trim()),
        value => integer(value),
    }
}

/// An offset in a memory domain, which cannot be a symbol.
pub(crate) fn offset(value: &Json, name: &str) -> Result<u32> {
    let offset = numeric_place(value).and_then(|number| u32::try_from(number).ok());
    offset.ok_or_else(|| wrong_value(name, value, OFFSETS))
}

/// An address: a number, or a text that [`Symbols::locate`] reads.
pub(crate) fn place(value: &Json, symbols: &Symbols, name: &str) -> Result<Location> {
    match value {
        Json::String(text) => {
            symbols.locate(text).map_err(|problem| name_problem(symbols, Problem::at(name, &problem)))
        }
        value => integer(value)
            .and_then(|number| u32::try_from(number).ok())
            .map(|address| Location { address, kind: None })
            .ok_or_else(|| wrong_value(name, value, ADDRESSES)),
    }
}

/// A place in memory that a caller names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) address: Address,
    /// The type of the number there; `None` if it is not known.
    pub(crate) kind: Option<Type>,
    /// How the number is converted to a value.
    pub(crate) format: Format,
}

/// An address that a caller names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// On the bus, or an offset in a domain.
    Known(u32),
    /// An encoded expression, which the emulator evaluates when it uses the address.
    Computed(Vec<u8>),
}

impl Address {
    /// The address as an encoded expression.
    pub(crate) fn code(&self) -> Vec<u8> {
        match self {
            Address::Known(address) => Code::constant((*address).into()).encode(),
            Address::Computed(code) => code.clone(),
        }
    }
}

/// An address as [`place_in`] reads it or, without a domain, an expression such as `u32[0x03005D8C] + 4`.
pub(crate) fn target(value: &Json, domain: Option<&str>, symbols: &Symbols, name: &str) -> Result<Target> {
    match (computed(value, symbols), domain) {
        (Some(target), None) => target.map_err(|error| {
            name_problem(symbols, Problem::unusable(name, &format!("is {}: {error}", shown(value))))
        }),
        _ => {
            let Location { address, kind } = place_in(value, domain, symbols, name)?;
            Ok(Target { address: Address::Known(address), kind, format: Format::Plain })
        }
    }
}

/// Reads an address that is an expression. Returns `None` for a number, for a text that [`Symbols::locate`] reads, and
/// for an invalid text that does not look like an expression.
pub(crate) fn computed(value: &Json, symbols: &Symbols) -> Option<Result<Target, ParseError>> {
    let text = value.as_str()?;
    if symbols.locate(text).is_ok() {
        return None;
    }
    match Code::parse_address(text, symbols) {
        Ok((code, number)) => {
            let address = match code.known().map(|known| (known, u32::try_from(known))) {
                None => Address::Computed(code.encode()),
                Some((_, Ok(address))) => Address::Known(address),
                Some((known, Err(_))) => {
                    let message = format!("its value is {known}; use an address from 0 to 0xFFFFFFFF");
                    return Some(Err(ParseError { column: 1, message }));
                }
            };
            let format = number.map_or(Format::Plain, |(_, format)| format);
            Some(Ok(Target { address, kind: number.map(|(kind, _)| kind), format }))
        }
        Err(error) if is_expression(text, symbols) => Some(Err(error)),
        // The error of `locate` describes the problem.
        Err(_) => None,
    }
}

/// Whether a text that is not an address looks like an expression, or names a variable or a part of a variable, such as
/// `party[0].hp`.
fn is_expression(text: &str, symbols: &Symbols) -> bool {
    let root = text.split(['.', '[']).next().unwrap_or_default().trim();
    symbols.variable(root).is_some()
        || Type::ALL.iter().any(|kind| text.contains(&format!("{}[", kind.name())))
}

/// The problem with a text that may use names. If there are no names because the symbol files belong to another game,
/// the status is 404.
pub(crate) fn name_problem(symbols: &Symbols, problem: Problem) -> Problem {
    match symbols.unavailable() {
        Some(why) if problem.detail().contains(why) => problem.with_status(StatusCode::NOT_FOUND),
        _ => problem,
    }
}

/// An address or, with a domain, an offset in the domain.
pub(crate) fn place_in(
    value: &Json,
    domain: Option<&str>,
    symbols: &Symbols,
    name: &str,
) -> Result<Location> {
    match domain {
        None => place(value, symbols, name),
        Some(_) => Ok(Location { address: offset(value, name)?, kind: None }),
    }
}

/// Keys by name, in a list or joined by `+`, or as a mask.
pub(crate) fn keys(value: &Json) -> Option<Keys> {
    match value {
        Json::Array(names) => names.iter().map(|name| name.as_str()?.parse::<Key>().ok()).collect(),
        Json::String(names) => names.split('+').map(|name| name.parse::<Key>().ok()).collect(),
        value => integer(value).and_then(|mask| u16::try_from(mask).ok()).and_then(Keys::from_mask),
    }
}

/// The problem with a value that is not accepted.
pub(crate) fn wrong_value(name: impl Into<String>, value: &Json, accepts: impl Into<String>) -> Problem {
    Problem::parameter(name, &format!("is {}", shown(value)), accepts)
}

/// A caller's value as JSON, shortened to 60 characters.
pub(crate) fn shown(value: &Json) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
