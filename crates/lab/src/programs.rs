//! The programs that a measurement needs.

use std::process::Command;

use anyhow::bail;
use framewire_lab::Process;

/// The programs that must be installed, each with its Debian package.
const NEEDED: [(&str, &str); 3] = [("mgba-qt", "mgba-qt"), ("Xvfb", "xvfb"), ("setpriv", "util-linux")];

/// Checks that all programs are installed.
///
/// # Errors
/// If programs are missing. The error names the packages to install.
pub fn check() -> anyhow::Result<()> {
    let missing = NEEDED.into_iter().filter(|(program, _)| Process::find(program).is_none());
    let (names, packages): (Vec<_>, Vec<_>) = missing.unzip();
    if !names.is_empty() {
        bail!(
            "{} not found; install the missing packages: sudo apt install {} (`make study` also installs them)",
            names.join(", "),
            packages.join(" ")
        );
    }
    Ok(())
}

/// The name and version of the installed mGBA, such as `mgba-qt 0.10.1`.
pub fn mgba() -> String {
    let version = Process::find("mgba-qt").and_then(|program| {
        let output =
            Command::new(program).arg("--version").env("QT_QPA_PLATFORM", "offscreen").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Example of the text: /usr/games/mgba-qt 0.10.1 ((unknown))
        text.split_whitespace().nth(1).map(str::to_owned)
    });
    format!("mgba-qt {}", version.unwrap_or_else(|| "of unknown version".to_owned()))
}
