//! Reads what callers send into types. Errors name the place, what it holds, and what is accepted there.
//!
//! - `unique`: JSON in which no key is twice;
//! - `source`: a JSON value, or the texts of a query or path, as a type asks for it;
//! - `whole`: whole numbers within a range;
//! - `refusal`: why a type cannot be made of it.

pub(crate) mod fields;
pub(crate) mod pairs;
mod refusal;
mod source;
pub(crate) mod unique;
pub(crate) mod whole;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use self::fields::Object;
use crate::problem::Problem;
use refusal::{ReadError, null_at};
use source::ValueSource;

/// Reads a body of JSON, which is an object; an empty one is an object without fields.
pub(crate) fn body<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    let text = if text.trim_ascii().is_empty() { b"{}" } else { text };
    match unique::read(text).map_err(|error| error.problem("the body"))? {
        body @ Json::Object(_) => read(body, "the body"),
        other => Err(ReadError::kind(&other, "an object in JSON, such as {}").problem("the body")),
    }
}

/// Reads an object that was read as JSON before.
pub(crate) fn object<T: DeserializeOwned>(object: Object) -> Result<T, Problem> {
    read(Json::Object(object), "the object")
}

/// Reads a value that stands at the place `name`.
pub(crate) fn value<T: DeserializeOwned>(name: &str, value: Json) -> Result<T, Problem> {
    T::deserialize(ValueSource::Json(value)).map_err(|refusal| refusal.within(name).problem(name))
}

fn read<T: DeserializeOwned>(value: Json, whole: &str) -> Result<T, Problem> {
    let from = |value| T::deserialize(ValueSource::Json(value));
    from(value).map_err(|refusal| refusal.with_expected(|place| from(null_at(place))).problem(whole))
}

/// Reads the parameters of a query, each with all texts that were given for it.
pub(crate) fn query<T: DeserializeOwned>(given: Vec<(String, Vec<String>)>) -> Result<T, Problem> {
    let without = |name: &str| T::deserialize(ValueSource::Query(vec![(name.to_owned(), Vec::new())]));
    T::deserialize(ValueSource::Query(given))
        .map_err(|refusal| refusal.with_expected(without).problem("the query"))
}

/// Reads the part `name` of a path.
pub(crate) fn part<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Problem> {
    let refused = |refusal: ReadError| refusal.within(name).problem(name);
    T::deserialize(ValueSource::Text(vec![text.to_owned()])).map_err(refused)
}
