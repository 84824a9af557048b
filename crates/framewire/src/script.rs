//! `framewire script`: prints the Lua script for mGBA, which is built into this program.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use framewire_script::SCRIPT;

use crate::output;

/// Arguments of `framewire script`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write the script to this file instead of printing it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Prints the script or writes it to a file.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.output {
        Some(path) => {
            std::fs::write(&path, SCRIPT).with_context(|| {
                format!("cannot write {}; name a file in a folder you may write to", path.display())
            })?;
            output::notice(format_args!(
                "wrote {}; in mGBA: Tools > Scripting... > File > Load script, with a ROM loaded",
                path.display()
            ));
        }
        None => output::text(SCRIPT).context("cannot print the script")?,
    }
    Ok(ExitCode::SUCCESS)
}
