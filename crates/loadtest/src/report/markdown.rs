//! The report for a terminal.

use std::fmt::Write;

use super::Report;
use super::format::{millis, percent, rate, thousands};
use super::table::Table;
use crate::row::{Phase, Row, Summary};

/// The whole report for a terminal or a page.
pub fn report(report: &Report) -> String {
    let rows = report.shown();
    let mut out = format!("{}\n\n{}\n", report.summary(), report.machine.summary());
    out += "\nFrom the intended send time, ms, correct replies only:\n\n";
    let counter = report.target.counter.as_deref();
    out += &table(&rows, counter, |row| &row.intended);
    out += "\nFrom the actual send, ms, correct replies only (leaves out the waiting before it):\n\n";
    out += &table(&rows, counter, |row| &row.sent);
    out += "\nThe tester itself: how late it began requests for which a connection was free, ms, and what it used:\n\n";
    out += &tester(&rows);
    let failures = failures(&rows);
    if !failures.is_empty() {
        let _ = write!(out, "\nErrors:\n\n{failures}");
    }
    if let Some(limit) = &report.limit {
        let _ = write!(out, "\n{}", self::limit(limit));
    }
    let warnings = warnings(&rows);
    if !warnings.is_empty() {
        let _ = write!(out, "\nWarnings:\n\n{warnings}");
    }
    if report.cut_short {
        out += "\nCut short: stopped before its end.\n";
    }
    out
}

/// A line for each row, with latencies from either clock. `counter` is what the sampled counter counts.
pub fn table(rows: &[&Row], counter: Option<&str>, clock: impl Fn(&Row) -> &Summary) -> String {
    let counter = counter.map(|counter| format!("{counter}/s (slowest second)"));
    let heads = ["asked", "achieved", "mean", "p50", "p99", "p99.9", "max", "success"];
    let mut table = Table::new(&heads.into_iter().chain(counter.as_deref()).collect::<Vec<_>>());
    for row in rows {
        let summary = clock(row);
        let cell = |value: f64| if summary.count > 0 { millis(value) } else { "-".to_owned() };
        let latencies = [summary.mean, summary.p50, summary.p99, summary.p999, summary.max].map(cell);
        let mut cells = vec![row.load(), rate(row.achieved)];
        cells.extend(latencies);
        cells.push(percent(row.success));
        if counter.is_some() {
            cells.push(row.pace.map_or("-".to_owned(), |pace| format!("{:.2} ({:.2})", pace.mean, pace.min)));
        }
        table.row(cells);
    }
    table.finish()
}

/// How the tester itself did: the part of the figures that is not the target's.
fn tester(rows: &[&Row]) -> String {
    let mut table = Table::new(&[
        "asked",
        "late p50",
        "late p99",
        "late max",
        "busy",
        "connections opened",
        "retries",
        "most in flight",
        "had to wait",
    ]);
    for row in rows {
        table.row(tester_cells(row));
    }
    table.finish()
}

/// The cells of a row about the tester.
pub(super) fn tester_cells(row: &Row) -> [String; 9] {
    let late = [row.late.p50, row.late.p99, row.late.max];
    let [p50, p99, max] = late.map(|value| if row.late.count > 0 { millis(value) } else { "-".to_owned() });
    [
        row.load(),
        p50,
        p99,
        max,
        row.tester_busy.map_or("-".to_owned(), |busy| format!("{:.0}%", 100.0 * busy)),
        thousands(&row.connections.to_string()),
        thousands(&row.retries.to_string()),
        thousands(&row.most_in_flight.to_string()),
        percent(row.waited_share()),
    ]
}

fn failures(rows: &[&Row]) -> String {
    let mut out = String::new();
    for row in rows.iter().filter(|row| !row.failures.is_empty()) {
        let kinds: Vec<_> = row.failures.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let _ = writeln!(out, "- {}: {} of {} requests", row.load(), kinds.join(", "), row.requests);
        for (text, count) in &row.failure_texts {
            if !row.failures.contains_key(text) {
                let _ = writeln!(out, "  - {count} x {text}");
            }
        }
    }
    out
}

fn warnings(rows: &[&Row]) -> String {
    let mut out = String::new();
    // Those of a search are about rates that nobody asked for.
    for row in rows.iter().filter(|row| row.phase != Phase::Search) {
        for warning in &row.warnings {
            let _ = writeln!(out, "- {}: {warning}", row.load());
        }
    }
    out
}

fn limit(limit: &crate::search::Limit) -> String {
    let mut out = match limit.rate {
        Some(found) => format!(
            "Limit: {} requests/s meet {} ({} confirmation runs)",
            rate(found),
            limit.goal,
            limit.confirmations
        ),
        None => format!("Limit: no rate met {}", limit.goal),
    };
    if let Some(missed_at) = limit.missed_at {
        let _ = write!(out, "; {} missed it ({})", rate(missed_at), limit.missed.join("; "));
    }
    out += ".\n";
    if limit.tester_limited {
        out += "The tester was the limit there: the target may be faster.\n";
    }
    if limit.cut_short {
        out += "The search was cut short: the limit is not confirmed.\n";
    }
    out
}
