//! `framewire-lab`: measures the figures in Framewire's documents, on this machine.
//!
//! - [`figures`]: the table of figures in docs/performance.md, and the long run;
//! - [`study`]: repeats the load-test study of 2025;
//! - [`setup`]: an emulator that runs a script; [`frames`]: its frame rate; [`programs`]: programs that must be
//!   installed;
//! - [`bench`]: runs `framewire bench`; [`stampede`]: many clients that connect at once.

mod bench;
mod figures;
mod frames;
mod programs;
mod setup;
mod stampede;
mod study;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};

use figures::{Extent, page, record, soak};

/// Measures the figures in Framewire's documents, on this machine.
///
/// It opens mGBA windows on virtual displays of its own. Run it on a machine that does nothing else.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure the table of figures, for Framewire and for its alternatives.
    Table {
        /// Measure each line once, most of them for 5 s
        #[arg(long)]
        quick: bool,
        /// Measure only these lines
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        only: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Send requests of mixed sizes to `framewire serve --attach` for a long time, and watch memory and frame rate.
    Soak {
        /// Length of the run
        #[arg(long, value_name = "MINUTES", default_value_t = 10.0)]
        minutes: f64,
        /// Requests per second
        #[arg(long, default_value_t = 2000)]
        rate: u32,
        #[command(flatten)]
        output: Output,
    },
    /// Repeat the load-test study of 2025 and write a page about it.
    Study(study::Args),
}

/// Where the results go.
#[derive(Debug, clap::Args)]
struct Output {
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the results into this Markdown page: those of `table` between `<!-- table -->` and `<!-- /table -->`,
    /// those of `soak` between `<!-- soak -->` and `<!-- /soak -->`
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

fn main() -> ExitCode {
    run(Cli::parse().command).unwrap_or_else(|error| {
        eprintln!("framewire-lab: {error:#}");
        ExitCode::from(2)
    })
}

/// Exit code 1 means that a figure missed its bound or could not be measured, or that a rerun of the study does not
/// agree with the study.
fn run(command: Command) -> anyhow::Result<ExitCode> {
    let (text, mark, met) = match command {
        Command::Table { quick, only, output } => {
            let extent = if quick { Extent::QUICK } else { Extent::FULL };
            let record = figures::measure(&only, extent)?;
            let table = page::table(&record);
            output.write(&record, "table", &table)?;
            (table, "table", record.figures.iter().all(|figure| figure.missed.is_empty()))
        }
        Command::Soak { minutes, rate, output } => {
            let length = Duration::try_from_secs_f64(60.0 * minutes)
                .with_context(|| format!("--minutes is {minutes}; use a number such as 10"))?;
            let record = soak::run(length, rate)?;
            let table = page::soak(&record);
            output.write(&record, "soak", &table)?;
            (table, "soak", record.missed.is_empty())
        }
        Command::Study(args) => return study::run(&args),
    };
    println!("{text}");
    println!("{mark}: {}", if met { "all bounds were met" } else { "some bounds were missed" });
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Output {
    fn write<T: serde::Serialize>(&self, record: &T, mark: &str, text: &str) -> anyhow::Result<()> {
        if let Some(path) = &self.json {
            record::write(path, record)?;
        }
        if let Some(path) = &self.page {
            page::insert(path, mark, text)?;
        }
        Ok(())
    }
}

/// This process's command line, with the program's name instead of its path.
fn command_line() -> Vec<String> {
    std::iter::once("framewire-lab".to_owned()).chain(std::env::args().skip(1)).collect()
}
