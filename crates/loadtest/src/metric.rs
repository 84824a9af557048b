//! The figures of a row by name, and their values as users type them.

use std::fmt;
use std::str::FromStr;

use crate::row::{Row, Summary};

/// A figure of a [`Row`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// The share of correct replies in percent.
    Success,
    /// Correct replies per second.
    Achieved,
    /// Requests without a correct reply.
    Errors,
    /// How much the sampled counter rose per second, on average.
    Pace,
    /// How much the sampled counter rose in the slowest second.
    PaceMin,
    /// A latency from the intended send time, in milliseconds.
    Intended(Figure),
    /// A latency from the actual send, in milliseconds.
    Sent(Figure),
}

/// A figure of latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The mean.
    Mean,
    /// Percentile 50.
    P50,
    /// Percentile 90.
    P90,
    /// Percentile 95.
    P95,
    /// Percentile 99.
    P99,
    /// Percentile 99.9.
    P999,
    /// Percentile 99.99.
    P9999,
    /// The largest latency.
    Max,
}

/// The unit of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Percent.
    Percent,
    /// Per second.
    PerSecond,
    /// Milliseconds.
    Milliseconds,
    /// A plain number.
    Number,
}

/// The name of a figure, the figure itself, its percentile (`None` for the mean and the maximum), and its value.
type FigureRow = (&'static str, Figure, Option<f64>, fn(&Summary) -> f64);

/// The figures of latencies, in the order of [`Figure`]. The columns of exported files have the same order.
pub(crate) const FIGURES: [FigureRow; 8] = [
    ("mean", Figure::Mean, None, |summary| summary.mean),
    ("p50", Figure::P50, Some(50.0), |summary| summary.p50),
    ("p90", Figure::P90, Some(90.0), |summary| summary.p90),
    ("p95", Figure::P95, Some(95.0), |summary| summary.p95),
    ("p99", Figure::P99, Some(99.0), |summary| summary.p99),
    ("p99.9", Figure::P999, Some(99.9), |summary| summary.p999),
    ("p99.99", Figure::P9999, Some(99.99), |summary| summary.p9999),
    ("max", Figure::Max, None, |summary| summary.max),
];

/// The names of all other metrics.
const OTHERS: [(&str, Metric); 5] = [
    ("success", Metric::Success),
    ("achieved", Metric::Achieved),
    ("errors", Metric::Errors),
    ("pace", Metric::Pace),
    ("pace.min", Metric::PaceMin),
];

/// The names, for messages.
pub const NAMES: &str = "success, achieved, errors, mean, p50, p90, p95, p99, p99.9, p99.99, max (latencies \
                         from the actual send: sent.mean, sent.p50 and so on), pace, pace.min";

/// The error for a text that is not the name of a metric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a figure; use one of {NAMES}")]
pub struct MetricError(String);

impl FromStr for Metric {
    type Err = MetricError;

    fn from_str(text: &str) -> Result<Self, MetricError> {
        if let Some((_, metric)) = OTHERS.iter().find(|(name, _)| *name == text) {
            return Ok(*metric);
        }
        let (clock, wanted): (fn(Figure) -> Metric, &str) = match text.strip_prefix("sent.") {
            Some(figure) => (Metric::Sent, figure),
            None => (Metric::Intended, text),
        };
        let found = FIGURES.iter().find(|(name, ..)| *name == wanted);
        found.map(|(_, figure, ..)| clock(*figure)).ok_or_else(|| MetricError(text.to_owned()))
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, figure) = match self {
            Metric::Intended(figure) => ("", figure),
            Metric::Sent(figure) => ("sent.", figure),
            other => {
                let name = OTHERS.iter().find(|(_, metric)| metric == other).map_or("", |(name, _)| name);
                return f.write_str(name);
            }
        };
        write!(f, "{prefix}{}", figure.row().0)
    }
}

/// Converts a percentile of all `requests` to a percentile of the `correct` replies. Requests without a correct reply
/// count as slower than all others. If the result is above 100, the percentile falls on such a request.
pub fn place_among(percent: f64, correct: u64, requests: u64) -> f64 {
    percent * requests as f64 / (correct as f64).max(f64::MIN_POSITIVE)
}

/// The percentiles among the figures, in percent: 50.0 to 99.99.
pub fn percentiles() -> impl Iterator<Item = f64> {
    FIGURES.into_iter().filter_map(|(_, _, percent, _)| percent)
}

impl Figure {
    /// Its row in [`FIGURES`].
    fn row(self) -> FigureRow {
        FIGURES[self as usize]
    }
}

impl Metric {
    /// Its value in a row; `None` if it was not measured.
    pub fn of(self, row: &Row) -> Option<f64> {
        let (summary, figure) = match self {
            Metric::Success => return Some(row.success),
            Metric::Achieved => return Some(row.achieved),
            Metric::Errors => return Some((row.requests - row.correct) as f64),
            Metric::Pace => return row.pace.map(|pace| pace.mean),
            Metric::PaceMin => return row.pace.map(|pace| pace.min),
            Metric::Intended(figure) => (&row.intended, figure),
            Metric::Sent(figure) => (&row.sent, figure),
        };
        if summary.count == 0 {
            return None;
        }
        let (.., value) = figure.row();
        Some(value(summary))
    }

    /// The value to compare with a limit. It is like [`of`](Self::of), but a request without a correct reply counts as
    /// slower than any limit. So a percentile that falls on such a request is infinite. The mean and the maximum are
    /// infinite if there is any such request. `None` if it was not measured.
    pub fn judged(self, row: &Row) -> Option<f64> {
        let (summary, figure) = match self {
            Metric::Intended(figure) => (&row.intended, figure),
            Metric::Sent(figure) => (&row.sent, figure),
            other => return other.of(row),
        };
        if row.requests == row.correct {
            return self.of(row);
        }
        let (_, _, Some(percent), _) = figure.row() else { return Some(f64::INFINITY) };
        let place = place_among(percent, row.correct, row.requests);
        // In reports of this version, the curve has a point at this percentile. In reports of older versions, the next
        // higher point is used.
        let found = summary.curve.iter().find(|(share, _)| *share >= place - 1e-6);
        Some(found.map_or(f64::INFINITY, |(_, latency)| *latency))
    }

    /// The unit of [`of`](Self::of).
    pub fn unit(self) -> Unit {
        match self {
            Metric::Success => Unit::Percent,
            Metric::Achieved | Metric::Pace | Metric::PaceMin => Unit::PerSecond,
            Metric::Errors => Unit::Number,
            Metric::Intended(_) | Metric::Sent(_) => Unit::Milliseconds,
        }
    }

    /// Whether more is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Metric::Success | Metric::Achieved | Metric::Pace | Metric::PaceMin)
    }

    /// Formats a value of this metric, with its unit.
    pub fn show(self, value: f64) -> String {
        use crate::report::format;
        match self.unit() {
            Unit::Percent => format::percent(value),
            Unit::PerSecond => format!("{}/s", format::rate(value)),
            Unit::Milliseconds if value.is_infinite() => "infinite (requests failed)".to_owned(),
            Unit::Milliseconds => format!("{} ms", format::millis(value)),
            Unit::Number => format!("{value}"),
        }
    }
}

/// How a measured value is compared with a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
}

const RELATIONS: [(&str, Relation); 5] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Below),
    (">", Relation::Above),
    ("=", Relation::Equal),
];

impl Relation {
    /// Splits a text such as `p99<40ms` at its comparison sign: into the name, the relation and the value. Returns
    /// `None` if the text does not have such a sign.
    pub fn split(text: &str) -> Option<(&str, Relation, &str)> {
        let at = text.find(['<', '>', '='])?;
        let (name, rest) = text.split_at(at);
        let (sign, relation) = RELATIONS.iter().find(|(sign, _)| rest.starts_with(sign))?;
        Some((name.trim(), *relation, rest[sign.len()..].trim()))
    }

    /// Whether `value` has this relation to `bound`.
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Relation::Below => value < bound,
            Relation::AtMost => value <= bound,
            Relation::Equal => value == bound,
            Relation::AtLeast => value >= bound,
            Relation::Above => value > bound,
        }
    }
}

/// Parses a value with its unit, as users type it: `99.5%`, `40ms`, `1s`, `59`. A time is returned in
/// milliseconds. Returns `None` for any other text.
pub fn value(unit: Unit, text: &str) -> Option<f64> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    match unit {
        Unit::Percent => number(text.strip_suffix('%')?),
        Unit::PerSecond => number(text.strip_suffix("/s").unwrap_or(text)),
        Unit::Number => number(text),
        Unit::Milliseconds => {
            let split = text.find(char::is_alphabetic)?;
            let scale = match &text[split..] {
                "us" | "µs" => 0.001,
                "ms" => 1.0,
                "s" => 1000.0,
                _ => return None,
            };
            number(&text[..split]).map(|number| number * scale)
        }
    }
}

/// An example of a value, for messages.
pub fn example(unit: Unit) -> &'static str {
    match unit {
        Unit::Percent => "99.5%",
        Unit::PerSecond => "59.5",
        Unit::Milliseconds => "40ms",
        Unit::Number => "0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_shown() {
        for name in ["success", "errors", "pace.min", "mean", "p99.9", "p99.99", "sent.max"] {
            assert_eq!(name.parse::<Metric>().unwrap().to_string(), name);
        }
        for name in ["", "p98", "sent.success", "P99"] {
            assert!(name.parse::<Metric>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn values_need_their_units() {
        assert_eq!(value(Unit::Milliseconds, "40ms"), Some(40.0));
        assert_eq!(value(Unit::Milliseconds, "1.5s"), Some(1500.0));
        assert_eq!(value(Unit::Milliseconds, "250us"), Some(0.25));
        assert_eq!(value(Unit::Milliseconds, "250µs"), Some(0.25));
        assert_eq!(value(Unit::Milliseconds, "40"), None);
        assert_eq!(value(Unit::Percent, "99.5%"), Some(99.5));
        assert_eq!(value(Unit::Percent, "99.5"), None);
        assert_eq!(Relation::split("p99 <= 4ms"), Some(("p99", Relation::AtMost, "4ms")));
    }

    #[test]
    fn the_table_of_figures_has_the_order_of_the_enum() {
        assert!(FIGURES.iter().all(|(name, figure, ..)| figure.row().0 == *name));
    }
}
