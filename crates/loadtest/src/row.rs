//! The figures of one run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::{Interval, Outcome};
use crate::metric::{percentiles, place_among};
use crate::plan::{Load, Plan};
use crate::probe::Pace;
use crate::record::Latencies;
use crate::target::Failure;

/// The tester counts as late if the 99th percentile of its own delays is above two limits: this number of milliseconds,
/// and [`LATE_SHARE`] of the 99th percentile of the latencies. Then the tester was the limit, and there is a warning.
pub const LATE: f64 = 1.0;
/// A share of the 99th percentile of the latencies: see [`LATE`].
pub const LATE_SHARE: f64 = 0.1;
/// There is a warning that the tester was the limit if its busiest thread used more than this share of the processor
/// time that it could get.
pub const BUSY: f64 = 0.9;
/// There is a warning if more than this share of the requests waited for a connection.
pub const WAITED: f64 = 0.01;

/// Why a run was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The command line requested this run.
    #[default]
    Measure,
    /// To find a limit: the highest rate that still meets a goal.
    Search,
    /// To confirm a limit.
    Confirm,
}

/// The figures of one run: a row of the table. Times in a [`Summary`] are in milliseconds. `intended`, `sent` and
/// `first_byte` have only the times of correct replies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Why the run was made.
    pub phase: Phase,
    /// The requested rate, in requests per second; `None` with a closed load or with stages.
    pub asked: Option<f64>,
    /// The number of clients of a closed load.
    pub concurrency: Option<usize>,
    /// The stages, if the rate changed during the run.
    #[serde(default)]
    pub stages: Option<String>,
    /// The length of the window (the measured part of the run) in seconds.
    pub seconds: f64,
    /// Correct replies that arrived before the end of the window, per second of the window.
    pub achieved: f64,
    /// Requests that were due in the window, without those that were cut off.
    pub requests: u64,
    /// Correct replies, including those that arrived after the window.
    pub correct: u64,
    /// The share of correct replies in percent.
    pub success: f64,
    /// Requests without a correct reply, by kind; kinds that did not occur are left out.
    pub failures: BTreeMap<String, u64>,
    /// The number of replies with each status, correct or not, for protocols that have a status.
    #[serde(default)]
    pub statuses: BTreeMap<u16, u64>,
    /// The texts of the first few different errors, and how many times each occurred.
    pub failure_texts: BTreeMap<String, u64>,
    /// From the intended send time to the reply.
    pub intended: Summary,
    /// From the actual send to the reply.
    pub sent: Summary,
    /// How long it took to open connections. With TLS, this includes the handshake.
    #[serde(default)]
    pub connect: Summary,
    /// From the actual send to the first byte of the reply.
    #[serde(default)]
    pub first_byte: Summary,
    /// Bytes sent and received, where the target reports them: heads and bodies, without TLS; with HTTP/2, only bodies.
    #[serde(default)]
    pub bytes: Option<Bytes>,
    /// How late the tester itself began requests for which a connection was free.
    pub late: Summary,
    /// The share (0 to 1) of the available processor time that the tester's busiest thread used for work. Processor
    /// time that it spent on waiting does not count as used. `None` if the system does not report processor times.
    pub tester_busy: Option<f64>,
    /// Requests for which no connection was free when they were due.
    pub waited: u64,
    /// Connections opened.
    pub connections: u64,
    /// Retries of failed requests; they are not in `requests`.
    #[serde(default)]
    pub retries: u64,
    /// The largest number of requests in flight at a time; with several workers, the sum of their largest numbers.
    pub most_in_flight: usize,
    /// How fast the sampled counter rose during the run. The counter can be the emulator's frame counter, for example.
    /// `None` if no counter was sampled, or if there are too few samples. See [`crate::probe`].
    pub pace: Option<Pace>,
    /// The figures of each interval of the run.
    pub series: Vec<Point>,
    /// Warnings for the reader about the figures.
    pub warnings: Vec<String>,
    /// Whether the run was stopped before its end.
    pub cut_short: bool,
    /// Requests that were still open when the run was stopped. They count neither as correct nor as failed.
    #[serde(default)]
    pub cut_off: u64,
}

/// The bytes of all requests of a run, and of their replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// The bytes of requests.
    pub sent: u64,
    /// The bytes of replies.
    pub received: u64,
}

/// Latencies in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of latencies.
    pub count: u64,
    /// The mean.
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
    /// The largest latency.
    pub max: f64,
    /// Pairs of a percentage and the latency that this percentage of the latencies did not exceed, for plots and for
    /// [`Metric::judged`](crate::metric::Metric::judged).
    pub curve: Vec<(f64, f64)>,
}

/// The figures of an interval of a run. A request belongs to the interval in which it ended. If the window ends within
/// an interval, [`at`](Point::at) is the end of the window, and [`rate`](Point::rate) has only replies before it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its end in seconds from the start of the window.
    pub at: f64,
    /// Correct replies per second.
    pub rate: f64,
    /// The requested rate in the middle of the interval, in requests per second; only for a load with stages.
    #[serde(default)]
    pub asked: Option<f64>,
    /// Requests without a correct reply.
    pub failures: u64,
    /// The median of the latencies from the intended send time, in milliseconds, if there was a correct reply.
    pub p50: Option<f64>,
    /// The 99th percentile of these latencies.
    pub p99: Option<f64>,
    /// The largest of these latencies.
    pub max: Option<f64>,
}

impl Summary {
    /// Summarises latencies. `requests` is the number of all requests, including those without a correct reply; 0 if
    /// the curve needs no points for the percentiles of all requests.
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

/// The points of a [`Summary::curve`]. The percentages approach 100 in smaller and smaller steps. The more latencies
/// there are, the closer the percentages come to 100. If some of the `requests` have no correct reply, there is also a
/// point for each of the [`percentiles`] of all requests, converted with [`place_among`]. A percentile that falls on a
/// request without a correct reply gets no point.
fn curve(latencies: &Latencies, requests: u64) -> Vec<(f64, f64)> {
    if latencies.count() == 0 {
        return Vec::new();
    }
    let nines = (latencies.count() as f64).log10();
    let steps = (nines * 10.0).ceil() as u32;
    let even = (0..=steps).map(|step| 100.0 * (1.0 - 10f64.powf(-f64::from(step) / 10.0)));
    let of_all = percentiles().map(|percent| place_among(percent, latencies.count(), requests));
    let of_all = of_all.filter(|percent| requests > latencies.count() && *percent < 100.0);
    // The percentages have few digits, so that they stay the same when they are written as text and read again.
    let mut percents: Vec<_> = even.chain(of_all).map(|percent| (percent * 1e7).round() / 1e7).collect();
    percents.sort_by(f64::total_cmp);
    let mut curve: Vec<_> =
        percents.into_iter().map(|percent| (percent, latencies.percentile(percent))).collect();
    curve.push((100.0, latencies.max()));
    curve
}

impl Point {
    /// The figures of an interval.
    pub fn of(interval: &Interval) -> Self {
        let latencies = &interval.record.intended;
        let some = |value: f64| if latencies.count() > 0 { Some(value) } else { None };
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
    /// The figures of a run of `plan`.
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
        let bytes = Bytes { sent: counts.bytes_sent, received: counts.bytes_received };
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
            bytes: if bytes.sent + bytes.received > 0 { Some(bytes) } else { None },
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

    /// The percentage of requests for which no connection was free when they were due.
    pub fn waited_percent(&self) -> f64 {
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
            1 => "; 1 request that was still open is not counted".to_owned(),
            count => format!("; {count} requests that were still open are not counted"),
        };
        warnings.push(format!("cut short after {:.1} s{open}", row.seconds));
    }
    if row.tester_late() {
        warnings.push(format!(
            "the tester, not the target, was the limit for some requests: 1 % of the requests for which a connection \
             was free began at least {:.1} ms late, and the figures from the intended send time include this delay; \
             use a lower rate, or give the tester a processor of its own",
            row.late.p99
        ));
    }
    if let Some(busy) = row.tester_busy.filter(|busy| *busy > BUSY) {
        warnings.push(format!(
            "the tester, not the target, was the limit: its busiest thread used {:.0} % of the processor time that it \
             could get; give it a processor of its own, or more threads with --workers",
            100.0 * busy
        ));
    }
    if row.waited_percent() > 100.0 * WAITED {
        let awaited = match connections {
            1 => "the only connection".to_owned(),
            _ => format!("one of the {connections} connections"),
        };
        warnings.push(format!(
            "{:.0} % of the requests had to wait for {awaited}, and this counts as latency: {}",
            row.waited_percent(),
            if row.tester_limited() {
                "the tester was too slow for this rate"
            } else if connections == 1 {
                "either the target was too slow for this rate, or the tester needs more connections (--connections, with \
                 a --strategy other than single)"
            } else {
                "either the target was too slow for this rate, or the tester needs more connections (--connections)"
            }
        ));
    }
    warnings
}
