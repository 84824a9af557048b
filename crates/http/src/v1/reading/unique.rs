use std::fmt::Formatter;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

use crate::v1::Problem;
use crate::v1::fields::Object;

/// Reads JSON in which no object has a key twice: which of the two counts is for nobody to guess.
pub(super) fn read(text: &[u8]) -> Result<Json, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let unreadable =
        |error: &serde_json::Error| Problem::bad_request(format!("the body cannot be read as JSON: {error}"));
    let read: Result<Unique, _> = serde_path_to_error::deserialize(&mut reader);
    let Unique(value) = read.map_err(|error| {
        let place = error.path().to_string();
        match (error.inner().is_data(), place.as_str()) {
            (true, ".") => Problem::bad_request(format!("the body {}", error.inner())),
            (true, place) => Problem::unusable(place, &error.inner().to_string()),
            (false, _) => unreadable(error.inner()),
        }
    })?;
    reader.end().map_err(|error| unreadable(&error))?;
    Ok(value)
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

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
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
