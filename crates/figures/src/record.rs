//! The files of results.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::Context;
use framewire_loadtest::report::format;
use framewire_loadtest::report::machine::Machine;
use serde::{Deserialize, Serialize};

use crate::judge::Bound;
use crate::sample::Sample;

/// With what, where and when it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The program and its version.
    pub tool: String,
    /// The state of the source: the commit, with a `+` if files were changed since.
    pub commit: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// Where.
    pub machine: Machine,
    /// The mGBA in the window.
    pub mgba: String,
    /// The library of the core without one.
    pub libmgba: String,
}

/// The table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// With what, where and when.
    pub about: About,
    /// Its lines.
    pub figures: Vec<Figure>,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name, for `--only`.
    pub name: String,
    /// What is measured.
    pub measure: String,
    /// What must be reached.
    pub bounds: Vec<Bound>,
    /// What it is measured beside, if it is.
    pub beside: Option<String>,
    /// Of that, run by run; each was made right before ours of the same place.
    pub other: Vec<Sample>,
    /// Ours, run by run.
    pub ours: Vec<Sample>,
    /// What was missed, in words.
    pub missed: Vec<String>,
}

impl About {
    /// Of now.
    pub fn new() -> About {
        let command = std::iter::once("framewire-figures".to_owned()).chain(std::env::args().skip(1));
        About {
            tool: format!("framewire-figures {}", env!("CARGO_PKG_VERSION")),
            commit: commit(),
            command: command.collect(),
            started: format::time(SystemTime::now()),
            machine: Machine::here(),
            mgba: mgba(),
            libmgba: framewire_libmgba::version().to_string(),
        }
    }
}

fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output =
            Command::new("git").args(args).current_dir(framewire_e2e::paths::root()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "--short=12", "HEAD"])?;
    // What the result depends on, not the pages that are made of it.
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", "crates", "lua", "rom"])?;
    Some(if changed.is_empty() { head } else { head + "+" })
}

/// As mGBA itself says it: `mgba-qt 0.10.1`.
fn mgba() -> String {
    let output = ["mgba-qt", "/usr/games/mgba-qt"].iter().find_map(|program| {
        Command::new(program).arg("--version").env("QT_QPA_PLATFORM", "offscreen").output().ok()
    });
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    format!("mgba-qt {}", text.split_whitespace().nth(1).unwrap_or("of unknown version"))
}

/// Writes a result.
///
/// # Errors
/// If it cannot be written.
pub fn write<T: Serialize>(path: &Path, record: &T) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(record)? + "\n";
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
