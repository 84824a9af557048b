//! How far the study is, and how long it still takes.

use std::time::Duration;

use super::steps::{Lengths, Step};

/// How much faster or slower than estimated everything is taken to be at most.
const DOUBT: std::ops::RangeInclusive<f64> = 0.5..=3.0;

/// What is left, by the steps' own estimates and by how those held so far.
#[derive(Debug)]
pub struct Forecast {
    /// Estimates of the steps that are left.
    left: Vec<Duration>,
    /// Estimated and true length of the steps that are done.
    estimated: Duration,
    spent: Duration,
}

impl Forecast {
    /// Of steps still to be done, in order.
    pub fn new(estimates: Vec<Duration>) -> Forecast {
        let mut left = estimates;
        left.reverse();
        Forecast { left, estimated: Duration::ZERO, spent: Duration::ZERO }
    }

    /// The next step is done.
    pub fn done(&mut self, spent: Duration) {
        self.estimated += self.left.pop().unwrap_or_default();
        self.spent += spent;
    }

    /// Time that is left.
    pub fn left(&self) -> Duration {
        let estimated = self.estimated.as_secs_f64();
        let factor = if estimated > 0.0 { self.spent.as_secs_f64() / estimated } else { 1.0 };
        let left: Duration = self.left.iter().sum();
        left.mul_f64(factor.clamp(*DOUBT.start(), *DOUBT.end()))
    }
}

/// Time for people: `40 s`, `12 min`.
pub fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..90 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// What is shown of it.
#[derive(Debug)]
pub struct Progress {
    forecast: Forecast,
    total: usize,
    done: usize,
    lengths: Lengths,
}

impl Progress {
    /// Of the steps in `todo`, when `done` steps are done already.
    pub fn start(todo: &[&Step], done: usize, lengths: Lengths) -> Progress {
        let estimate = |step: &&Step| step.estimate(&lengths) / lengths.share(step);
        let forecast = Forecast::new(todo.iter().map(estimate).collect());
        let total = todo.len() + done;
        say(&format!("{} of {total} steps to do, about {}", todo.len(), words(forecast.left())));
        Progress { forecast, total, done, lengths }
    }

    /// A step is done; `result` describes it in a line.
    pub fn end(&mut self, step: &Step, spent: Duration, result: &str) {
        self.forecast.done(spent / self.lengths.share(step));
        self.done += 1;
        let left = words(self.forecast.left());
        say(&format!("{}/{} {}: {result}; {left} left", self.done, self.total, step.name));
    }
}

/// Prints a line.
pub fn say(line: &str) {
    eprintln!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_how_long_steps_really_take() {
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
