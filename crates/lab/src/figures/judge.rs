//! Compares runs with their bounds. The *alternative* is what Framewire is measured against, such as another script.

use serde::{Deserialize, Serialize};

use super::sample::{Latency, Sample};

/// A number that is computed from the results of runs and compared with a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Correct replies, or frames, per second: the median of the runs.
    Rate,
    /// The median rate, as a percentage of the alternative's median rate.
    Share,
    /// Mean latency in ms: the median of the runs.
    Mean,
    /// 99th percentile of the latencies in ms: the worst of the runs.
    P99,
    /// Largest latency in ms: the worst of the runs.
    Max,
    /// The percentage of correct replies: the worst of the runs.
    Success,
    /// Frames per second over the slowest 5 s of a run, or over the whole run if it is shorter: the worst of the runs.
    Frames,
}

/// A bound on a metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The metric that is bounded.
    pub metric: Metric,
    /// Whether the metric must be below the limit. Otherwise, it must reach the limit.
    pub below: bool,
    /// The limit.
    pub limit: f64,
}

/// A bound: the metric must reach the limit.
pub const fn at_least(metric: Metric, limit: f64) -> Bound {
    Bound { metric, below: false, limit }
}

/// A bound: the metric must stay below the limit.
pub const fn below(metric: Metric, limit: f64) -> Bound {
    Bound { metric, below: true, limit }
}

/// The emulator runs at its full frame rate.
pub const FULL_SPEED: Bound = at_least(Metric::Frames, 59.0);
/// Every request gets a correct reply.
pub const ALL_CORRECT: Bound = at_least(Metric::Success, 100.0);

impl Metric {
    /// The value of the metric for these runs; `None` if it was not measured. Only [`Metric::Share`] needs
    /// the runs of the alternative.
    pub fn of(self, runs: &[Sample], alternative: &[Sample]) -> Option<f64> {
        let latency = |pick: fn(&Latency) -> f64| values(runs, |run| run.latency.as_ref().map(pick));
        match self {
            Metric::Rate => median(values(runs, |run| run.rate)?),
            Metric::Share => {
                let other = Metric::Rate.of(alternative, &[])?;
                Some(100.0 * Metric::Rate.of(runs, &[])? / other)
            }
            Metric::Mean => median(latency(|latency| latency.mean)?),
            Metric::P99 => latency(|latency| latency.p99)?.into_iter().reduce(f64::max),
            Metric::Max => latency(|latency| latency.max)?.into_iter().reduce(f64::max),
            Metric::Success => values(runs, |run| {
                (run.requests > 0).then(|| 100.0 * run.correct as f64 / run.requests as f64)
            })?
            .into_iter()
            .reduce(f64::min),
            Metric::Frames => {
                let lowest = |run: &Sample| run.frames.map(|frames| frames.lowest.unwrap_or(frames.mean));
                values(runs, lowest)?.into_iter().reduce(f64::min)
            }
        }
    }

    fn words(self) -> &'static str {
        match self {
            Metric::Rate => "the rate",
            Metric::Share => "the share of the alternative's rate",
            Metric::Mean => "the mean",
            Metric::P99 => "the 99th percentile",
            Metric::Max => "the largest latency",
            Metric::Success => "the share of correct replies",
            Metric::Frames => "the frame rate",
        }
    }
}

impl Bound {
    /// A sentence that says how the runs missed this bound; `None` if they met it.
    pub fn missed(&self, runs: &[Sample], alternative: &[Sample]) -> Option<String> {
        let words = self.metric.words();
        let Some(value) = self.metric.of(runs, alternative) else {
            return Some(format!("{words} was not measured"));
        };
        let good = if self.below { value < self.limit } else { value >= self.limit };
        if good {
            return None;
        }
        let side = if self.below { "below" } else { "at least" };
        Some(format!("{words} is {value:.3}, not {side} {}", self.limit))
    }
}

/// The values of all runs; `None` if there are no runs or a run has no value.
fn values(runs: &[Sample], pick: impl Fn(&Sample) -> Option<f64>) -> Option<Vec<f64>> {
    runs.iter().map(pick).collect::<Option<Vec<f64>>>().filter(|values| !values.is_empty())
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (lower, upper) = (values.get((values.len().max(1) - 1) / 2)?, values.get(values.len() / 2)?);
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rate: f64, correct: u64) -> Sample {
        Sample { rate: Some(rate), requests: 10, correct, ..Sample::default() }
    }

    #[test]
    fn a_share_compares_medians_and_success_takes_the_worst_run() {
        let runs = [run(90.0, 10), run(99.0, 9), run(10.0, 10)];
        let alternative = [run(100.0, 10), run(200.0, 10)];
        assert_eq!(Metric::Rate.of(&runs, &[]), Some(90.0));
        assert_eq!(Metric::Share.of(&runs, &alternative), Some(60.0));
        assert_eq!(Metric::Success.of(&runs, &[]), Some(90.0));
        assert_eq!(at_least(Metric::Rate, 90.0).missed(&runs, &[]), None);
        let missed = ALL_CORRECT.missed(&runs, &[]).unwrap();
        assert_eq!(missed, "the share of correct replies is 90.000, not at least 100");
    }

    #[test]
    fn a_bound_without_a_measurement_counts_as_missed() {
        assert!(FULL_SPEED.missed(&[run(1.0, 10)], &[]).unwrap().contains("was not measured"));
        assert!(below(Metric::Mean, 1.0).missed(&[], &[]).is_some());
    }
}
