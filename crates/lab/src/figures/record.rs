//! The result files of the table in docs/performance.md, and of the long run (`make soak`).

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use framewire_loadtest::report::format;
use framewire_loadtest::report::machine::Machine;
use serde::{Deserialize, Serialize};

use super::judge::Bound;
use super::sample::Sample;
use crate::programs;

/// The program, the machine and the time of the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The program and its version.
    pub tool: String,
    /// The commit of the source code, with a `+` if the code has changed since; `None` if git cannot report it.
    pub commit: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// When the measurement began, in UTC and the format of RFC 3339.
    pub started: String,
    /// The machine.
    pub machine: Machine,
    /// The name and version of the installed stock mGBA.
    pub mgba: String,
    /// The version of libmgba in the embedded core.
    pub libmgba: String,
}

/// The results of the whole table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The program, the machine and the time.
    pub about: Provenance,
    /// The lines of the table.
    pub figures: Vec<Figure>,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name, for `--only`.
    pub name: String,
    /// What is measured.
    pub measure: String,
    /// The bounds that Framewire must meet.
    pub bounds: Vec<Bound>,
    /// The alternative with which Framewire is compared, if there is one.
    pub alternative: Option<String>,
    /// Runs of the alternative. Each was made directly before the run of Framewire with the same index.
    pub other: Vec<Sample>,
    /// Runs of Framewire.
    pub ours: Vec<Sample>,
    /// The bounds that were missed, as sentences.
    pub missed: Vec<String>,
}

impl Provenance {
    /// Describes a measurement that begins now.
    pub fn new() -> Provenance {
        Provenance {
            tool: format!("framewire-lab {}", env!("CARGO_PKG_VERSION")),
            commit: commit(),
            command: crate::command_line(),
            started: format::now(),
            machine: Machine::here(),
            mgba: programs::mgba(),
            libmgba: framewire_libmgba::version(),
        }
    }
}

fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output =
            Command::new("git").args(args).current_dir(framewire_lab::paths::root()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "--short=12", "HEAD"])?;
    // These contain the code that is measured. The pages that are generated from the result are not among them.
    let code = ["crates", "lua", "rom", "benches/bare.c", "tools/libmgba.sh", "Cargo.toml", "Cargo.lock"];
    let status = ["status", "--porcelain", "--untracked-files=no", "--"];
    let changed = git(&[&status[..], &code[..]].concat())?;
    Some(if changed.is_empty() { head } else { head + "+" })
}

/// Writes a result as JSON.
pub fn write<T: Serialize>(path: &Path, record: &T) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(record)? + "\n";
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
