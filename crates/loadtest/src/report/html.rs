//! One page with everything: no scripts, nothing loaded from elsewhere, light and dark.

use std::fmt::Write;

use super::Report;
use super::format::{millis, percent, rate};
use super::markdown::tester_cells;
use super::plot::{Axis, Mark, Plot, Scale, Series, escape};
use crate::row::{Phase, Row, Summary};
use crate::target::Failure;

const STYLE: &str = include_str!("page.css");

/// The page.
pub fn page(report: &Report) -> String {
    let rows = report.shown();
    let title = format!("Load test of {}", report.target.url);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{0}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<h1>{0}</h1>\n<p class=\"how\">{1}</p>\n",
        escape(&title),
        escape(&report.summary()),
    );
    notices(report, &rows, &mut out);
    out += "<h2>Latency from the intended send time <small>ms, right replies</small></h2>\n";
    let counter = report.target.counter.as_deref();
    table(&rows, counter, |row| &row.intended, &mut out);
    out += "<h2>Latency from the actual send <small>ms; leaves out the waiting before it</small></h2>\n";
    table(&rows, counter, |row| &row.sent, &mut out);

    out += "<div class=\"plots\">\n";
    figure("Share of requests and the latency they did not exceed", &percentiles(&rows), &mut out);
    if rows.iter().filter(|row| row.asked.is_some()).count() > 1 {
        figure("Achieved against asked", &achieved(&rows), &mut out);
    }
    if rows.iter().any(|row| !row.failures.is_empty()) {
        figure("Errors", &errors(&rows), &mut out);
    }
    for row in &rows {
        figure(&format!("Latency over time at {}", name(row)), &over_time(row), &mut out);
    }
    out += "</div>\n";
    errors_in_words(&rows, &mut out);
    tester(&rows, &mut out);
    let _ = write!(
        out,
        "<h2>How it was measured</h2>\n<dl>\n<dt>Command</dt><dd><code>{}</code></dd>\n<dt>Program</dt><dd>{}</dd>\n\
         <dt>Began</dt><dd>{}</dd>\n<dt>Machine</dt><dd>{}</dd>\n</dl>\n</main>\n</body>\n</html>\n",
        escape(&report.command.join(" ")),
        escape(&report.tool),
        escape(&report.started),
        escape(&report.machine.summary()),
    );
    out
}

/// A row's name in legends.
fn name(row: &Row) -> String {
    match row.asked {
        Some(asked) => format!("{}/s", rate(asked)),
        None => row.load(),
    }
}

fn notices(report: &Report, rows: &[&Row], out: &mut String) {
    let mut notice = |class: &str, text: &str| {
        let _ = writeln!(out, "<p class=\"notice {class}\">{}</p>", escape(text));
    };
    if report.cut_short {
        notice("bad", "Cut short: stopped before its end.");
    }
    if let Some(limit) = &report.limit {
        match limit.rate {
            Some(found) => notice(
                "good",
                &format!(
                    "Limit: {} requests/s meet {}, confirmed {} times{}.",
                    rate(found),
                    limit.goal,
                    limit.confirmations,
                    if limit.tester_limited { "; the tester was the limit above it" } else { "" }
                ),
            ),
            None => notice("bad", &format!("No rate met {}.", limit.goal)),
        }
    }
    // Those of a search are about rates that nobody asked for.
    for row in rows.iter().filter(|row| row.phase != Phase::Search) {
        for warning in &row.warnings {
            notice("warn", &format!("At {}: {warning}.", name(row)));
        }
    }
}

fn table(rows: &[&Row], counter: Option<&str>, clock: impl Fn(&Row) -> &Summary, out: &mut String) {
    *out += "<div class=\"scroll\"><table>\n<thead><tr><th>asked</th><th>achieved</th><th>mean</th><th>p50</th>\
             <th>p99</th><th>p99.9</th><th>max</th><th>success</th>";
    if let Some(counter) = counter {
        let _ = write!(out, "<th>{0}/s</th><th>slowest second</th>", escape(counter));
    }
    *out += "</tr></thead>\n<tbody>\n";
    for row in rows {
        let summary = clock(row);
        let mut cells = vec![row.load(), rate(row.achieved)];
        let latencies = [summary.mean, summary.p50, summary.p99, summary.p999, summary.max];
        cells.extend(latencies.map(|value| if summary.count > 0 { millis(value) } else { "–".to_owned() }));
        *out += "<tr>";
        for cell in &cells {
            let _ = write!(out, "<td>{}</td>", escape(cell));
        }
        let class = if row.success < 100.0 { " class=\"bad\"" } else { "" };
        let _ = write!(out, "<td{class}>{}</td>", percent(row.success));
        match (counter, row.pace) {
            (Some(_), Some(pace)) => {
                let _ = write!(out, "<td>{:.2}</td><td>{:.2}</td>", pace.mean, pace.min);
            }
            (Some(_), None) => *out += "<td>–</td><td>–</td>",
            (None, _) => {}
        }
        *out += "</tr>\n";
    }
    *out += "</tbody>\n</table></div>\n";
}

fn figure(caption: &str, plot: &Plot, out: &mut String) {
    let _ = write!(out, "<figure>\n<figcaption>{}</figcaption>\n{}", escape(caption), plot.svg());
    let named: Vec<_> = plot.series.iter().filter(|series| !series.name.is_empty()).collect();
    if named.len() > 1 {
        *out += "<ul class=\"legend\">";
        for series in named {
            let dashes = if series.mark == Mark::Dashes { " dashes" } else { "" };
            let _ = write!(
                out,
                "<li><i class=\"key{dashes}\" style=\"--c:var(--c{})\"></i>{}</li>",
                series.colour % 8,
                escape(&series.name)
            );
        }
        *out += "</ul>\n";
    }
    *out += "</figure>\n";
}

fn percentiles(rows: &[&Row]) -> Plot {
    let line = |name: String, mark, colour, summary: &Summary| {
        // A value of 0 has no place on a logarithmic axis.
        let points = summary.curve.iter().map(|(percent, value)| (*percent, value.max(0.001))).collect();
        Series { name, mark, colour, points }
    };
    let mut series: Vec<_> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| line(name(row), Mark::Line, index, &row.intended))
        .collect();
    if let [row] = rows {
        series[0].name = "from the intended send time".to_owned();
        series.push(line("from the actual send".to_owned(), Mark::Dashes, 1, &row.sent));
    }
    Plot {
        title: "Latency by percentile".to_owned(),
        x: Axis::new("requests", Scale::Nines),
        y: Axis::new("latency, ms", Scale::Log),
        series,
    }
}

fn achieved(rows: &[&Row]) -> Plot {
    let mut points: Vec<_> = rows.iter().filter_map(|row| Some((row.asked?, row.achieved))).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let ends: Vec<_> =
        [points.first(), points.last()].into_iter().flatten().map(|end| (end.0, end.0)).collect();
    let wide = points.first().zip(points.last()).is_some_and(|(first, last)| last.0 > 30.0 * first.0);
    let scale = if wide { Scale::Log } else { Scale::Linear };
    Plot {
        title: "Achieved against asked".to_owned(),
        x: Axis::new("asked, requests/s", scale),
        y: Axis::new("achieved, requests/s", scale),
        series: vec![
            Series { name: "achieved".to_owned(), mark: Mark::Dots, colour: 0, points },
            Series { name: "asked".to_owned(), mark: Mark::Dashes, colour: 7, points: ends },
        ],
    }
}

fn errors(rows: &[&Row]) -> Plot {
    let kinds = Failure::NAMES.iter().enumerate();
    let series = kinds
        .filter(|(_, kind)| rows.iter().any(|row| row.failures.contains_key(**kind)))
        .map(|(index, kind)| {
            let share = |row: &Row| {
                100.0 * row.failures.get(*kind).copied().unwrap_or(0) as f64 / row.requests.max(1) as f64
            };
            let points = rows.iter().enumerate().map(|(at, row)| (at as f64 + 1.0, share(row))).collect();
            Series { name: (*kind).to_owned(), mark: Mark::Bars, colour: index, points }
        })
        .collect();
    Plot {
        title: "Errors by kind".to_owned(),
        x: Axis::of_names("asked", rows.iter().map(|row| row.load()).collect()),
        y: Axis::new("% of the requests", Scale::Linear),
        series,
    }
}

fn over_time(row: &Row) -> Plot {
    let line = |name: &str, mark, colour, value: fn(&crate::row::Point) -> Option<f64>| Series {
        name: name.to_owned(),
        mark,
        colour,
        points: row
            .series
            .iter()
            .map(|point| (point.at, value(point).map_or(f64::NAN, |value| value.max(0.001))))
            .collect(),
    };
    Plot {
        title: format!("Latency over time at {}", name(row)),
        x: Axis::new("seconds", Scale::Linear),
        y: Axis::new("latency, ms", Scale::Log),
        series: vec![
            line("p50", Mark::Line, 0, |point| point.p50),
            line("p99", Mark::Line, 1, |point| point.p99),
            line("max", Mark::Dashes, 3, |point| point.max),
        ],
    }
}

fn tester(rows: &[&Row], out: &mut String) {
    *out += "<h2>The tester itself <small>how late it began requests for which a connection was free, ms, and what it \
             used</small></h2>\n<div class=\"scroll\"><table>\n<thead><tr><th>asked</th><th>late p50</th><th>late \
             p99</th><th>late max</th><th>busy</th><th>connections opened</th><th>retries</th><th>most in flight</th><th>had to \
             wait</th></tr></thead>\n<tbody>\n";
    for row in rows {
        let _ = writeln!(out, "<tr><td>{}</td></tr>", tester_cells(row).join("</td><td>"));
    }
    *out += "</tbody>\n</table></div>\n";
}

fn errors_in_words(rows: &[&Row], out: &mut String) {
    if rows.iter().all(|row| row.failures.is_empty()) {
        return;
    }
    *out += "<h2>Errors</h2>\n<ul>\n";
    for row in rows.iter().filter(|row| !row.failures.is_empty()) {
        let texts: Vec<_> =
            row.failure_texts.iter().map(|(text, count)| format!("{count} × {text}")).collect();
        let _ = writeln!(out, "<li>{}: {}</li>", escape(&name(row)), escape(&texts.join(", ")));
    }
    *out += "</ul>\n";
}
