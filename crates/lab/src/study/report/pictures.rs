//! Makes the plots of the page `docs/study.md`. "The study" is the load-test study of 2025, whose versions and figures
//! are in `study/figures.rs`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context;
use framewire_loadtest::Strategy;
use framewire_loadtest::report::plot::{Axis, Mark, Plot, Scale, Series};
use framewire_loadtest::row::Row;

use super::evidence::Evidence;
use super::svg;
use crate::bench::Load;
use crate::setup::Script;
use crate::study::figures::{VERSIONS, Version};
use crate::study::plan;
use crate::study::steps::Target;

/// The pictures of the share of failed requests in versions 4 and 5, at all rates.
pub const FAILURES: [(&str, Strategy); 2] =
    [("v4-failures", Strategy::PerRequest), ("v5-failures", Strategy::Pool)];
/// The picture of clients that connect at once.
pub const STAMPEDE: &str = "stampede";
/// The picture of latency by rate, for all targets.
pub const RATES: &str = "rates";
/// The picture of latency by percentile, at the rate of the study's goal.
pub const GOAL: &str = "goal";
/// The rate of the study's goal, in requests per second.
pub const GOAL_RATE: u32 = 5;

/// The number of the colour for the figures of 2025.
const THEN: usize = 7;
/// The number of the colour for the study's kind of script.
const STUDY: usize = 3;
/// The number of the colour for Framewire's script.
const OURS: usize = 0;
/// The smallest value on a logarithmic axis, in ms.
const LEAST: f64 = 0.01;

/// A function that returns a figure of a row.
type Value = fn(&Row) -> f64;
/// A function that says whether a row belongs to a line of the plot. Its arguments are the group of the row's step, and
/// the row's target.
type RowFilter = fn(&str, Target) -> bool;

/// Writes all pictures that have something to show, and removes the others.
pub fn write(evidence: &Evidence, folder: &Path) -> anyhow::Result<()> {
    let failures = FAILURES.map(|(name, _)| name);
    let others = failures.into_iter().chain([STAMPEDE, RATES, GOAL]);
    let names = VERSIONS.iter().map(|version| version.name).chain(others);
    for name in names {
        let path = folder.join(format!("{name}.svg"));
        match plot(evidence, name) {
            Some(plot) => fs::write(&path, svg::file(&plot)),
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
        .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// A picture as Markdown, or an empty string if there is nothing to show.
pub fn embed(evidence: &Evidence, name: &str) -> String {
    let plot = plot(evidence, name);
    plot.map_or(String::new(), |plot| format!("\n![{}]({}/{name}.svg)\n", plot.title, evidence.link))
}

fn plot(evidence: &Evidence, name: &str) -> Option<Plot> {
    let plot = match name {
        STAMPEDE => stampede(evidence),
        RATES => rates(evidence),
        GOAL => goal(evidence),
        _ => match FAILURES.iter().find(|failures| failures.0 == name) {
            Some((_, strategy)) => failures(evidence, *strategy)?,
            None => version(evidence, VERSIONS.iter().find(|version| version.name == name)?),
        },
    };
    // If there are only the figures of 2025, there is no picture.
    plot.series.iter().any(|series| series.colour != THEN && !series.points.is_empty()).then_some(plot)
}

fn series(name: &str, mark: Mark, colour: usize, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.to_owned(), mark, colour, points }
}

/// Adds to each value its position on the horizontal axis: 1, 2, 3 and so on.
fn places<T>(values: impl IntoIterator<Item = T>) -> impl Iterator<Item = (f64, T)> {
    values.into_iter().enumerate().map(|(place, value)| (place as f64 + 1.0, value))
}

fn version(evidence: &Evidence, version: &Version) -> Plot {
    let names = version.rows.iter().map(|row| match row.bytes {
        Some(bytes) => format!("{} ({bytes} B)", row.asked),
        None => row.asked.to_string(),
    });
    let measured = |script, value: Value| -> Vec<_> {
        places(version.rows)
            .filter_map(|(place, row)| Some((place, evidence.version(version.name, script, row).row?)))
            .filter(|(_, row)| row.intended.count > 0)
            .map(|(place, row)| (place, value(row).max(LEAST)))
            .collect()
    };
    let mean: Value = |row| row.intended.mean;
    let max: Value = |row| row.intended.max;
    let then = |value: fn(&crate::study::figures::Published) -> f64| {
        places(version.rows).map(|(place, row)| (place, value(row))).collect()
    };
    Plot {
        title: format!("{}: latency by rate", short(version)),
        x: Axis::of_names("asked, requests/s", names.collect()),
        y: Axis::new("latency, ms", Scale::Log),
        series: vec![
            series("2025, mean", Mark::Dots, THEN, then(|row| row.mean)),
            series("2025, max", Mark::Dashes, THEN, then(|row| row.max)),
            series("study's kind, mean", Mark::Dots, STUDY, measured(Script::Study, mean)),
            series("study's kind, max", Mark::Dashes, STUDY, measured(Script::Study, max)),
            series("Framewire, mean", Mark::Dots, OURS, measured(Script::Ours, mean)),
            series("Framewire, max", Mark::Dashes, OURS, measured(Script::Ours, max)),
        ],
    }
}

fn failures(evidence: &Evidence, strategy: Strategy) -> Option<Plot> {
    let version = VERSIONS.iter().find(|version| version.strategy == strategy)?;
    let (_, beyond) = plan::BEYOND.iter().find(|beyond| beyond.0 == strategy)?;
    let names = version.rows.iter().map(|row| row.asked).chain(beyond.iter().copied());
    let measured = |script| {
        let rows = version.rows.iter().map(|row| evidence.version(version.name, script, row));
        let rows = rows
            .chain(beyond.iter().map(|rate| evidence.measured(plan::beyond_row(script, strategy, *rate))));
        places(rows).filter_map(|(place, measured)| Some((place, 100.0 - measured.row?.success))).collect()
    };
    let then = places(version.rows).map(|(place, row)| (place, 100.0 - row.success)).collect();
    Some(Plot {
        title: format!("{}: requests without a correct reply", short(version)),
        x: Axis::of_names("asked, requests/s", names.map(|rate| rate.to_string()).collect()),
        y: Axis::new("% of the requests", Scale::Linear),
        series: vec![
            series("2025", Mark::Dots, THEN, then),
            series("study's kind", Mark::Dots, STUDY, measured(Script::Study)),
            series("Framewire", Mark::Dots, OURS, measured(Script::Ours)),
        ],
    })
}

/// The short title of a version, such as `Version 4`.
fn short(version: &Version) -> &'static str {
    version.title.split(':').next().unwrap_or(version.title)
}

fn stampede(evidence: &Evidence) -> Plot {
    let line = |script, clients, name: &str, mark, colour| {
        let result = evidence.stampede(script, clients);
        let points = result.into_iter().flat_map(|result| places(result.answered));
        series(name, mark, colour, points.map(|(place, time)| (place, time.max(LEAST))).collect())
    };
    Plot {
        title: "Clients that connect at once: time until each was answered".to_owned(),
        x: Axis::new("clients answered so far", Scale::Linear),
        y: Axis::new("ms from the common start", Scale::Log),
        series: vec![
            line(Script::Study, 20, "study's kind, 20 clients", Mark::Dashes, STUDY),
            line(Script::Study, 100, "100 clients", Mark::Dots, STUDY),
            line(Script::Ours, 20, "Framewire, 20 clients", Mark::Dashes, OURS),
            line(Script::Ours, 100, "100 clients", Mark::Dots, OURS),
        ],
    }
}

fn rates(evidence: &Evidence) -> Plot {
    let lines: [(&str, usize, RowFilter); 5] = [
        ("study's kind, version 7", STUDY, |group, target| group == "v7" && target.is_window(Script::Study)),
        ("Framewire, version 7", OURS, |group, target| group == "v7" && target.is_window(Script::Ours)),
        ("Framewire, one link", 2, |group, target| group == "mux" && target.is_window(Script::Ours)),
        ("Framewire, HTTP", 1, |_, target| target == Target::Bridge),
        ("embedded", 4, |_, target| target == Target::Embedded),
    ];
    let lines = lines.into_iter().flat_map(|(name, colour, includes)| {
        let points = |value: Value| {
            let rows = evidence
                .runs()
                .filter(|(step, run, _)| run.bytes.is_none() && includes(step.group, run.target));
            let points = rows.filter_map(|(_, run, row)| match run.load {
                Load::Rate(rate) if row.intended.count > 0 => Some((f64::from(rate), value(row).max(LEAST))),
                _ => None,
            });
            points.collect()
        };
        [
            series(&format!("{name}, mean"), Mark::Dots, colour, points(|row| row.intended.mean)),
            series("p99", Mark::Dashes, colour, points(|row| row.intended.p99)),
        ]
    });
    Plot {
        title: "Latency by rate, UUIDs".to_owned(),
        x: Axis::new("asked, requests/s", Scale::Log),
        y: Axis::new("latency, ms", Scale::Log),
        series: lines.collect(),
    }
}

fn goal(evidence: &Evidence) -> Plot {
    let load = Load::Rate(GOAL_RATE);
    let rows = [
        ("study's kind, version 7", STUDY, plan::version_row("v7", Script::Study, None, GOAL_RATE)),
        ("Framewire, version 7", OURS, plan::version_row("v7", Script::Ours, None, GOAL_RATE)),
        ("Framewire, one link", 2, plan::row(plan::MUX_OURS, None, load)),
        ("Framewire, HTTP", 1, plan::row("bridge", None, load)),
    ];
    let lines = rows.into_iter().map(|(name, colour, row)| {
        let curve = evidence.row(&row).map(|row| row.intended.curve.as_slice()).unwrap_or_default();
        series(
            name,
            Mark::Line,
            colour,
            curve.iter().map(|(percent, time)| (*percent, time.max(LEAST))).collect(),
        )
    });
    let limit = vec![(0.0, super::GOAL_MS), (100.0, super::GOAL_MS)];
    Plot {
        title: format!("The goal of 2025: {GOAL_RATE} requests/s"),
        x: Axis::new("share of the requests", Scale::Nines),
        y: Axis::new("latency that they did not exceed, ms", Scale::Log),
        series: lines.chain([series("the goal for all", Mark::Dashes, THEN, limit)]).collect(),
    }
}
