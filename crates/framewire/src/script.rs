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
            framewire_files::replace(&path, SCRIPT.as_bytes()).with_context(|| {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_existing_script_is_replaced_and_not_changed_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("framewire.lua"), folder.path().join("link.lua"));
        fs::write(&path, "the user's script").unwrap();
        fs::hard_link(&path, &link).unwrap();
        run(Args { output: Some(path.clone()) }).unwrap();
        assert!(fs::read_to_string(&path).unwrap() == SCRIPT);
        assert_eq!(fs::read_to_string(&link).unwrap(), "the user's script");
    }
}
