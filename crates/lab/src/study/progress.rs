//! Shows the progress of the study, and estimates the remaining time.

use std::collections::VecDeque;
use std::time::Duration;

use super::steps::{Lengths, Step};

/// The limits of the factor with which the estimates of the remaining steps are corrected.
const DOUBT: std::ops::RangeInclusive<f64> = 0.5..=3.0;

/// Estimates the remaining time from the estimate of each step, corrected by how accurate the estimates were so far.
#[derive(Debug)]
pub struct Forecast {
    /// The estimates of the remaining steps, in order.
    left: VecDeque<Duration>,
    /// The sum of the estimates of the steps that are done.
    estimated: Duration,
    /// The time that these steps took.
    spent: Duration,
}

impl Forecast {
    /// A forecast for these steps, which are still to be done, in order.
    pub fn new(estimates: Vec<Duration>) -> Forecast {
        Forecast { left: estimates.into(), estimated: Duration::ZERO, spent: Duration::ZERO }
    }

    /// Records that the next step is done, and how long it took.
    pub fn done(&mut self, spent: Duration) {
        self.estimated += self.left.pop_front().unwrap_or_default();
        self.spent += spent;
    }

    /// The remaining time.
    pub fn left(&self) -> Duration {
        let estimated = self.estimated.as_secs_f64();
        let factor = if estimated > 0.0 { self.spent.as_secs_f64() / estimated } else { 1.0 };
        let left: Duration = self.left.iter().sum();
        left.mul_f64(factor.clamp(*DOUBT.start(), *DOUBT.end()))
    }
}

/// A time as text: `40 s`, `12 min`.
pub fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..90 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// Prints the progress.
#[derive(Debug)]
pub struct Progress {
    forecast: Forecast,
    total: usize,
    done: usize,
    lengths: Lengths,
}

impl Progress {
    /// Prints how many steps there are in `todo`, and an estimate of their time. `done` is the number of steps that
    /// were done earlier.
    pub fn start(todo: &[&Step], done: usize, lengths: Lengths) -> Progress {
        // Steps that run at the same time share the time.
        let estimate = |step: &&Step| step.estimate(&lengths) / lengths.share(step);
        let forecast = Forecast::new(todo.iter().map(estimate).collect());
        let total = todo.len() + done;
        eprintln!("{} of {total} steps to do, about {}", todo.len(), words(forecast.left()));
        Progress { forecast, total, done, lengths }
    }

    /// Records that a step is done, and prints a line with its result.
    pub fn end(&mut self, step: &Step, spent: Duration, result: &str) {
        self.forecast.done(spent / self.lengths.share(step));
        self.done += 1;
        let left = words(self.forecast.left());
        eprintln!("{}/{} {}: {result}; {left} left", self.done, self.total, step.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_corrected_by_the_time_that_steps_took() {
        let second = Duration::from_secs(1);
        let mut forecast = Forecast::new(vec![second * 10; 4]);
        assert_eq!(forecast.left(), second * 40);
        forecast.done(second * 20);
        assert_eq!(forecast.left(), second * 60);
        forecast.done(second * 10);
        assert_eq!(forecast.left(), second * 30);
        forecast.done(Duration::ZERO);
        forecast.done(Duration::ZERO);
        assert_eq!(forecast.left(), Duration::ZERO);
        assert_eq!([words(second * 40), words(second * 700)], ["40 s", "12 min"]);
    }
}
