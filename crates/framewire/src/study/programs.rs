//! Programs that the study runs: whether they are there, and ourselves in another role.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::bail;
use framewire_stock::{Process, Signal};

use super::clients::get;

/// What must be installed, and the package it is in.
const NEEDED: [(&str, &str); 3] = [("mgba-qt", "mgba-qt"), ("Xvfb", "xvfb"), ("setpriv", "util-linux")];
/// Longest wait for a program of ours to start.
const START: Duration = Duration::from_secs(20);
const READY: &str = "listening on http://";

/// Refuses a machine on which a program is missing; otherwise says which mGBA there is.
pub fn check() -> anyhow::Result<String> {
    let missing: Vec<_> = NEEDED.iter().filter(|(program, _)| find(program).is_none()).collect();
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|(program, _)| *program).collect();
        let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
        bail!(
            "{} not found; install what is missing: sudo apt install {} (`make study` does it)",
            names.join(", "),
            packages.join(" ")
        );
    }
    let version = find("mgba-qt").and_then(|program| {
        let output =
            Command::new(program).arg("--version").env("QT_QPA_PLATFORM", "offscreen").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // As in: /usr/games/mgba-qt 0.10.1 ((unknown))
        text.split_whitespace().nth(1).map(str::to_owned)
    });
    Ok(format!("mgba-qt {}", version.unwrap_or_else(|| "of unknown version".to_owned())))
}

/// In `PATH`, or in the folder for games, which root's `PATH` lacks.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/games".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Starts this program with other arguments in a folder of its own for its words.
///
/// # Errors
/// If it cannot be started.
pub fn ourselves<A: AsRef<OsStr>>(
    logs: &Path,
    args: impl IntoIterator<Item = A>,
    folder: &Path,
) -> anyhow::Result<Process> {
    // The program that runs, also when its file was replaced by a newer one since.
    let program = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    let process = Process::spawn_path("framewire", &program, logs, |command| {
        command.args(args).current_dir(folder);
        // Settings that are meant for a server of the user's.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("FRAMEWIRE") {
                command.env_remove(name);
            }
        }
    })?;
    Ok(process)
}

/// `framewire serve --attach`, running.
#[derive(Debug)]
pub struct Bridge {
    process: Process,
    address: SocketAddr,
}

impl Bridge {
    /// Starts it in front of the script at `script` and waits until it has a right answer.
    ///
    /// # Errors
    /// If there is none in time.
    pub fn start(script: SocketAddr, logs: &Path) -> anyhow::Result<Bridge> {
        let args = ["serve", "--quiet", "--listen", "127.0.0.1:0", "--attach", &script.to_string()];
        let mut process = ourselves(logs, args, logs)?;
        let address = process.wait_for("framewire served", START, |process| {
            let stdout = process.stdout();
            // Without its end the line may be half a one.
            let complete = stdout.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            Ok(complete.filter_map(|line| line.strip_prefix(READY)?.parse().ok()).next())
        })?;
        let bridge = Bridge { process, address };
        let start = Instant::now();
        while !bridge.answers(START) {
            if start.elapsed() > START {
                bail!("framewire serve --attach {script} does not answer: {}", bridge.process.stderr());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(bridge)
    }

    /// Where it serves.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether a message comes back.
    pub fn answers(&self, limit: Duration) -> bool {
        self.ask(limit).is_ok()
    }

    /// Sends a message; if it does not come back, why.
    pub fn ask(&self, limit: Duration) -> Result<(), String> {
        let text = format!("{:032x}", fastrand::u128(..));
        match get(self.address, &format!("/mgbaendpoint?message={text}"), limit) {
            Ok((200, body)) if body == text => Ok(()),
            Ok((200, _)) => Err("a wrong reply".to_owned()),
            Ok((status, body)) => Err(format!("status {status}: {}", body.trim())),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Sends it a signal and waits for its end; how it ended, and how long that took.
    ///
    /// # Errors
    /// If it does not end in time.
    pub fn end(mut self, signal: Signal) -> anyhow::Result<(String, Duration)> {
        end(&mut self.process, signal)
    }
}

/// Sends a signal and waits for the end; how it ended, and how long that took.
///
/// # Errors
/// If it does not end in time.
pub fn end(process: &mut Process, signal: Signal) -> anyhow::Result<(String, Duration)> {
    let start = Instant::now();
    process.signal(signal)?;
    let status = process.wait_exit(START)?;
    Ok((status.to_string(), start.elapsed()))
}
