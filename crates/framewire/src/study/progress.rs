//! How far the study is, and how long it still takes.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::steps::Step;

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

/// What is seen of it.
pub struct Progress {
    bar: Option<ProgressBar>,
    forecast: Forecast,
    total: usize,
    number: usize,
    began: Instant,
}

impl Progress {
    /// Of the steps in `todo`, when `done` steps are done already.
    pub fn start(todo: &[Step], done: usize, row: Duration) -> Progress {
        let forecast = Forecast::new(todo.iter().map(|step| step.estimate(row)).collect());
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new((todo.len() + done) as u64);
            let style = ProgressStyle::with_template("{pos}/{len} {bar:30.cyan/dim} {msg} {spinner}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(done as u64);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let progress =
            Progress { bar, forecast, total: todo.len() + done, number: done, began: Instant::now() };
        progress.say(&format!(
            "{} of {} steps to do, about {}",
            todo.len(),
            progress.total,
            words(progress.forecast.left())
        ));
        progress
    }

    /// A step begins.
    pub fn begin(&mut self, step: &Step) {
        self.began = Instant::now();
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} ({} left)", step.name, words(self.forecast.left())));
        }
    }

    /// It is done; `result` says in a line what came of it.
    pub fn end(&mut self, step: &Step, result: &str) {
        self.forecast.done(self.began.elapsed());
        self.number += 1;
        if let Some(bar) = &self.bar {
            bar.set_position(self.number as u64);
        }
        let left = words(self.forecast.left());
        self.say(&format!("{}/{} {}: {result}; {left} left", self.number, self.total, step.name));
    }

    /// Leaves a line.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
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
