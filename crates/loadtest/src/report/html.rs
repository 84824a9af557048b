//! The report as one HTML page, in light and dark colours. The page has no scripts and loads no other files.

use std::fmt::Write;

use super::Report;
use super::format::rate;
use super::parts::{Kind, errors, notices, tables};
use super::plot::{Axis, Mark, Plot, Scale, Series, escape};
use crate::row::{Point, Row, Summary};
use crate::target::Failure;

const STYLE: &str = include_str!("page.css");

/// Creates the page.
pub fn page(report: &Report) -> String {
    let rows = report.shown();
    let title = escape(&format!("Load test of {}", report.target.url));
    let mut body = String::new();
    for notice in notices(report, &rows) {
        let class = match notice.kind {
            Kind::Good => "good",
            Kind::Warning => "warn",
            Kind::Bad => "bad",
        };
        body += &format!("<p class=\"notice {class}\">{}</p>\n", escape(&notice.text));
    }
    for part in tables(report, &rows) {
        body += &format!("<h2>{} <small>{}</small></h2>\n{}", part.heading, part.remark, part.table.html());
    }
    body += &plots(&rows);
    let errors = errors(&rows);
    if !errors.is_empty() {
        let lines: String = errors
            .into_iter()
            .flat_map(|(row, texts)| [row].into_iter().chain(texts))
            .map(|line| format!("<li>{}</li>\n", escape(&line)))
            .collect();
        body += &format!("<h2>Errors</h2>\n<ul>\n{lines}</ul>\n");
    }
    let facts = [
        ("Command", format!("<code>{}</code>", escape(&report.command.join(" ")))),
        ("Program", escape(&report.tool)),
        ("Began", escape(&report.started)),
        ("Machine", escape(&report.machine.summary())),
    ];
    let facts: String = facts.map(|(name, value)| format!("<dt>{name}</dt><dd>{value}</dd>\n")).concat();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n<p class=\"how\">{}</p>\n{body}<h2>How it was measured</h2>\n<dl>\n{facts}</dl>\n\
         </main>\n</body>\n</html>\n",
        escape(&report.summary()),
    )
}

fn plots(rows: &[&Row]) -> String {
    let mut out = "<div class=\"plots\">\n".to_owned();
    figure("Latency by percentile of the requests", &percentiles(rows), &mut out);
    if rows.iter().filter(|row| row.asked.is_some()).count() > 1 {
        figure("Achieved against asked", &achieved(rows), &mut out);
    }
    if rows.iter().any(|row| !row.failures.is_empty()) {
        figure("Errors", &failures(rows), &mut out);
    }
    for row in rows {
        figure(&format!("Latency over time at {}", name(row)), &over_time(row), &mut out);
        if row.series.iter().any(|point| point.asked.is_some()) {
            figure(&format!("Rate over time at {}", name(row)), &rate_over_time(row), &mut out);
        }
    }
    out + "</div>\n"
}

/// A row's name in legends, captions and titles.
fn name(row: &Row) -> String {
    match row.asked {
        Some(asked) => format!("{}/s", rate(asked)),
        None => row.load(),
    }
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

fn failures(rows: &[&Row]) -> Plot {
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
    let line = |name: &str, mark, colour, value: fn(&Point) -> Option<f64>| {
        // A value of 0 has no place on a logarithmic axis.
        series_of(row, name, mark, colour, |point| value(point).map(|value| value.max(0.001)))
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

fn rate_over_time(row: &Row) -> Plot {
    Plot {
        title: format!("Rate over time at {}", name(row)),
        x: Axis::new("seconds", Scale::Linear),
        y: Axis::new("requests/s", Scale::Linear),
        series: vec![
            series_of(row, "correct replies", Mark::Line, 0, |point| Some(point.rate)),
            series_of(row, "asked", Mark::Dashes, 7, |point| point.asked),
        ],
    }
}

/// A line with one value for each interval of the run.
fn series_of(
    row: &Row,
    name: &str,
    mark: Mark,
    colour: usize,
    value: impl Fn(&Point) -> Option<f64>,
) -> Series {
    let points = row.series.iter().map(|point| (point.at, value(point).unwrap_or(f64::NAN))).collect();
    Series { name: name.to_owned(), mark, colour, points }
}
