//! A load that changes during a run: stages with a constant rate, and ramps between two rates.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::plan::MOST_RATE;

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// The length of the stage.
    pub length: Duration,
    /// Requests per second at its start.
    pub from: f64,
    /// Requests per second at its end; the rate changes evenly in between.
    pub to: f64,
}

/// The stages of a run, in order. There is at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Stages(Vec<Stage>);

/// The error for a text that is not a list of stages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a stage; write TIME@RATE, or TIME@FROM..TO for a ramp, such as 10s@100,30s@100..1000 (rates up to \
     {MOST_RATE}/s)"
)]
pub struct StagesError(String);

impl Stages {
    /// The stages in order.
    pub fn stages(&self) -> &[Stage] {
        &self.0
    }

    /// The length of all stages together.
    pub fn length(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, stage| sum.saturating_add(stage.length))
    }

    /// The number of requests in all stages.
    pub fn requests(&self) -> f64 {
        self.0.iter().map(|stage| stage.length.as_secs_f64() * (stage.from + stage.to) / 2.0).sum()
    }

    /// The rate in requests per second when `time` has passed since the start; `None` after the end.
    pub fn rate_at(&self, time: Duration) -> Option<f64> {
        let mut start = Duration::ZERO;
        for stage in &self.0 {
            let inside = time.saturating_sub(start);
            if inside < stage.length {
                let share = inside.as_secs_f64() / stage.length.as_secs_f64();
                return Some(stage.from + share * (stage.to - stage.from));
            }
            start += stage.length;
        }
        None
    }
}

impl FromStr for Stages {
    type Err = StagesError;

    fn from_str(text: &str) -> Result<Self, StagesError> {
        let stages = text.split(',').map(|part| stage(part).ok_or_else(|| StagesError(part.to_owned())));
        Ok(Stages(stages.collect::<Result<_, _>>()?))
    }
}

fn stage(text: &str) -> Option<Stage> {
    let (length, rates) = text.trim().split_once('@')?;
    let length = humantime::parse_duration(length.trim()).ok().filter(|length| !length.is_zero())?;
    let rate = |text: &str| {
        let rate = text.trim().parse::<f64>().ok();
        rate.filter(|rate| (0.0..=MOST_RATE).contains(rate))
    };
    let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
    Some(Stage { length, from: rate(from)?, to: rate(to)? })
}

impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Stage { length, from, to }) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let length = humantime::format_duration(*length).to_string().replace(' ', "");
            write!(f, "{comma}{length}@{from}")?;
            if from != to {
                write!(f, "..{to}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_and_ramps_are_read_and_shown() {
        let stages: Stages = "10s@100, 1m30s@100..1000".parse().unwrap();
        assert_eq!(stages.to_string(), "10s@100,1m30s@100..1000");
        assert_eq!((stages.length(), stages.requests()), (Duration::from_secs(100), 1000.0 + 90.0 * 550.0));
        let rates = [0, 10, 55, 100].map(|seconds| stages.rate_at(Duration::from_secs(seconds)));
        assert_eq!(rates, [Some(100.0), Some(100.0), Some(550.0), None]);
        for text in ["", "10s", "10@5", "0s@5", "10s@-1", "10s@x", "10s@1..", "10s@1,", "1s@1e12"] {
            assert!(text.parse::<Stages>().is_err(), "{text}");
        }
    }
}
