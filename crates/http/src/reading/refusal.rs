use std::fmt::{Display, Formatter};

use serde::de;
use serde_json::Value as Json;

use super::fields::shown;
use crate::problem::Problem;

/// What stands between a problem and what is accepted, in what types say of themselves.
pub(super) const ACCEPTED: &str = "; accepted is ";

/// Why a type cannot be made of what was sent.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Where, such as `ops[3].address`; empty for the whole.
    place: String,
    /// What is wrong, to follow the place.
    problem: String,
    accepts: Option<String>,
    /// Nothing is there.
    missing: bool,
}

impl Refusal {
    pub fn new(problem: impl Into<String>, accepts: impl Into<String>) -> Refusal {
        Refusal {
            place: String::new(),
            problem: problem.into(),
            accepts: Some(accepts.into()),
            missing: false,
        }
    }

    /// A value is there that is not one of these.
    pub fn value(value: &Json, accepts: impl Into<String>) -> Refusal {
        Refusal::new(format!("is {}", shown(value)), accepts)
    }

    /// Something of another kind is there.
    pub fn kind(value: &Json, accepts: impl Into<String>) -> Refusal {
        let kind = match value {
            Json::Array(_) => "is a list",
            Json::Object(_) => "is an object",
            _ => return Refusal::value(value, accepts),
        };
        Refusal::new(kind, accepts)
    }

    /// The same, of a field of this name.
    pub fn within(self, name: &str) -> Refusal {
        let place = match self.place.as_str() {
            "" => name.to_owned(),
            inner if inner.starts_with('[') => format!("{name}{inner}"),
            inner => format!("{name}.{inner}"),
        };
        Refusal { place, ..self }
    }

    /// The same, of an item of a list.
    pub fn at(self, index: usize) -> Refusal {
        self.within(&format!("[{index}]"))
    }

    /// For what is missing: the same with what is accepted there, as `read` refuses a nothing in its place.
    pub fn with_expected<T>(self, read: impl FnOnce(&str) -> Result<T, Refusal>) -> Refusal {
        if !self.missing {
            return self;
        }
        match read(&self.place) {
            // Another field may be refused first, by a type that knows more than its fields.
            Err(other) if names(&other.place).eq(names(&self.place)) => {
                Refusal { accepts: other.accepts, ..self }
            }
            _ => self,
        }
    }

    /// As callers are told of it; `whole` is what was read.
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

impl Display for Refusal {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.problem)
    }
}

impl std::error::Error for Refusal {}

impl de::Error for Refusal {
    /// What a type says itself; behind [`ACCEPTED`] what it takes.
    fn custom<T: Display>(message: T) -> Refusal {
        let message = message.to_string();
        match message.split_once(ACCEPTED) {
            Some((problem, accepts)) => Refusal::new(problem, accepts),
            None => Refusal { place: String::new(), problem: message, accepts: None, missing: false },
        }
    }

    fn missing_field(field: &'static str) -> Refusal {
        Refusal { place: field.to_owned(), problem: "is missing".to_owned(), accepts: None, missing: true }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Refusal {
        let known = if expected.is_empty() { "none".to_owned() } else { expected.join(", ") };
        Refusal { place: field.to_owned(), ..Refusal::new("is not known here", known) }
    }
}
