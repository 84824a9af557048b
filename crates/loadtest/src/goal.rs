//! A goal: conditions that a run must meet, such as `success=100%,p99<40ms`.

use std::fmt;
use std::str::FromStr;

use crate::metric::{self, Metric, MetricError, Relation, Unit};
use crate::row::Row;

/// Conditions that must all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq)]
struct Condition {
    metric: Metric,
    relation: Relation,
    bound: Bound,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    /// A value in the metric's unit.
    Value(f64),
    /// A percentage of the requested rate or, if the load has no fixed rate, of the rate of all requests.
    OfAsked(f64),
}

/// Why a text is not a goal, or not a rule of a comparison ([`FailOn`](crate::compare::FailOn)).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    /// A part of the text is not a condition.
    #[error("{0:?} is not a condition; use for example success=100%,p99<40ms")]
    Malformed(String),
    /// The text is not a rule for a comparison of two reports.
    #[error("{0:?} is not a rule; use for example p99>+10%,achieved<-5%")]
    MalformedRule(String),
    /// The metric does not exist.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// The value is not a number with the unit of the metric.
    #[error("{value:?} is not a value for {metric}; use for example {example}")]
    Value {
        /// What was typed.
        value: String,
        /// The metric's name.
        metric: String,
        /// An example of an accepted value.
        example: &'static str,
    },
}

impl FromStr for Goal {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, GoalError> {
        let conditions = text.split(',').map(|part| part.trim().parse()).collect::<Result<_, _>>()?;
        Ok(Goal { conditions })
    }
}

impl FromStr for Condition {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, GoalError> {
        let split = Relation::split(text).ok_or_else(|| GoalError::Malformed(text.to_owned()))?;
        let (name, relation, value) = split;
        let metric: Metric = name.parse()?;
        let bound = if metric == Metric::Achieved && value.ends_with('%') {
            metric::value(Unit::Percent, value).map(Bound::OfAsked)
        } else {
            metric::value(metric.unit(), value).map(Bound::Value)
        };
        let bound = bound.ok_or_else(|| GoalError::Value {
            value: value.to_owned(),
            metric: metric.to_string(),
            example: metric::example(metric.unit()),
        })?;
        Ok(Condition { metric, relation, bound, text: text.to_owned() })
    }
}

impl Goal {
    /// The conditions that a row misses, with one sentence for each; empty if the row meets the goal. In conditions on
    /// latencies, a request without a correct reply counts as slower than any limit: see [`Metric::judged`].
    pub fn missed(&self, row: &Row) -> Vec<String> {
        self.conditions.iter().filter_map(|condition| condition.missed(row)).collect()
    }
}

impl Condition {
    fn missed(&self, row: &Row) -> Option<String> {
        let Some(value) = self.metric.judged(row) else {
            return Some(format!("{}: not measured", self.text));
        };
        let bound = match self.bound {
            Bound::Value(bound) => bound,
            Bound::OfAsked(share) => row.asked.unwrap_or(row.requests as f64 / row.seconds) * share / 100.0,
        };
        if self.relation.holds(value, bound) {
            return None;
        }
        Some(format!("{}: it was {}", self.text, self.metric.show(value)))
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.conditions.iter().map(|condition| condition.text.as_str()).collect();
        f.write_str(&texts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Summary;

    #[test]
    fn malformed_goals_say_what_to_type() {
        let error = |text: &str| text.parse::<Goal>().unwrap_err().to_string();
        assert!(error("").contains("success=100%"));
        assert!(error("p99").contains("p99<40ms"));
        assert!(error("p99<40").contains("40ms"));
        assert!(error("success>=99").contains("99.5%"));
        assert!(error("speed>1").contains("success, achieved"));
    }

    #[test]
    fn a_latency_goal_counts_failures_as_slower_than_any_limit() {
        let curve = vec![(0.0, 1.0), (50.0, 1.0), (99.0, 1.5), (99.5, 2.0), (100.0, 3.0)];
        let quick = Summary { count: 400, p50: 1.0, p99: 1.5, curve, ..Summary::default() };
        let row = |requests, correct| Row { requests, correct, intended: quick.clone(), ..Row::default() };
        let missed = |goal: &str, row: &Row| goal.parse::<Goal>().unwrap().missed(row);
        // Of 1,000 requests, 600 got no reply. All others got correct replies quickly.
        let silent = row(1000, 400);
        assert_eq!(missed("p99<40ms", &silent), ["p99<40ms: it was infinite (requests failed)"]);
        assert_eq!(missed("max<1s,mean<1s", &silent).len(), 2);
        assert_eq!(missed("p99<40ms", &row(400, 400)), Vec::<String>::new());
        // With 2 failures among 402 requests, the 99th percentile of all requests is the 99.495th percentile of the
        // correct replies.
        assert_eq!(missed("p99<2.5ms,p50<2ms", &row(402, 400)), Vec::<String>::new());
        assert_eq!(missed("p99<1.9ms", &row(402, 400)).len(), 1);
        assert_eq!(missed("p99<1s", &row(100, 0)).len(), 1, "no reply was correct");
    }

    #[test]
    fn percentages_that_are_not_finite_are_refused() {
        for text in ["achieved>=nan%", "achieved>=inf%"] {
            assert!(text.parse::<Goal>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_goal_is_read_and_shown() {
        let goal: Goal = "success=100%, p99<40ms,achieved>=99%,pace>=59.5".parse().unwrap();
        assert_eq!(goal.to_string(), "success=100%,p99<40ms,achieved>=99%,pace>=59.5");
    }
}
