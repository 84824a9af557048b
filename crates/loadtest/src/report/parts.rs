//! The parts of a report that the terminal and the page have in common.

use super::format::{millis, percent, rate, thousands};
use super::table::Table;
use super::{Report, Verdict};
use crate::row::{Phase, Row, Summary};

/// The text for a missing value.
const NONE: &str = "-";

/// A table with its heading, and a remark on it.
pub(super) struct Part {
    pub(super) heading: &'static str,
    pub(super) remark: &'static str,
    pub(super) table: Table,
}

/// A sentence that a reader must see.
pub(super) struct Notice {
    pub(super) kind: Kind,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Good,
    Warning,
    Bad,
}

/// All tables, in order.
pub(super) fn tables(report: &Report, rows: &[&Row]) -> Vec<Part> {
    let counter = report.target.counter.as_deref();
    let mut parts = vec![
        Part {
            heading: "Latency from the intended send time",
            remark: "ms, correct replies only",
            table: latencies(rows, counter, |row| &row.intended),
        },
        Part {
            heading: "Latency from the actual send",
            remark: "ms, correct replies only; without the wait before the send",
            table: latencies(rows, counter, |row| &row.sent),
        },
    ];
    if rows.iter().any(|row| row.first_byte.count > 0) {
        parts.push(Part {
            heading: "Steps of a request",
            remark: "ms; connect includes the TLS handshake; the other times begin at the actual send",
            table: steps(rows),
        });
    }
    if rows.iter().any(|row| row.bytes.is_some() || !row.statuses.is_empty()) {
        parts.push(Part {
            heading: "Replies",
            remark: "by status, and bytes of heads and bodies; with HTTP/2, of bodies only",
            table: replies(rows),
        });
    }
    parts.push(Part {
        heading: "The tester itself",
        remark: "how late it began requests for which a connection was free, in ms; and the resources that it used",
        table: tester(rows),
    });
    parts
}

fn cell(summary: &Summary, value: f64) -> String {
    if summary.count > 0 { millis(value) } else { NONE.to_owned() }
}

/// A table with a line for each row. `clock` selects the latencies: those from the intended send time, or those from
/// the actual send. `counter` is the unit of the sampled counter.
fn latencies(rows: &[&Row], counter: Option<&str>, clock: impl Fn(&Row) -> &Summary) -> Table {
    let counter = counter.map(|counter| format!("{counter}/s (slowest second)"));
    let heads = ["asked", "achieved", "mean", "p50", "p99", "p99.9", "max", "success"];
    let mut table = Table::new(&heads.into_iter().chain(counter.as_deref()).collect::<Vec<_>>());
    for row in rows {
        let summary = clock(row);
        let values = [summary.mean, summary.p50, summary.p99, summary.p999, summary.max];
        let mut cells = vec![row.load(), rate(row.achieved)];
        cells.extend(values.map(|value| cell(summary, value)));
        cells.push(percent(row.success));
        if counter.is_some() {
            cells
                .push(row.pace.map_or(NONE.to_owned(), |pace| format!("{:.2} ({:.2})", pace.mean, pace.min)));
        }
        table.row(cells);
    }
    table
}

fn steps(rows: &[&Row]) -> Table {
    let mut table = Table::new(&[
        "asked",
        "connect p50",
        "connect p99",
        "first byte p50",
        "first byte p99",
        "whole reply p50",
        "whole reply p99",
    ]);
    for row in rows {
        let summaries = [&row.connect, &row.first_byte, &row.sent];
        let cells = summaries.into_iter().flat_map(|part| [cell(part, part.p50), cell(part, part.p99)]);
        table.row([row.load()].into_iter().chain(cells));
    }
    table
}

fn replies(rows: &[&Row]) -> Table {
    let mut statuses: Vec<_> = rows.iter().flat_map(|row| row.statuses.keys()).collect();
    statuses.sort();
    statuses.dedup();
    let names: Vec<_> = statuses.iter().map(|status| format!("status {status}")).collect();
    let heads = ["asked"].into_iter().chain(names.iter().map(String::as_str));
    let mut table =
        Table::new(&heads.chain(["bytes sent", "bytes received", "received/s"]).collect::<Vec<_>>());
    for row in rows {
        let mut cells = vec![row.load()];
        cells.extend(statuses.iter().map(|status| thousands(row.statuses.get(status).copied().unwrap_or(0))));
        if let Some(bytes) = row.bytes {
            let speed = bytes.received as f64 / row.seconds.max(f64::MIN_POSITIVE);
            cells.extend([thousands(bytes.sent), thousands(bytes.received), rate(speed.round())]);
        }
        table.row(cells);
    }
    table
}

/// Figures about the tester itself, and not about the target.
fn tester(rows: &[&Row]) -> Table {
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
        let late = [row.late.p50, row.late.p99, row.late.max].map(|value| cell(&row.late, value));
        let rest = [
            row.tester_busy.map_or(NONE.to_owned(), |busy| format!("{:.0}%", 100.0 * busy)),
            thousands(row.connections),
            thousands(row.retries),
            thousands(row.most_in_flight),
            percent(row.waited_percent()),
        ];
        table.row([row.load()].into_iter().chain(late).chain(rest));
    }
    table
}

/// A line for each row with failures, and lines for the error texts that say more than the kind of the error.
pub(super) fn errors(rows: &[&Row]) -> Vec<(String, Vec<String>)> {
    let failed = rows.iter().filter(|row| !row.failures.is_empty());
    let lines = failed.map(|row| {
        let kinds: Vec<_> = row.failures.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let texts = row.failure_texts.iter().filter(|(text, _)| !row.failures.contains_key(*text));
        (
            format!("{}: {} of {} requests", row.load(), kinds.join(", "), row.requests),
            texts.map(|(text, count)| format!("{count} x {text}")).collect(),
        )
    });
    lines.collect()
}

/// The sentences that a reader must see. The page has them before the figures, and the terminal after them.
pub(super) fn notices(report: &Report, rows: &[&Row]) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut add = |kind, text| notices.push(Notice { kind, text });
    if let Some(limit) = &report.limit {
        let mut text = match limit.rate {
            Some(found) => format!(
                "Limit: {} requests/s meet {} ({} confirmation runs)",
                rate(found),
                limit.goal,
                limit.confirmations
            ),
            None => format!("Limit: no rate met {}", limit.goal),
        };
        if let Some(missed_at) = limit.missed_at {
            text += &format!("; {} missed it ({})", rate(missed_at), limit.missed.join("; "));
        }
        add(if limit.rate.is_some() { Kind::Good } else { Kind::Bad }, text + ".");
        if limit.tester_limited {
            add(Kind::Warning, "The tester was the limit there: the target may be faster.".to_owned());
        }
        if limit.cut_short {
            add(Kind::Bad, "The search was cut short: the limit is not confirmed.".to_owned());
        }
    }
    if let Some(Verdict { goal, missed }) = &report.verdict {
        if missed.is_empty() {
            let runs = if report.cut_short { "Every run so far" } else { "Every run" };
            add(Kind::Good, format!("{runs} meets {goal}."));
        } else {
            let loads: Vec<&str> = missed.iter().map(|(load, _)| load.as_str()).collect();
            add(Kind::Bad, format!("Missed {goal} at {}.", loads.join(", ")));
        }
        for (load, missed) in missed {
            add(Kind::Bad, format!("Missed at {load}: {}.", missed.join("; ")));
        }
    }
    // Runs with the same warning share one notice. Warnings of search runs are left out, because these runs only lead
    // to the limit. Warnings of the runs that confirm the limit stay.
    let mut warnings: Vec<(&str, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(|row| row.phase != Phase::Search) {
        for warning in &row.warnings {
            match warnings.iter_mut().find(|(text, _)| text == warning) {
                Some((_, loads)) => loads.push(row.load()),
                None => warnings.push((warning, vec![row.load()])),
            }
        }
    }
    for (warning, loads) in warnings {
        add(Kind::Warning, format!("At {}: {warning}.", loads.join(", ")));
    }
    if report.cut_short {
        add(Kind::Bad, "The measurement was cut short: it was stopped before its end.".to_owned());
    }
    notices
}
