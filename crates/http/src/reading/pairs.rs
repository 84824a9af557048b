//! The `name=value` pairs of a query.

use std::borrow::Cow;

use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

/// The emulator that a query names.
pub(crate) fn emulator_of(parts: &Parts) -> Option<String> {
    pairs(parts).find(is_emulator).map(value_of)
}

/// The pairs of a request's query.
pub(crate) fn pairs(parts: &Parts) -> impl Iterator<Item = &str> {
    pairs_of(parts.uri.query().unwrap_or(""))
}

/// The pairs of a query.
pub(crate) fn pairs_of(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|pair| !pair.is_empty())
}

/// Whether a pair names an emulator.
pub(crate) fn is_emulator(pair: &&str) -> bool {
    name_of(pair) == "emulator"
}

/// The name of a pair.
pub(crate) fn name_of(pair: &str) -> Cow<'_, str> {
    decoded(pair.split_once('=').map_or(pair, |(name, _)| name))
}

/// The value of a pair.
pub(crate) fn value_of(pair: &str) -> String {
    decoded(pair.split_once('=').map_or("", |(_, value)| value)).into_owned()
}

fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned())
}
