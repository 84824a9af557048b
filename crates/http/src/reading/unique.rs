//! Reads JSON, and refuses objects with duplicate keys.

use std::fmt::Formatter;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

use super::fields::Object;
use crate::problem::Problem;

/// The largest number of objects in a text: more than any request needs. Each object uses about 700 bytes of memory,
/// even if it has only 7 bytes in the text.
const MAX_OBJECTS: usize = 131_072;

/// Why JSON cannot be read.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// It is not JSON.
    Syntax(serde_json::Error),
    /// It has more than [`MAX_OBJECTS`] objects.
    TooMany,
    /// An object has a key twice.
    Twice {
        /// The place of the object in the JSON; empty if it is the outermost object.
        place: String,
        /// What is wrong with the object. In messages, this text follows the place.
        problem: String,
    },
}

impl Unreadable {
    /// The problem for callers. `whole` names the text that was read, such as "the body".
    pub(crate) fn problem(self, whole: &str) -> Problem {
        match self {
            Unreadable::Syntax(error) => {
                Problem::bad_request(format!("{whole} cannot be read as JSON: {error}"))
            }
            Unreadable::TooMany => Problem::too_large(format!(
                "{whole} has more than {MAX_OBJECTS} objects; send fewer at a time"
            )),
            Unreadable::Twice { place, problem } if place.is_empty() => {
                Problem::bad_request(format!("{whole} {problem}"))
            }
            Unreadable::Twice { place, problem } => Problem::unusable(&place, &problem),
        }
    }
}

/// Reads JSON, and refuses objects with duplicate keys, because it is not clear which value counts.
pub(crate) fn read(text: &[u8]) -> Result<Json, Unreadable> {
    // This also counts braces inside strings, but strings rarely contain any.
    if memchr::memchr_iter(b'{', text).count() > MAX_OBJECTS {
        return Err(Unreadable::TooMany);
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    match Unique::deserialize(&mut reader).and_then(|unique| reader.end().map(|()| unique)) {
        Ok(Unique(value)) => Ok(value),
        Err(error) if error.is_data() => {
            Err(Unreadable::Twice { place: place_of_error(text), problem: bare(&error) })
        }
        Err(error) => Err(Unreadable::Syntax(error)),
    }
}

/// The error without its line and column, which are not useful next to the place.
fn bare(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(text, _)| text.to_owned())
}

/// Reads a text a second time after an error, to find the place of the error.
fn place_of_error(text: &[u8]) -> String {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read: Result<Unique, _> = serde_path_to_error::deserialize(&mut reader);
    let place = read.err().map(|error| error.path().to_string()).unwrap_or_default();
    if place == "." { String::new() } else { place }
}

struct Unique(Json);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unique, D::Error> {
        deserializer.deserialize_any(Any).map(Unique)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Json;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json, A::Error> {
        let mut object = Object::new();
        while let Some(name) = fields.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("has {name:?} twice")));
            }
            let Unique(value) = fields.next_value()?;
            object.insert(name, value);
        }
        Ok(Json::Object(object))
    }
}
