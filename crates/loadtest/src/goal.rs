//! What is good enough: `success=100%,p99<40ms`.

use std::fmt;
use std::str::FromStr;

use crate::metric::{self, Metric, MetricError, Relation};
use crate::row::Row;

/// Conditions that all must hold.
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
    /// In the metric's unit.
    Value(f64),
    /// In percent of the rate asked for.
    OfAsked(f64),
}

/// Why text is not a goal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    /// No condition of the form.
    #[error("{0:?} is not a condition; use for example success=100%,p99<40ms")]
    Malformed(String),
    /// A figure that does not exist.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// A value without its unit or with a wrong one.
    #[error("{value:?} is not a value for {metric}; use for example {example}")]
    Value {
        /// What was typed.
        value: String,
        /// The figure's name.
        metric: String,
        /// A value that would be read.
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
        let of_asked = value.strip_suffix('%').filter(|_| metric == Metric::Achieved);
        let bound = match of_asked {
            Some(share) => share.trim().parse().ok().map(Bound::OfAsked),
            None => metric::value(metric.unit(), value).map(Bound::Value),
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
    /// What a row misses, one sentence a condition; nothing if it meets the goal.
    pub fn missed(&self, row: &Row) -> Vec<String> {
        self.conditions.iter().filter_map(|condition| condition.missed(row)).collect()
    }
}

impl Condition {
    fn missed(&self, row: &Row) -> Option<String> {
        let Some(value) = self.metric.of(row) else {
            return Some(format!("{}: not measured", self.text));
        };
        let bound = match self.bound {
            Bound::Value(bound) => bound,
            Bound::OfAsked(share) => row.asked.unwrap_or(0.0) * share / 100.0,
        };
        let holds = self.relation.holds(value, bound);
        (!holds).then(|| format!("{}: it was {}", self.text, self.metric.show(value)))
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
    fn a_goal_reads_back() {
        let goal: Goal = "success=100%, p99<40ms,achieved>=99%,pace>=59.5".parse().unwrap();
        assert_eq!(goal.to_string(), "success=100%,p99<40ms,achieved>=99%,pace>=59.5");
    }
}
