//! `framewire man`: the manual pages, for packages. They come from the same definitions as `--help`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use crate::Cli;

/// Arguments of `framewire man`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder; it is created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes a page for the program and one for each subcommand.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let shown = args.folder.display();
    std::fs::create_dir_all(&args.folder).with_context(|| format!("cannot create {shown}"))?;
    clap_mangen::generate_to(Cli::command(), &args.folder)
        .with_context(|| format!("cannot write the pages into {shown}"))?;
    Ok(ExitCode::SUCCESS)
}
