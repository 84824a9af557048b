//! Converts the JSON and the queries of requests to Rust types. Errors name the place, the value there, and what is
//! accepted.
//!
//! - `unique`: JSON without duplicate keys;
//! - `source`: deserializes types from a JSON value, or from the texts of a query or path;
//! - `fields`: the fields of an object, read one by one.

use std::borrow::Cow;
use std::fmt::Formatter;

use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, Visitor};
use serde_json::Value as Json;

use self::fields::{Object, shown};
use self::source::{ACCEPTED, ReadError, ValueSource, null_at};
use crate::problem::Problem;

pub(crate) mod fields;
mod source;
pub(crate) mod unique;

/// Reads a JSON body, which must be an object. An empty body counts as an object without fields.
pub(crate) fn body<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    let text = if text.trim_ascii().is_empty() { b"{}" } else { text };
    match unique::read(text).map_err(|error| error.problem("the body"))? {
        body @ Json::Object(_) => read(body, "the body"),
        other => Err(ReadError::not_accepted(&other, "an object in JSON, such as {}").problem("the body")),
    }
}

/// Converts a JSON object.
pub(crate) fn object<T: DeserializeOwned>(object: Object) -> Result<T, Problem> {
    read(Json::Object(object), "the object")
}

/// Converts a value. In errors, `name` is the value's place.
pub(crate) fn value<T: DeserializeOwned>(name: &str, value: Json) -> Result<T, Problem> {
    T::deserialize(ValueSource::Json(value)).map_err(|refusal| refusal.within(name).problem(name))
}

fn read<T: DeserializeOwned>(value: Json, whole: &str) -> Result<T, Problem> {
    let from = |value| T::deserialize(ValueSource::Json(value));
    // If a value is missing, reading a null in its place gives an error that says what is accepted there.
    from(value).map_err(|refusal| refusal.with_expected(|place| from(null_at(place))).problem(whole))
}

/// Reads the parameters of a query. `given` has the name of each parameter and all texts for it.
pub(crate) fn query<T: DeserializeOwned>(given: Vec<(String, Vec<String>)>) -> Result<T, Problem> {
    let without = |name: &str| T::deserialize(ValueSource::Query(vec![(name.to_owned(), Vec::new())]));
    T::deserialize(ValueSource::Query(given))
        .map_err(|refusal| refusal.with_expected(without).problem("the query"))
}

/// Reads the parameter `name` of a path from its text.
pub(crate) fn part<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Problem> {
    let refused = |refusal: ReadError| refusal.within(name).problem(name);
    T::deserialize(ValueSource::Text(vec![text.to_owned()])).map_err(refused)
}

/// A whole number from `MIN` to `MAX`. Errors name this range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Whole<MIN, MAX> {
    /// A constant within the range, for default values.
    pub(crate) const fn constant<const NUMBER: u32>() -> Whole<MIN, MAX> {
        const { assert!(MIN <= NUMBER && NUMBER <= MAX) };
        Whole(NUMBER)
    }

    pub(crate) const fn get(self) -> u32 {
        self.0
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Whole<MIN, MAX>, D::Error> {
        deserializer.deserialize_i128(Within)
    }
}

struct Within<const MIN: u32, const MAX: u32>;

impl<const MIN: u32, const MAX: u32> Visitor<'_> for Within<MIN, MAX> {
    type Value = Whole<MIN, MAX>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "a whole number from {MIN} to {MAX}")
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Whole<MIN, MAX>, E> {
        let within = u32::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number));
        within.map(Whole).ok_or_else(|| refused::<MIN, MAX, E>(&format!("is {number}")))
    }

    /// If the value is not a whole number, [`ValueSource`] passes a text that says what it is.
    fn visit_str<E: Error>(self, problem: &str) -> Result<Whole<MIN, MAX>, E> {
        Err(refused::<MIN, MAX, E>(problem))
    }
}

/// The error of a conversion from JSON, with the value and what is accepted in its place.
pub(crate) fn refusal(value: &Json, accepts: &str) -> String {
    format!("is {}{ACCEPTED}{accepts}", shown(value))
}

fn refused<const MIN: u32, const MAX: u32, E: Error>(problem: &str) -> E {
    E::custom(format!("{problem}{ACCEPTED}a whole number from {MIN} to {MAX}"))
}

/// The name of the emulator in a request's query. If several are given, it is the first.
pub(crate) fn emulator_of(parts: &Parts) -> Option<String> {
    pairs(parts).find(is_emulator).map(value_of)
}

/// The `NAME=VALUE` pairs of a request's query.
pub(crate) fn pairs(parts: &Parts) -> impl Iterator<Item = &str> {
    pairs_of(parts.uri.query().unwrap_or(""))
}

pub(crate) fn pairs_of(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|pair| !pair.is_empty())
}

pub(crate) fn is_emulator(pair: &&str) -> bool {
    name_of(pair) == "emulator"
}

pub(crate) fn name_of(pair: &str) -> Cow<'_, str> {
    decoded(pair.split_once('=').map_or(pair, |(name, _)| name))
}

pub(crate) fn value_of(pair: &str) -> String {
    decoded(pair.split_once('=').map_or("", |(_, value)| value)).into_owned()
}

fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned())
}
