use std::fmt::{Display, Formatter};

use serde::de;
use serde_json::Value as Json;

use super::fields::shown;
use crate::problem::Problem;

/// What stands between a problem and what is accepted, in what types say of themselves.
pub(super) const ACCEPTED: &str = "; accepted is ";

/// Why a type cannot be made of what was sent.
#[derive(Debug)]
pub(super) struct ReadError {
    /// Where, such as `ops[3].address`; empty for the whole.
    place: String,
    /// What is wrong, to follow the place.
    problem: String,
    accepts: Option<String>,
    /// Nothing is there.
    missing: bool,
}

impl ReadError {
    pub fn new(problem: impl Into<String>, accepts: impl Into<String>) -> ReadError {
        ReadError {
            place: String::new(),
            problem: problem.into(),
            accepts: Some(accepts.into()),
            missing: false,
        }
    }

    /// A value is there that is not one of these.
    pub fn value(value: &Json, accepts: impl Into<String>) -> ReadError {
        ReadError::new(format!("is {}", shown(value)), accepts)
    }

    /// Something of another kind is there.
    pub fn kind(value: &Json, accepts: impl Into<String>) -> ReadError {
        let kind = match value {
            Json::Array(_) => "is a list",
            Json::Object(_) => "is an object",
            _ => return ReadError::value(value, accepts),
        };
        ReadError::new(kind, accepts)
    }

    /// The same, of a field of this name.
    pub fn within(self, name: &str) -> ReadError {
        let place = match self.place.as_str() {
            "" => name.to_owned(),
            inner if inner.starts_with('[') => format!("{name}{inner}"),
            inner => format!("{name}.{inner}"),
        };
        ReadError { place, ..self }
    }

    /// The same, of an item of a list.
    pub fn at(self, index: usize) -> ReadError {
        self.within(&format!("[{index}]"))
    }

    /// For what is missing: the same with what is accepted there, as `read` refuses a nothing in its place.
    pub fn with_expected<T>(self, read: impl FnOnce(&str) -> Result<T, ReadError>) -> ReadError {
        if !self.missing {
            return self;
        }
        match read(&self.place) {
            // Another field may be refused first, by a type that knows more than its fields.
            Err(other) if names(&other.place).eq(names(&self.place)) => {
                ReadError { accepts: other.accepts, ..self }
            }
            _ => self,
        }
    }

    /// The problem for callers; `whole` is what was read.
    pub fn problem(self, whole: &str) -> Problem {
        match (self.place.as_str(), self.accepts) {
            ("", None) => Problem::bad_request(format!("{whole} {}", self.problem)),
            ("", Some(accepts)) => Problem::of_whole(whole, &self.problem, accepts),
            (place, None) => Problem::unusable(place, &self.problem),
            (place, Some(accepts)) => Problem::parameter(place, &self.problem, accepts),
        }
    }
}

/// An object with nothing but a null, at a place such as `presses[0].at`.
pub(super) fn null_at(place: &str) -> Json {
    place.rsplit('.').fold(Json::Null, |inner, step| {
        let inner = if step.contains('[') { Json::Array(vec![inner]) } else { inner };
        let name = step.split('[').next().unwrap_or(step);
        Json::Object([(name.to_owned(), inner)].into_iter().collect())
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
    /// What a type says itself; after [`ACCEPTED`] what it takes.
    fn custom<T: Display>(message: T) -> ReadError {
        let message = message.to_string();
        match message.split_once(ACCEPTED) {
            Some((problem, accepts)) => ReadError::new(problem, accepts),
            None => ReadError { place: String::new(), problem: message, accepts: None, missing: false },
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
