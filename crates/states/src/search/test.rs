use framewire_expression::Type;

/// What a candidate must hold now, by itself or compared with what it held when memory was read before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// This value.
    Equal(i64),
    /// Any other value.
    NotEqual(i64),
    /// More than this.
    Greater(i64),
    /// Less than this.
    Less(i64),
    /// This or more.
    AtLeast(i64),
    /// This or less.
    AtMost(i64),
    /// Another value than before.
    Changed,
    /// The value it held before.
    Unchanged,
    /// More than before.
    Increased,
    /// Less than before.
    Decreased,
    /// Exactly so much more than before.
    IncreasedBy(i64),
    /// Exactly so much less than before.
    DecreasedBy(i64),
}

impl Test {
    /// The names of all tests, and whether they take a value.
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

    /// The test of this name and value; `None` for another name, or with a value where none belongs or without one where
    /// it does.
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

    /// The values that it can compare numbers of this type with: for a step, how far two of them can be apart.
    pub fn values(self, number: Type) -> (i64, i64) {
        let (least, greatest) = number.range();
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
    fn each_test_keeps_what_its_name_says() {
        let cases: [(&str, Option<i64>, [bool; 3]); 12] = [
            // Before and now: 5 and 5, 5 and 8, 5 and 2.
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
