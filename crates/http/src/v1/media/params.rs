//! Parameters of a query, with problems that name them.

use std::ops::RangeInclusive;

use crate::problem::Problem;

/// A whole number within `range`; `default` if it is left out.
pub(super) fn number<T>(
    name: &str,
    given: Option<&str>,
    range: RangeInclusive<T>,
    default: T,
) -> Result<T, Problem>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let Some(text) = given else { return Ok(default) };
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
        let accepts = format!("a whole number from {} to {}", range.start(), range.end());
        Problem::parameter(name, &format!("is {text:?}"), accepts)
    })
}

/// One of some words; the first if it is left out.
pub(super) fn word<T: Copy>(name: &str, given: Option<&str>, words: &[(&str, T)]) -> Result<T, Problem> {
    let Some(text) = given else { return Ok(words[0].1) };
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Problem::parameter(name, &format!("is {text:?}"), format!("one of {}", all.join(", ")))
    })
}
