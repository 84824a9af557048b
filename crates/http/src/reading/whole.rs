use std::fmt::Formatter;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::refusal::ACCEPTED;

/// A whole number from `MIN` to `MAX`, with refusals that say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Whole<MIN, MAX> {
    /// This number, which the caller knows to be within the range.
    pub(crate) const fn usual(number: u32) -> Whole<MIN, MAX> {
        assert!(MIN <= number && number <= MAX);
        Whole(number)
    }

    pub(crate) const fn get(self) -> u32 {
        self.0
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Whole<MIN, MAX>, D::Error> {
        deserializer.deserialize_i128(Within)
    }
}

struct Within<const MIN: u32, const MAX: u32>;

impl<const MIN: u32, const MAX: u32> Visitor<'_> for Within<MIN, MAX> {
    type Value = Whole<MIN, MAX>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "a whole number from {MIN} to {MAX}")
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Whole<MIN, MAX>, E> {
        let within = u32::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number));
        within.map(Whole).ok_or_else(|| refused::<MIN, MAX, E>(&format!("is {number}")))
    }

    /// The source gives a text that says what is there in place of a whole number.
    fn visit_str<E: Error>(self, problem: &str) -> Result<Whole<MIN, MAX>, E> {
        Err(refused::<MIN, MAX, E>(problem))
    }
}

fn refused<const MIN: u32, const MAX: u32, E: Error>(problem: &str) -> E {
    E::custom(format!("{problem}{ACCEPTED}a whole number from {MIN} to {MAX}"))
}
