//! Shows the progress of a run: on a terminal, a bar and the figures of the last second; otherwise, a line every
//! second.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::Duration;

use framewire_loadtest::engine::Interval;
use framewire_loadtest::record::Record;
use framewire_loadtest::report::format::{millis, percent, rate};
use framewire_loadtest::row::Row;
use framewire_loadtest::{Load, Plan};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

/// The number of intervals in the small plot.
const WIDTH: usize = 50;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The view of one run.
pub struct Live {
    view: View,
    name: String,
    duration: Duration,
    /// What was measured since the figures were last shown.
    recent: Record,
    /// The time since the figures were last shown.
    since: Duration,
    /// The 99th percentile of each of the last intervals, in milliseconds; `None` for an interval without replies.
    plot: VecDeque<Option<f64>>,
    /// The number of failed requests since the start of the run.
    failures: u64,
}

enum View {
    None,
    Bar(ProgressBar),
    Lines,
}

impl Live {
    /// Begins the view of a run. `place` says which run it is, such as `2/5`. In a search for a limit, it is `search`
    /// or `confirm`.
    pub fn start(plan: &Plan, place: &str, quiet: bool) -> Live {
        let load = match &plan.load {
            Load::Open { rate: asked, .. } => format!("{}/s", rate(*asked)),
            Load::Stages { .. } => "stages".to_owned(),
            Load::Closed { concurrency } => format!("{concurrency} clients"),
        };
        let view = if quiet {
            View::None
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(plan.duration.as_millis() as u64);
            let style = ProgressStyle::with_template("{prefix:>24} {bar:40.cyan/dim} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(format!("{place} {load}"));
            bar.tick();
            View::Bar(bar)
        } else {
            View::Lines
        };
        Live {
            view,
            name: format!("{place} {load}"),
            duration: plan.duration,
            recent: Record::default(),
            since: Duration::ZERO,
            plot: VecDeque::new(),
            failures: 0,
        }
    }

    /// Adds an interval, and shows new figures once a second.
    pub fn show(&mut self, interval: &Interval) {
        if matches!(self.view, View::None) {
            return;
        }
        self.recent.add(&interval.record);
        self.since += interval.length;
        self.failures += interval.record.counts.failed();
        if self.plot.len() == WIDTH {
            self.plot.pop_front();
        }
        let latencies = &interval.record.intended;
        self.plot.push_back((latencies.count() > 0).then(|| latencies.percentile(99.0)));
        let at = interval.start + interval.length;
        if let View::Bar(bar) = &self.view {
            bar.set_position(at.min(self.duration).as_millis() as u64);
        }
        let is_last_planned = interval.start < self.duration && at >= self.duration;
        if self.since >= Duration::from_secs(1) || is_last_planned {
            self.print(at);
        }
    }

    /// Shows the figures of the last second, and the number of errors in the whole run.
    fn print(&mut self, at: Duration) {
        let (recent, since) = (std::mem::take(&mut self.recent), std::mem::take(&mut self.since));
        let latencies = &recent.intended;
        let show = |value| if latencies.count() > 0 { millis(value) } else { "-".to_owned() };
        let figures = format!(
            "{}/s, p50 {} p99 {} max {} ms, {} errors",
            rate(recent.counts.correct as f64 / since.as_secs_f64()),
            show(latencies.percentile(50.0)),
            show(latencies.percentile(99.0)),
            show(latencies.max()),
            self.failures,
        );
        match &self.view {
            View::None => {}
            View::Lines => {
                output::notice(format_args!(
                    "{}: {:.0} of {:.0} s: {figures}",
                    self.name,
                    at.as_secs_f64(),
                    self.duration.as_secs_f64()
                ));
            }
            View::Bar(bar) => {
                bar.set_message(format!("{figures}\n{:>24} {} p99, log scale", "", sparkline(&self.plot)));
            }
        }
    }

    /// Ends the view of the run. On a terminal, replaces the bar with one line for the run.
    pub fn finish(&mut self, row: &Row) {
        if let View::Bar(bar) = &self.view {
            bar.finish_and_clear();
            output::notice(format_args!(
                "{}: {}/s, mean {} p50 {} p99 {} max {} ms, {} correct",
                self.name,
                rate(row.achieved),
                millis(row.intended.mean),
                millis(row.intended.p50),
                millis(row.intended.p99),
                millis(row.intended.max),
                percent(row.success),
            ));
        }
    }
}

/// A small plot with a logarithmic scale, from the lowest value to the highest.
fn sparkline(values: &VecDeque<Option<f64>>) -> String {
    let logs = || values.iter().flatten().map(|value| value.max(0.001).ln());
    let (low, high) = (logs().fold(f64::INFINITY, f64::min), logs().fold(f64::NEG_INFINITY, f64::max));
    values
        .iter()
        .map(|value| match value {
            None => ' ',
            Some(value) => {
                // The scale spans at least a factor of two, so that small differences do not fill the plot.
                let share = (value.max(0.001).ln() - low) / (high - low).max(0.7);
                BARS[((share * 8.0) as usize).min(7)]
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_plot_shows_high_low_and_gaps() {
        let values = [Some(1.0), Some(1.0), Some(1000.0), None, Some(30.0)].into();
        assert_eq!(sparkline(&values), "▁▁█ ▄");
        assert_eq!(sparkline(&VecDeque::new()), "");
        assert_eq!(sparkline(&[Some(2.0), Some(2.05)].into()), "▁▁");
    }
}
