//! `framewire bench compare`: compares two reports.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use framewire_loadtest::compare::{self, FailOn, METRICS, Pair};
use framewire_loadtest::report::Report;
use framewire_loadtest::report::table::Table;

use crate::output;

/// The largest report that is read, in bytes. Its chart has one point for each second of a run, and a point has about
/// 200 bytes.
const MAX_REPORT: u64 = 256 << 20;

/// Arguments of `framewire bench compare`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The report to compare with
    #[arg(value_name = "BEFORE.json")]
    before: PathBuf,
    /// The report to judge
    #[arg(value_name = "AFTER.json")]
    after: PathBuf,
    /// A change or a value that makes the exit code 1, such as p99>+10%, achieved<-5% or p99>40ms; can be repeated
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    fail_on: Vec<FailOn>,
}

/// Prints a table for each load that both reports have, what differs, and which rules were broken. The exit code is 1
/// if a rule was broken. With rules, it is also 1 if the second report lacks a load of the first one.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let matched = compare::matched(&before, &after);
    if matched.pairs.is_empty() {
        bail!("the two reports have no load in common; measure both with the same --rates or --concurrency");
    }
    for pair in &matched.pairs {
        print(pair)?;
    }
    for row in &matched.only_before {
        output::line(format_args!("Only in the first report: {}", row.load()))?;
    }
    for row in &matched.only_after {
        output::line(format_args!("Only in the second report: {}", row.load()))?;
    }
    for difference in compare::differences(&before, &after) {
        output::line(format_args!("Not the same: {difference}"))?;
    }
    for doubt in compare::doubts(&before, &after) {
        output::line(format_args!("Caution: {doubt}"))?;
    }
    let rules = &args.fail_on;
    let mut broken: Vec<_> =
        matched.pairs.iter().flat_map(|pair| rules.iter().filter_map(|rule| pair.fails(rule))).collect();
    if !rules.is_empty() {
        // A rule must not pass only because the second report lacks the row that would break it.
        let gone = matched.only_before.iter();
        broken.extend(gone.map(|row| format!("{}: the second report does not have this load", row.load())));
    }
    for rule in &broken {
        output::line(format_args!("Failed: {rule}"))?;
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(path: &Path) -> anyhow::Result<Report> {
    let text = framewire_files::read_text(path, MAX_REPORT)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Report::from_json(&text).with_context(|| format!("cannot use {}", path.display()))
}

fn print(pair: &Pair<'_>) -> io::Result<()> {
    // The `<` aligns the first column to the left.
    let mut table = Table::new(&[&format!("<{}", pair.after.load()), "before", "after", "change"]);
    for metric in METRICS {
        if let Some((before, after, change)) = pair.change(metric) {
            let change = format!("{change:+.1}%");
            table.row([metric.to_string(), metric.show(before), metric.show(after), change]);
        }
    }
    output::line(table.markdown())
}
