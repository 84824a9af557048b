//! Settings that are text on the command line and may be a bare number in a settings file.

use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrNumber {
    Text(String),
    Whole(i64),
    Real(f64),
}

/// Reads a setting that is given as text or as a number, and parses it as the command line would.
pub fn deserialize<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    let text = match TextOrNumber::deserialize(deserializer)? {
        TextOrNumber::Text(text) => text,
        TextOrNumber::Whole(number) => number.to_string(),
        TextOrNumber::Real(number) => number.to_string(),
    };
    text.parse().map(Some).map_err(serde::de::Error::custom)
}
