//! Reads the query of a request for mGBA-http's routes.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::params::Typed;
use crate::failure::Failure;

/// A request's query, before its encoding is undone. Parameters that no one reads are ignored.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a>(pub(super) &'a str);

impl<'a> Query<'a> {
    /// Reads the values of a parameter.
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

/// Undoes the encoding of URLs and forms: `%2B`, and `+` for a space. `None` if the result is not UTF-8.
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

/// The values of one parameter. Nearly always there is one, which is kept without an allocation.
#[derive(Default)]
struct ParamValues<'a> {
    first: Option<Cow<'a, str>>,
    all: Vec<Cow<'a, str>>,
}

impl<'a> ParamValues<'a> {
    fn push(&mut self, value: Cow<'a, str>) {
        match self.first.take() {
            None if self.all.is_empty() => self.first = Some(value),
            first => self.all.extend(first.into_iter().chain([value])),
        }
    }

    fn as_slice(&self) -> &[Cow<'a, str>] {
        match &self.first {
            Some(first) => std::slice::from_ref(first),
            None => &self.all,
        }
    }
}
