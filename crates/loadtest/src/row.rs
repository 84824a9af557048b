//! The figures of one run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::{Interval, Outcome};
use crate::metric::{PERCENTILES, place_among};
use crate::plan::{Load, Plan};
use crate::probe::Pace;
use crate::record::Latencies;
use crate::target::Failure;

/// Lateness of the tester, at its 99th percentile, from which on it says so. In milliseconds.
pub const LATE: f64 = 1.0;
/// Share of the 99th percentile of the latencies from which on that lateness matters.
pub const LATE_SHARE: f64 = 0.1;
/// Share of its processor from which on the tester says that it was the limit.
pub const BUSY: f64 = 0.9;
/// Share of requests that waited for a connection from which on it is said.
pub const WAITED: f64 = 0.01;

/// Why a run was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It was requested.
    #[default]
    Measure,
    /// To find a limit.
    Search,
    /// To make sure of a limit.
    Confirm,
}

/// One run's figures: a row of the table. Latencies are in milliseconds and of right replies only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Why it was made.
    pub phase: Phase,
    /// The requested rate, in requests per second; none with a closed load or with stages.
    pub asked: Option<f64>,
    /// Clients of a closed load.
    pub concurrency: Option<usize>,
    /// Rates that changed during the run.
    #[serde(default)]
    pub stages: Option<String>,
    /// Length of the window in seconds.
    pub seconds: f64,
    /// Right replies a second that came before the window closed.
    pub achieved: f64,
    /// Requests that were due in the window, without those that were cut off.
    pub requests: u64,
    /// Right replies, late ones included.
    pub correct: u64,
    /// Share of right replies in percent.
    pub success: f64,
    /// Requests without a right reply, by kind; kinds that did not occur are left out.
    pub failures: BTreeMap<String, u64>,
    /// How many replies had which status, right or not, for protocols that have one.
    #[serde(default)]
    pub statuses: BTreeMap<u16, u64>,
    /// The errors in words, the first few different ones.
    pub failure_texts: BTreeMap<String, u64>,
    /// From the intended send time to the reply.
    pub intended: Summary,
    /// From the actual send to the reply.
    pub sent: Summary,
    /// How long it took to open connections: with TLS, until they were secure.
    #[serde(default)]
    pub connect: Summary,
    /// From the actual send to the first byte of the reply.
    #[serde(default)]
    pub first_byte: Summary,
    /// Bytes sent and received, where the target reports them: heads and bodies, without TLS.
    #[serde(default)]
    pub bytes: Option<Bytes>,
    /// How late the tester itself began requests for which a connection was free.
    pub late: Summary,
    /// Share of the processor time it could get that the tester's busiest thread used, waiting not counted.
    pub tester_busy: Option<f64>,
    /// Requests for which no connection was free when they were due.
    pub waited: u64,
    /// Connections opened.
    pub connections: u64,
    /// Further tries of requests that had failed; they are not in `requests`.
    #[serde(default)]
    pub retries: u64,
    /// The largest number of exchanges under way at a time.
    pub most_in_flight: usize,
    /// How fast the sampled counter rose.
    pub pace: Option<Pace>,
    /// The run piece by piece.
    pub series: Vec<Point>,
    /// What the reader should know about the figures.
    pub warnings: Vec<String>,
    /// Whether the run was stopped before its time.
    pub cut_short: bool,
    /// Requests that were still open when the run was stopped. They are neither right nor wrong.
    #[serde(default)]
    pub cut_off: u64,
}

/// Bytes of all requests of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// Of requests.
    pub sent: u64,
    /// Of replies.
    pub received: u64,
}

/// Latencies in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// 50 % were not above this.
    pub p50: f64,
    /// 90 % were not above this.
    pub p90: f64,
    /// 95 % were not above this.
    pub p95: f64,
    /// 99 % were not above this.
    pub p99: f64,
    /// 99.9 % were not above this.
    #[serde(rename = "p99.9")]
    pub p999: f64,
    /// 99.99 % were not above this.
    #[serde(rename = "p99.99")]
    pub p9999: f64,
    /// Largest.
    pub max: f64,
    /// Pairs of a percentage and the latency that this share did not exceed, for a plot.
    pub curve: Vec<(f64, f64)>,
}

/// A piece of a run. Requests belong to the piece in which they ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its end in seconds from the start of the window.
    pub at: f64,
    /// Right replies a second.
    pub rate: f64,
    /// The requested rate, in requests per second, if it changed during the run.
    #[serde(default)]
    pub asked: Option<f64>,
    /// Requests without a right reply.
    pub failures: u64,
    /// Median from the intended send time, if any right reply came.
    pub p50: Option<f64>,
    /// 99th percentile from the intended send time.
    pub p99: Option<f64>,
    /// Largest from the intended send time.
    pub max: Option<f64>,
}

impl Summary {
    /// Of a histogram of the right replies to `requests`.
    pub fn of(latencies: &Latencies, requests: u64) -> Self {
        Summary {
            count: latencies.count(),
            mean: latencies.mean(),
            p50: latencies.percentile(50.0),
            p90: latencies.percentile(90.0),
            p95: latencies.percentile(95.0),
            p99: latencies.percentile(99.0),
            p999: latencies.percentile(99.9),
            p9999: latencies.percentile(99.99),
            max: latencies.max(),
            curve: curve(latencies, requests),
        }
    }
}

/// Percentages ever closer to 100, as far as there are values to distinguish them, and where the percentiles of all
/// `requests` lie.
fn curve(latencies: &Latencies, requests: u64) -> Vec<(f64, f64)> {
    if latencies.count() == 0 {
        return Vec::new();
    }
    let nines = (latencies.count() as f64).log10();
    let steps = (nines * 10.0).ceil() as u32;
    let even = (0..=steps).map(|step| 100.0 * (1.0 - 10f64.powf(-f64::from(step) / 10.0)));
    let of_all = PERCENTILES.map(|percent| place_among(percent, latencies.count(), requests));
    let of_all = of_all.into_iter().filter(|percent| requests > latencies.count() && *percent < 100.0);
    // Few digits, so that text reads back as the same number.
    let mut percents: Vec<_> = even.chain(of_all).map(|percent| (percent * 1e7).round() / 1e7).collect();
    percents.sort_by(f64::total_cmp);
    let mut curve: Vec<_> =
        percents.into_iter().map(|percent| (percent, latencies.percentile(percent))).collect();
    curve.push((100.0, latencies.max()));
    curve
}

impl Point {
    /// Of an interval.
    pub fn of(interval: &Interval) -> Self {
        let latencies = &interval.record.intended;
        let some = |value: f64| (latencies.count() > 0).then_some(value);
        Point {
            at: (interval.start + interval.length).as_secs_f64(),
            rate: interval.record.counts.correct as f64 / interval.length.as_secs_f64(),
            asked: None,
            failures: interval.record.counts.failed(),
            p50: some(latencies.percentile(50.0)),
            p99: some(latencies.percentile(99.0)),
            max: some(latencies.max()),
        }
    }
}

impl Row {
    /// Of a run of `plan`.
    pub fn new(plan: &Plan, outcome: &Outcome, phase: Phase) -> Self {
        let counts = &outcome.total.counts;
        let seconds = outcome.window.as_secs_f64();
        let ended = counts.ended();
        let named = Failure::NAMES.iter().zip(counts.failures).filter(|(_, count)| *count > 0);
        let (asked, concurrency, stages) = match &plan.load {
            Load::Open { rate, .. } => (Some(*rate), None, None),
            Load::Stages { stages, .. } => (None, None, Some(stages.to_string())),
            Load::Closed { concurrency } => (None, Some(*concurrency), None),
        };
        let mut row = Row {
            phase,
            asked,
            concurrency,
            stages,
            seconds,
            achieved: if seconds > 0.0 { counts.in_window as f64 / seconds } else { 0.0 },
            requests: ended,
            correct: counts.correct,
            success: if ended > 0 { 100.0 * counts.correct as f64 / ended as f64 } else { 0.0 },
            failures: named.map(|(name, count)| ((*name).to_owned(), count)).collect(),
            statuses: outcome.total.statuses.clone(),
            failure_texts: outcome.total.texts.clone(),
            intended: Summary::of(&outcome.total.intended, ended),
            sent: Summary::of(&outcome.total.sent, ended),
            connect: Summary::of(&outcome.total.connect, 0),
            first_byte: Summary::of(&outcome.total.first_byte, 0),
            bytes: (counts.bytes_sent + counts.bytes_received > 0)
                .then_some(Bytes { sent: counts.bytes_sent, received: counts.bytes_received }),
            late: Summary::of(&outcome.total.late, 0),
            tester_busy: outcome.busy,
            waited: counts.waited,
            connections: counts.connected,
            retries: counts.retries,
            most_in_flight: outcome.most_in_flight,
            pace: outcome.pace,
            series: outcome.series.clone(),
            warnings: Vec::new(),
            cut_short: outcome.cut_short,
            cut_off: counts.cut_off,
        };
        row.warnings = warnings(&row, plan.connections);
        row
    }

    /// Whether the tester, not the target, was the limit.
    pub fn tester_limited(&self) -> bool {
        self.tester_late() || self.tester_busy.is_some_and(|busy| busy > BUSY)
    }

    /// Whether the tester's own lateness shows in the figures.
    fn tester_late(&self) -> bool {
        self.late.p99 > LATE && self.late.p99 > LATE_SHARE * self.intended.p99
    }

    /// Share in percent of all requests due for which no connection was free then.
    pub fn waited_share(&self) -> f64 {
        100.0 * self.waited as f64 / (self.requests + self.cut_off).max(1) as f64
    }

    /// The requested load, as text.
    pub fn load(&self) -> String {
        match (self.asked, self.concurrency, &self.stages) {
            (Some(rate), ..) => crate::report::format::rate(rate),
            (None, Some(clients), _) => format!("closed, {clients}"),
            (None, None, Some(stages)) => stages.clone(),
            (None, None, None) => "?".to_owned(),
        }
    }
}

fn warnings(row: &Row, connections: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    if row.cut_short {
        let open = match row.cut_off {
            0 => String::new(),
            count => format!("; {count} requests that were still open are not counted"),
        };
        warnings.push(format!("cut short after {:.1} s{open}", row.seconds));
    }
    if row.tester_late() {
        warnings.push(format!(
            "the tester, not the target, was the limit for some requests: it began 1 % of them {:.1} ms or more after \
             they were due, which the figures from the intended send time include; ask for less, or give it a \
             processor of its own",
            row.late.p99
        ));
    }
    if let Some(busy) = row.tester_busy.filter(|busy| *busy > BUSY) {
        warnings.push(format!(
            "the tester, not the target, was the limit: its thread was busy for {:.0} % of the processor time it could \
             get; give it a processor of its own, or more threads with --workers",
            100.0 * busy
        ));
    }
    if row.waited_share() > 100.0 * WAITED {
        warnings.push(format!(
            "{:.0} % of the requests waited for one of {connections} connections, clock running: {}",
            row.waited_share(),
            if row.tester_limited() {
                "the tester was too slow for this rate"
            } else {
                "the target was too slow for this rate, or give it more with --connections"
            }
        ));
    }
    warnings
}
