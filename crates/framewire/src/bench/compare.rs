//! `framewire bench compare`: two reports side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use framewire_loadtest::compare::{self, FailOn, METRICS, Pair};
use framewire_loadtest::report::Report;
use framewire_loadtest::report::table::Table;

/// Arguments of `framewire bench compare`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The report to compare with
    #[arg(value_name = "BEFORE.json")]
    before: PathBuf,
    /// The report to judge
    #[arg(value_name = "AFTER.json")]
    after: PathBuf,
    /// A change that makes the exit code 1, such as p99>+10%, achieved<-5% or p99>40ms; may be given again
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    fail_on: Vec<FailOn>,
}

/// Prints a table for each load that both hold, and which rules were broken.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let pairs = compare::pairs(&before, &after);
    if pairs.is_empty() {
        bail!("the two reports have no load in common; measure both with the same --rates or --concurrency");
    }
    for pair in &pairs {
        print(pair);
    }
    for doubt in compare::doubts(&before, &after) {
        println!("Not the same: {doubt}");
    }
    let broken: Vec<_> =
        pairs.iter().flat_map(|pair| args.fail_on.iter().filter_map(|rule| pair.fails(rule))).collect();
    for rule in &broken {
        println!("Failed: {rule}");
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(path: &Path) -> anyhow::Result<Report> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Report::from_json(&text).with_context(|| format!("cannot use {}", path.display()))
}

fn print(pair: &Pair<'_>) {
    let mut table = Table::new(&[&format!("<{}", pair.after.load()), "before", "after", "change"]);
    for metric in METRICS {
        if let Some((before, after, change)) = pair.change(metric) {
            let change = format!("{change:+.1}%");
            table.row([metric.to_string(), metric.show(before), metric.show(after), change]);
        }
    }
    println!("{}", table.finish());
}
