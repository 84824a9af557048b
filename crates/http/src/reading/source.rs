//! The sources from which values are deserialized, and their errors.

use std::fmt::{Display, Formatter};

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

use super::fields::{Object, shown, whole};
use crate::problem::Problem;

/// The source of a value. Unlike serde_json, it does not accept a list in place of an object, and its errors say what
/// is accepted.
pub(super) enum ValueSource {
    Json(Json),
    /// Texts given for one parameter.
    Text(Vec<String>),
    /// The parameters of a query.
    Query(Vec<(String, Vec<String>)>),
}

impl ValueSource {
    fn refuse(&self, accepts: impl Into<String>) -> ReadError {
        match self {
            ValueSource::Json(value) => ReadError::not_accepted(value, accepts),
            ValueSource::Text(texts) => match &texts[..] {
                [] => ReadError::new("is missing", accepts),
                [text] => ReadError::new(format!("is {text:?}"), accepts),
                _ => ReadError::new("is given more than once", format!("{} once", accepts.into())),
            },
            ValueSource::Query(_) => ReadError::new("is a query", accepts),
        }
    }

    /// The value, if it is one text.
    fn text(&self) -> Option<&str> {
        match self {
            ValueSource::Json(Json::String(text)) => Some(text),
            ValueSource::Text(texts) if texts.len() == 1 => Some(&texts[0]),
            _ => None,
        }
    }

    /// The value, if it is a whole number.
    fn integer(&self) -> Option<i128> {
        match self {
            ValueSource::Json(Json::Number(number)) => whole(number),
            ValueSource::Text(_) => self.text()?.parse().ok(),
            _ => None,
        }
    }

    fn integer_in(&self, least: i128, greatest: i128) -> Result<i128, ReadError> {
        let accepts = || match (least, greatest) {
            (0, greatest) if greatest > u32::MAX.into() => "a whole number, 0 or more".to_owned(),
            (_, greatest) if greatest > u32::MAX.into() => "a whole number".to_owned(),
            _ => format!("a whole number from {least} to {greatest}"),
        };
        self.integer()
            .filter(|number| (least..=greatest).contains(number))
            .ok_or_else(|| self.refuse(accepts()))
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $kind:ty),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            let number = self.integer_in(<$kind>::MIN.into(), <$kind>::MAX.into())?;
            visitor.$visit(number as $kind)
        }
    )*};
}

impl<'de> Deserializer<'de> for ValueSource {
    type Error = ReadError;

    integers!(
        deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64, deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32, deserialize_i64 visit_i64 i64
    );

    /// A whole number of any size. If the value is something else, the visitor gets a text that says what it is.
    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.integer() {
            Some(number) => visitor.visit_i128(number),
            None => visitor.visit_string(self.refuse("").to_string()),
        }
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            ValueSource::Json(Json::Null) => visitor.visit_unit(),
            ValueSource::Json(Json::Bool(value)) => visitor.visit_bool(value),
            ValueSource::Json(Json::Number(number)) => {
                match (number.as_u64(), number.as_i64(), number.as_f64()) {
                    (Some(number), ..) => visitor.visit_u64(number),
                    (_, Some(number), _) => visitor.visit_i64(number),
                    (.., number) => visitor.visit_f64(number.unwrap_or(f64::NAN)),
                }
            }
            ValueSource::Json(Json::String(text)) => visitor.visit_string(text),
            ValueSource::Json(Json::Array(_)) => self.deserialize_seq(visitor),
            ValueSource::Json(Json::Object(_)) | ValueSource::Query(_) => self.deserialize_map(visitor),
            ValueSource::Text(_) => self.deserialize_string(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let value = match &self {
            ValueSource::Json(value) => value.as_bool(),
            other => other.text().and_then(|text| text.parse().ok()),
        };
        visitor.visit_bool(value.ok_or_else(|| self.refuse("true or false"))?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let value = match &self {
            ValueSource::Json(value) => value.as_f64(),
            other => {
                other.text().and_then(|text| text.parse().ok()).filter(|number: &f64| number.is_finite())
            }
        };
        visitor.visit_f64(value.ok_or_else(|| self.refuse("a number"))?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.text() {
            Some(text) => visitor.visit_string(text.to_owned()),
            None => Err(self.refuse("a text")),
        }
    }

    /// `null` counts as left out.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            ValueSource::Json(Json::Null) => visitor.visit_none(),
            other => visitor.visit_some(other),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let items: Vec<ValueSource> = match self {
            ValueSource::Json(Json::Array(items)) => items.into_iter().map(ValueSource::Json).collect(),
            ValueSource::Text(texts) => texts.into_iter().map(|text| ValueSource::Text(vec![text])).collect(),
            other => return Err(other.refuse("a list")),
        };
        visitor.visit_seq(Items { left: items.into_iter().enumerate() })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let fields: Vec<(String, ValueSource)> = match self {
            ValueSource::Json(Json::Object(fields)) => {
                fields.into_iter().map(|(name, value)| (name, ValueSource::Json(value))).collect()
            }
            ValueSource::Query(given) => {
                given.into_iter().map(|(name, texts)| (name, ValueSource::Text(texts))).collect()
            }
            other => return Err(other.refuse("an object")),
        };
        visitor.visit_map(FieldAccess { left: fields.into_iter(), value: None })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match &self {
            ValueSource::Json(Json::Object(_)) | ValueSource::Query(_) => self.deserialize_map(visitor),
            other => Err(other.refuse(format!("an object with {}", fields.join(", ")))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.text().filter(|text| variants.contains(text)) {
            Some(text) => {
                let variant: StrDeserializer<'_, ReadError> = text.into_deserializer();
                visitor.visit_enum(variant)
            }
            None => Err(self.refuse(format!("one of {}", variants.join(", ")))),
        }
    }

    serde::forward_to_deserialize_any! {
        char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

struct Items<I> {
    left: I,
}

impl<'de, I: Iterator<Item = (usize, ValueSource)>> SeqAccess<'de> for Items<I> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some((index, item)) = self.left.next() else { return Ok(None) };
        seed.deserialize(item).map(Some).map_err(|refusal| refusal.at(index))
    }
}

struct FieldAccess<I> {
    left: I,
    /// The field whose name was read last.
    value: Option<(String, ValueSource)>,
}

impl<'de, I: Iterator<Item = (String, ValueSource)>> MapAccess<'de> for FieldAccess<I> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some((name, value)) = self.left.next() else { return Ok(None) };
        let name_of: StrDeserializer<'_, ReadError> = name.as_str().into_deserializer();
        let key = seed.deserialize(name_of)?;
        self.value = Some((name, value));
        Ok(Some(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let Some((name, value)) = self.value.take() else {
            return Err(ReadError::new("has a field without a value", "a value"));
        };
        seed.deserialize(value).map_err(|refusal| refusal.within(&name))
    }
}

/// The separator between a problem and what is accepted, in the errors of `Deserialize` implementations.
pub(super) const ACCEPTED: &str = "; accepted is ";

/// Why a value cannot be read.
#[derive(Debug, Default)]
pub(super) struct ReadError {
    /// The place of the value, such as `ops[3].address`; empty if the error is about the whole body or query.
    place: String,
    /// What is wrong, worded so that it can follow the place, such as `is missing`.
    problem: String,
    accepts: Option<String>,
    /// Whether the value is missing.
    missing: bool,
}

impl ReadError {
    pub fn new(problem: impl Into<String>, accepts: impl Into<String>) -> ReadError {
        ReadError { problem: problem.into(), accepts: Some(accepts.into()), ..ReadError::default() }
    }

    /// The value has a wrong type, or is not accepted.
    pub fn not_accepted(value: &Json, accepts: impl Into<String>) -> ReadError {
        match value {
            Json::Array(_) => ReadError::new("is a list", accepts),
            Json::Object(_) => ReadError::new("is an object", accepts),
            _ => ReadError::new(format!("is {}", shown(value)), accepts),
        }
    }

    /// The same error, in the field of this name.
    pub fn within(self, name: &str) -> ReadError {
        let place = match self.place.as_str() {
            "" => name.to_owned(),
            inner if inner.starts_with('[') => format!("{name}{inner}"),
            inner => format!("{name}.{inner}"),
        };
        ReadError { place, ..self }
    }

    /// The same error, in the item of a list with this index.
    pub fn at(self, index: usize) -> ReadError {
        self.within(&format!("[{index}]"))
    }

    /// If the error is about a missing value, adds what is accepted there. To find that out, `read` reads a value at
    /// this place that is never accepted: a null, or a parameter without a value. The resulting error says what is
    /// accepted.
    pub fn with_expected<T>(self, read: impl FnOnce(&str) -> Result<T, ReadError>) -> ReadError {
        if !self.missing {
            return self;
        }
        match read(&self.place) {
            // If the places differ, the type has refused another field first, and the error does not help.
            Err(other) if names(&other.place).eq(names(&self.place)) => {
                ReadError { accepts: other.accepts, ..self }
            }
            _ => self,
        }
    }

    /// The problem for callers. `whole` names the text that was read, such as "the query".
    pub fn problem(self, whole: &str) -> Problem {
        match (self.place.as_str(), self.accepts) {
            ("", None) => Problem::bad_request(format!("{whole} {}", self.problem)),
            ("", Some(accepts)) => Problem::of_whole(whole, &self.problem, accepts),
            (place, None) => Problem::unusable(place, &self.problem),
            (place, Some(accepts)) => Problem::parameter(place, &self.problem, accepts),
        }
    }
}

/// An object that contains only a null, at a place such as `presses[0].at`.
pub(super) fn null_at(place: &str) -> Json {
    place.rsplit('.').fold(Json::Null, |inner, step| {
        let inner = if step.contains('[') { Json::Array(vec![inner]) } else { inner };
        let name = step.split('[').next().unwrap_or(step);
        let mut object = Object::new();
        object.insert(name.to_owned(), inner);
        Json::Object(object)
    })
}

/// The names of the fields on the way to a place.
fn names(place: &str) -> impl Iterator<Item = Option<&str>> {
    place.split('.').map(|step| step.split('[').next())
}

impl Display for ReadError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.problem)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    /// The error of a `Deserialize` implementation. After [`ACCEPTED`], it may say what is accepted.
    fn custom<T: Display>(message: T) -> ReadError {
        let message = message.to_string();
        match message.split_once(ACCEPTED) {
            Some((problem, accepts)) => ReadError::new(problem, accepts),
            None => ReadError { problem: message, ..ReadError::default() },
        }
    }

    fn missing_field(field: &'static str) -> ReadError {
        ReadError { place: field.to_owned(), problem: "is missing".to_owned(), accepts: None, missing: true }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> ReadError {
        let known = if expected.is_empty() { "none".to_owned() } else { expected.join(", ") };
        ReadError { place: field.to_owned(), ..ReadError::new("is not known here", known) }
    }
}
