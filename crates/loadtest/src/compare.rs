//! Compares two reports, and finds changes that break a rule.

use std::fmt;
use std::str::FromStr;

use crate::goal::GoalError;
use crate::metric::{self, Figure, Metric, Relation};
use crate::report::Report;
use crate::row::{Phase, Row};

/// A rule: a forbidden change, such as `p99>+10%` or `achieved<-5%`, or a forbidden value, such as `p99>40ms`.
#[derive(Debug, Clone, PartialEq)]
pub struct FailOn {
    metric: Metric,
    relation: Relation,
    bound: Threshold,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Threshold {
    /// A bound for the change, in percent of the first report's value.
    Change(f64),
    /// A bound for the second report's value, in the unit of the metric.
    Value(f64),
}

impl FromStr for FailOn {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, GoalError> {
        let text = text.trim();
        let (name, relation, value) =
            Relation::split(text).ok_or_else(|| GoalError::MalformedRule(text.to_owned()))?;
        let metric: Metric = name.parse()?;
        let signed = value.starts_with(['+', '-']);
        let bound = match value.strip_suffix('%').filter(|_| signed) {
            Some(change) => metric::value(metric::Unit::Number, change).map(Threshold::Change),
            None if signed => None,
            None => metric::value(metric.unit(), value).map(Threshold::Value),
        };
        let bound = bound.ok_or_else(|| GoalError::Value {
            value: value.to_owned(),
            metric: metric.to_string(),
            example: if metric.more_is_better() { "-5%" } else { "+10%" },
        })?;
        Ok(FailOn { metric, relation, bound, text: text.to_owned() })
    }
}

impl fmt::Display for FailOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The metrics that are compared.
pub const METRICS: [Metric; 8] = [
    Metric::Achieved,
    Metric::Success,
    Metric::Intended(Figure::Mean),
    Metric::Intended(Figure::P50),
    Metric::Intended(Figure::P99),
    Metric::Intended(Figure::P999),
    Metric::Intended(Figure::Max),
    Metric::Pace,
];

/// Rows of both reports for the same load.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The row of the first report.
    pub before: &'a Row,
    /// The row of the second report.
    pub after: &'a Row,
}

impl Pair<'_> {
    /// The value of a metric before and after, and the change in percent of the value before; `None` unless the metric
    /// was measured in both runs.
    pub fn change(&self, metric: Metric) -> Option<(f64, f64, f64)> {
        Some(change(metric.of(self.before)?, metric.of(self.after)?))
    }

    /// Why the second row breaks the rule, if it does. A rule also counts as broken if its metric was not measured in
    /// one of the runs. For latencies, a request without a correct reply counts as slower than any limit, as in a
    /// [`Goal`](crate::goal::Goal).
    pub fn fails(&self, rule: &FailOn) -> Option<String> {
        let judged = rule.metric.judged(self.before).zip(rule.metric.judged(self.after));
        let Some((before, after, change)) = judged.map(|(before, after)| change(before, after)) else {
            return Some(format!("{} at {}: not measured in both reports", rule, self.after.load()));
        };
        let fails = match rule.bound {
            Threshold::Change(bound) => rule.relation.holds(change, bound),
            Threshold::Value(bound) => rule.relation.holds(after, bound),
        };
        if !fails {
            return None;
        }
        let (before, after) = (rule.metric.show(before), rule.metric.show(after));
        Some(format!("{rule} at {}: {before} became {after} ({change:+.1} %)", self.after.load()))
    }
}

/// Two values, and the change in percent of the first.
fn change(before: f64, after: f64) -> (f64, f64, f64) {
    let change = if before == after { 0.0 } else { 100.0 * (after - before) / before.abs() };
    // If the first value is infinite and the second is not, the change is not a number. The value has fallen, so the
    // change counts as minus infinity.
    (before, after, if change.is_nan() { f64::NEG_INFINITY } else { change })
}

/// The rows of two reports, matched by their loads. Rows of a search are left out.
#[derive(Debug)]
pub struct Matched<'a> {
    /// Rows for loads that both reports have, in the order of the second report. If the first report has several rows
    /// for a load, the last one counts.
    pub pairs: Vec<Pair<'a>>,
    /// Rows for loads that the second report does not have.
    pub only_before: Vec<&'a Row>,
    /// Rows for loads that the first report does not have.
    pub only_after: Vec<&'a Row>,
}

/// Finds the rows for the same loads.
pub fn matched<'a>(before: &'a Report, after: &'a Report) -> Matched<'a> {
    fn measured(report: &Report) -> impl DoubleEndedIterator<Item = &Row> {
        report.rows.iter().filter(|row| row.phase == Phase::Measure)
    }
    let load = |row: &'a Row| (row.asked, row.concurrency, row.stages.as_deref());
    let same = |one: &'a Row, other: &'a Row| load(one) == load(other);
    let mut matched = Matched { pairs: Vec::new(), only_before: Vec::new(), only_after: Vec::new() };
    for after in measured(after) {
        match measured(before).rev().find(|before| same(before, after)) {
            Some(before) => matched.pairs.push(Pair { before, after }),
            None => matched.only_after.push(after),
        }
    }
    matched.only_before =
        measured(before).filter(|row| !measured(after).any(|other| same(row, other))).collect();
    matched
}

/// The differences between the targets, settings and machines of the two reports, as texts.
pub fn differences(before: &Report, after: &Report) -> Vec<String> {
    let described = |report: &Report| {
        let (target, settings, machine) = (&report.target, &report.settings, &report.machine);
        [
            ("target", target.url.clone()),
            ("strategy", target.strategy.clone()),
            ("arrivals", settings.arrivals.clone()),
            ("requests", target.requests.join(", ")),
            ("payload", settings.payload.clone()),
            ("check of replies", check(report)),
            ("seconds a run", settings.seconds.to_string()),
            ("warm-up seconds", settings.warmup.to_string()),
            ("workers", settings.workers.to_string()),
            ("connections", settings.connections.to_string()),
            ("time-out seconds", settings.timeout.to_string()),
            ("processor", machine.processor.clone()),
            ("processors", machine.processors.to_string()),
        ]
    };
    let pairs = described(before).into_iter().zip(described(after));
    let mut differences: Vec<_> = pairs
        .filter(|(before, after)| before != after)
        .map(|((what, before), (_, after))| format!("{what}: {before} before, {after} now"))
        .collect();
    // Reports of older versions do not have the options.
    if let (Some(before), Some(after)) = (&before.target.options, &after.target.options)
        && before != after
    {
        let listed =
            |options: &[String]| if options.is_empty() { "none".to_owned() } else { options.join(", ") };
        differences.push(format!("options: {} before, {} now", listed(before), listed(after)));
    }
    differences
}

/// The check of replies. Reports of older versions say only whether a reply had to equal the request's payload.
fn check(report: &Report) -> String {
    let older = if report.settings.checked { "echo" } else { "status" };
    if report.target.check.is_empty() { older.to_owned() } else { report.target.check.clone() }
}

/// Reasons to doubt one of the reports, as texts.
pub fn doubts(before: &Report, after: &Report) -> Vec<String> {
    let mut doubts = Vec::new();
    for (report, which) in [(before, "first"), (after, "second")] {
        if report.cut_short {
            doubts.push(format!("the {which} report was cut short"));
        }
        if report.rows.iter().any(Row::tester_limited) {
            doubts.push(format!("in the {which} report, the tester was the limit in some rows"));
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_or_refused_with_an_example() {
        for text in ["p99>+10%", "achieved<-5%", "p99.9>40ms", "success<100%", "sent.max>+50%"] {
            assert_eq!(text.parse::<FailOn>().unwrap().to_string(), text);
        }
        for text in ["p99", "p99>10", "p99>+10", "p99>+x%", "speed>+1%"] {
            assert!(text.parse::<FailOn>().is_err(), "{text}");
        }
    }
}
