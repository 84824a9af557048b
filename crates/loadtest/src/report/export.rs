//! Exports rows for other programs: as CSV, and in Prometheus' text format.

use std::collections::HashSet;
use std::fmt::Write;

use super::Report;
use crate::metric::{FIGURES, Figure, Metric};
use crate::row::Row;

/// A value of a row that is not a latency: its name in CSV, its name and its help text for Prometheus, and its value.
type Value = (&'static str, &'static str, &'static str, fn(&Row) -> Option<f64>);

const VALUES: [Value; 13] = [
    ("asked", "asked_per_second", "Requested rate in requests per second", |row| row.asked),
    ("concurrency", "concurrency", "Clients of a closed load", |row| {
        row.concurrency.map(|count| count as f64)
    }),
    ("seconds", "window_seconds", "Length of the window", |row| Some(row.seconds)),
    ("requests", "requests", "Requests that were due in the window", |row| Some(row.requests as f64)),
    ("correct", "correct_replies", "Correct replies", |row| Some(row.correct as f64)),
    ("success", "success_percent", "Share of correct replies", |row| Some(row.success)),
    ("achieved", "achieved_per_second", "Correct replies per second in the window", |row| Some(row.achieved)),
    ("waited", "waited", "Requests for which no connection was free", |row| Some(row.waited as f64)),
    ("connections", "connections", "Connections opened", |row| Some(row.connections as f64)),
    ("retries", "retries", "Retries of failed requests", |row| Some(row.retries as f64)),
    ("tester_busy", "tester_busy_ratio", "Processor share used by the tester's busiest thread", |row| {
        row.tester_busy
    }),
    ("bytes_sent", "sent_bytes", "Bytes of requests", |row| row.bytes.map(|bytes| bytes.sent as f64)),
    ("bytes_received", "received_bytes", "Bytes of replies", |row| {
        row.bytes.map(|bytes| bytes.received as f64)
    }),
];

/// The rows as CSV: a line with the names of the columns, and then one line per row. Latencies are in milliseconds; the
/// cells of values that were not measured are empty.
pub fn csv(report: &Report) -> String {
    let of = |clock: fn(Figure) -> Metric| FIGURES.map(|(_, figure, ..)| clock(figure));
    let latencies = || of(Metric::Intended).into_iter().chain(of(Metric::Sent));
    let mut names: Vec<String> = ["target", "strategy", "load"].map(str::to_owned).to_vec();
    names.extend(VALUES.map(|(name, ..)| name.to_owned()));
    names.extend(latencies().map(|metric| metric.to_string()));
    let mut out = names.join(",") + "\n";
    for row in report.shown() {
        let load = load(row);
        let mut cells =
            [&report.target.url, &report.target.strategy, &load].map(|text| quoted(text)).to_vec();
        let values = VALUES.into_iter().map(|(.., value)| value(row));
        let values = values.chain(latencies().map(|metric| metric.of(row)));
        cells.extend(values.map(|value| value.map_or(String::new(), |value| value.to_string())));
        out += &(cells.join(",") + "\n");
    }
    out
}

/// The load without commas: `1000` for `1,000`, and `closed 8` for `closed, 8`. The commas of stages stay, because they
/// separate the stages.
fn load(row: &Row) -> String {
    match &row.stages {
        Some(stages) => stages.clone(),
        None => row.load().replace(',', ""),
    }
}

/// A cell with a text, quoted if needed (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// The rows as gauges, for a file that Prometheus' node exporter reads, or for a push gateway. Both reject two samples
/// with the same labels. So if several runs have the same load, as in a search, only the last of them is written.
pub fn prometheus(report: &Report) -> String {
    let mut out = String::new();
    let mut rows = report.shown();
    let mut loads = HashSet::new();
    rows.reverse();
    rows.retain(|row| loads.insert(load(row)));
    rows.reverse();
    let labels = |row: &Row, more: &str| {
        let value = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let (url, strategy) = (value(&report.target.url), value(&report.target.strategy));
        let load = load(row);
        format!("{{target=\"{url}\",strategy=\"{strategy}\",load=\"{load}\"{more}}}")
    };
    let mut gauge = |name: &str, help: &str, values: Vec<(String, f64)>| {
        if values.is_empty() {
            return;
        }
        // Writing to memory does not fail.
        let _ = writeln!(out, "# HELP framewire_bench_{name} {help}\n# TYPE framewire_bench_{name} gauge");
        for (labels, value) in values {
            let _ = writeln!(out, "framewire_bench_{name}{labels} {value}");
        }
    };
    for (_, name, help, value) in VALUES {
        let values = rows.iter().filter_map(|row| Some((labels(row, ""), value(row)?)));
        gauge(name, help, values.collect());
    }
    let mut counts = |name, help, label, of: &dyn Fn(&Row) -> Vec<(String, u64)>| {
        let values = rows.iter().flat_map(|row| {
            let labelled = |(kind, count)| (labels(row, &format!(",{label}=\"{kind}\"")), count as f64);
            of(row).into_iter().map(labelled).collect::<Vec<_>>()
        });
        gauge(name, help, values.collect());
    };
    counts("failures", "Requests without a correct reply", "kind", &|row| {
        row.failures.iter().map(|(kind, count)| (kind.clone(), *count)).collect()
    });
    counts("responses", "Replies by status", "status", &|row| {
        row.statuses.iter().map(|(status, count)| (status.to_string(), *count)).collect()
    });
    let mut latencies = Vec::new();
    for row in &rows {
        for (clock, metric) in
            [("intended", Metric::Intended as fn(Figure) -> Metric), ("sent", Metric::Sent)]
        {
            for (name, figure, ..) in FIGURES {
                if let Some(value) = metric(figure).of(row) {
                    let more = format!(",clock=\"{clock}\",figure=\"{name}\"");
                    latencies.push((labels(row, &more), value / 1000.0));
                }
            }
        }
    }
    gauge("latency_seconds", "Latencies of correct replies", latencies);
    out
}
