use framewire_expression::Type;

/// The condition that a candidate's value must meet. Some tests compare the value with the previous value, which is the
/// candidate's value at the previous read of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// The value is this number.
    Equal(i64),
    /// The value is any other number.
    NotEqual(i64),
    /// The value is greater than this number.
    Greater(i64),
    /// The value is less than this number.
    Less(i64),
    /// The value is this number or greater.
    AtLeast(i64),
    /// The value is this number or less.
    AtMost(i64),
    /// The value is different from the previous value.
    Changed,
    /// The value equals the previous value.
    Unchanged,
    /// The value is greater than the previous value.
    Increased,
    /// The value is less than the previous value.
    Decreased,
    /// The value is greater than the previous value by exactly this number.
    IncreasedBy(i64),
    /// The value is less than the previous value by exactly this number.
    DecreasedBy(i64),
}

impl Test {
    /// The names of all tests, and whether they take a number.
    pub const NAMES: [(&str, bool); 12] = [
        ("equal", true),
        ("not_equal", true),
        ("greater", true),
        ("less", true),
        ("at_least", true),
        ("at_most", true),
        ("changed", false),
        ("unchanged", false),
        ("increased", false),
        ("decreased", false),
        ("increased_by", true),
        ("decreased_by", true),
    ];

    /// The test with this name and number. `None` if there is no such test, if the test needs a number and `value` is
    /// `None`, or if it takes no number and `value` is `Some`.
    pub fn named(name: &str, value: Option<i64>) -> Option<Test> {
        Some(match (name, value) {
            ("equal", Some(value)) => Test::Equal(value),
            ("not_equal", Some(value)) => Test::NotEqual(value),
            ("greater", Some(value)) => Test::Greater(value),
            ("less", Some(value)) => Test::Less(value),
            ("at_least", Some(value)) => Test::AtLeast(value),
            ("at_most", Some(value)) => Test::AtMost(value),
            ("changed", None) => Test::Changed,
            ("unchanged", None) => Test::Unchanged,
            ("increased", None) => Test::Increased,
            ("decreased", None) => Test::Decreased,
            ("increased_by", Some(value)) => Test::IncreasedBy(value),
            ("decreased_by", Some(value)) => Test::DecreasedBy(value),
            _ => return None,
        })
    }

    /// The least and the greatest number that can be given to this test if the values have the type `kind`. For
    /// `IncreasedBy` and `DecreasedBy`, these are the possible differences between two values.
    pub fn values(self, kind: Type) -> (i64, i64) {
        let (least, greatest) = kind.range();
        match self {
            Test::IncreasedBy(_) | Test::DecreasedBy(_) => (0, greatest - least),
            _ => (least, greatest),
        }
    }

    pub(super) fn passes(self, before: i64, now: i64) -> bool {
        match self {
            Test::Equal(value) => now == value,
            Test::NotEqual(value) => now != value,
            Test::Greater(value) => now > value,
            Test::Less(value) => now < value,
            Test::AtLeast(value) => now >= value,
            Test::AtMost(value) => now <= value,
            Test::Changed => now != before,
            Test::Unchanged => now == before,
            Test::Increased => now > before,
            Test::Decreased => now < before,
            Test::IncreasedBy(amount) => now - before == amount,
            Test::DecreasedBy(amount) => before - now == amount,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_does_what_its_name_says() {
        let cases: [(&str, Option<i64>, [bool; 3]); 12] = [
            // The previous value is 5. The three results are for the new values 5, 8 and 2.
            ("equal", Some(5), [true, false, false]),
            ("not_equal", Some(5), [false, true, true]),
            ("greater", Some(5), [false, true, false]),
            ("less", Some(5), [false, false, true]),
            ("at_least", Some(5), [true, true, false]),
            ("at_most", Some(5), [true, false, true]),
            ("changed", None, [false, true, true]),
            ("unchanged", None, [true, false, false]),
            ("increased", None, [false, true, false]),
            ("decreased", None, [false, false, true]),
            ("increased_by", Some(3), [false, true, false]),
            ("decreased_by", Some(3), [false, false, true]),
        ];
        assert_eq!(cases.map(|(name, value, _)| (name, value.is_some())), Test::NAMES);
        for (name, value, passes) in cases {
            let test = Test::named(name, value).unwrap();
            assert_eq!([5, 8, 2].map(|now| test.passes(5, now)), passes, "{name}");
            let other = if value.is_some() { None } else { Some(1) };
            assert_eq!(Test::named(name, other), None, "{name}");
        }
        assert_eq!(Test::named("bigger", Some(1)), None);
    }
}
