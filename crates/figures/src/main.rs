//! `framewire-figures`: measures what is claimed of the link and of the embedded core, and says what was missed.
//!
//! - [`figures`]: the table: what is measured, beside what, and what must be reached;
//! - [`stand`]: a stock mGBA's window or a core without one, with a script loaded; [`frames`]: its frame rate meanwhile;
//! - [`text`], [`bench`], [`stampede`], [`wrk`], [`bare`]: ways of measuring;
//! - [`sample`]: what a run gave; [`judge`]: whether that is enough;
//! - [`soak`]: the long run; [`processes`]: memory and time of a process;
//! - [`record`]: the file of results; [`page`]: the same for people.

mod bare;
mod bench;
mod figures;
mod frames;
mod judge;
mod page;
mod processes;
mod record;
mod sample;
mod soak;
mod stampede;
mod stand;
mod text;
mod wrk;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use figures::Extent;

/// Measures what is claimed of Framewire, on this machine.
///
/// It opens mGBA in windows of its own on displays of its own, and wants a machine that does nothing else.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The table: each line beside what people have otherwise.
    Table {
        /// Runs of 5 s, once each
        #[arg(long)]
        quick: bool,
        /// Measure only these lines
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        only: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
    /// The long run: requests of mixed sizes through the bridge, with memory and frame rate watched.
    Soak {
        /// Its length
        #[arg(long, value_name = "MINUTES", default_value_t = 10.0)]
        minutes: f64,
        /// Requests a second
        #[arg(long, default_value_t = 2000)]
        rate: u32,
        #[command(flatten)]
        output: Output,
    },
}

/// Where the results go.
#[derive(Debug, clap::Args)]
struct Output {
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put the results between their marks in this page
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

fn main() -> ExitCode {
    run(Cli::parse().command).unwrap_or_else(|error| {
        eprintln!("framewire-figures: {error:#}");
        ExitCode::from(2)
    })
}

/// Exit code 1 means that something was missed.
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
            let record = soak::run(Duration::from_secs_f64(60.0 * minutes), rate)?;
            let table = page::soak(&record);
            output.write(&record, "soak", &table)?;
            (table, "soak", record.missed.is_empty())
        }
    };
    println!("{text}");
    println!("{mark}: {}", if met { "everything was reached" } else { "something was missed" });
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
