//! Runs `framewire bench` as a child process.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use framewire_lab::Framewire;
use framewire_loadtest::report::Report;
use framewire_loadtest::{Stop, Strategy};
use tempfile::TempDir;

/// The time that the command may take in addition to the load, for the program's start and for late replies.
const SLACK: Duration = Duration::from_secs(60);
/// The time between two checks of whether the command has ended.
const PERIOD: Duration = Duration::from_millis(50);

/// The load of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// This many requests per second.
    Rate(u32),
    /// This many clients. Each sends its next request after the reply to its previous one.
    Clients(usize),
}

/// A command line of `framewire bench`.
#[derive(Debug, Clone)]
pub struct Bench {
    /// The target's address, and options that belong to it.
    pub target: Vec<String>,
    /// How sockets are used; `None` if the target is a core in the process of `framewire bench`.
    pub strategy: Option<Strategy>,
    /// The load of the run.
    pub load: Load,
    /// The payload: the value of `--payload`.
    pub payload: String,
    /// How long the load lasts.
    pub length: Duration,
    /// Where `framewire bench` reads the frame number: the value of `--emulator`.
    pub counter: String,
    /// Further options.
    pub options: Vec<String>,
    /// The largest number of runs that the command makes. It limits the time that the command may take.
    pub runs: u32,
}

impl Bench {
    /// One run on a pool of connections, at this rate and without a frame counter.
    pub fn pool(target: Vec<String>, rate: u32, payload: &str, length: Duration) -> Bench {
        Bench {
            target,
            strategy: Some(Strategy::Pool),
            load: Load::Rate(rate),
            payload: payload.to_owned(),
            length,
            counter: "none".to_owned(),
            options: Vec::new(),
            runs: 1,
        }
    }

    /// The arguments of the program, without the option for the report's file.
    pub fn command(&self) -> Vec<String> {
        let mut words = vec!["bench".to_owned()];
        words.extend(self.target.iter().cloned());
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(strategy) = self.strategy {
            option("--strategy", strategy.to_string());
        }
        match self.load {
            Load::Rate(rate) => option("--rates", rate.to_string()),
            Load::Clients(clients) => option("--concurrency", clients.to_string()),
        }
        option("--duration", humantime::format_duration(self.length).to_string().replace(' ', ""));
        option("--payload", self.payload.clone());
        option("--emulator", self.counter.clone());
        words.extend(self.options.iter().cloned());
        // The check would open a connection before the load begins, so the target would no longer be cold.
        words.extend(["--skip-check".to_owned(), "--quiet".to_owned()]);
        words
    }

    /// Runs the command to its end and returns its report. Returns `None` if the run was ended early, for instance by
    /// `stop`.
    ///
    /// # Errors
    /// If the command does not start, does not end in time, or does not write a report.
    pub fn run(&self, stop: &Stop) -> anyhow::Result<Option<Report>> {
        let folder = TempDir::new().context("no folder for a report")?;
        let mut command = self.command();
        command.extend(["--json".to_owned(), "report.json".to_owned()]);
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        let mut process = Framewire::start(folder.path(), &command)?;
        let (start, limit) = (Instant::now(), self.length * self.runs + SLACK);
        let status = loop {
            if stop.stopped() {
                process.kill();
                return Ok(None);
            }
            match process.wait_exit(PERIOD) {
                Ok(status) => break status,
                Err(framewire_lab::Error::Timeout { .. }) if start.elapsed() < limit => {}
                Err(framewire_lab::Error::Timeout { what, .. }) => {
                    return Err(framewire_lab::Error::Timeout { what, after: limit }.into());
                }
                Err(error) => return Err(error.into()),
            }
        };
        let text = fs::read_to_string(folder.path().join("report.json")).unwrap_or_default();
        let Ok(report) = Report::from_json(&text) else {
            bail!("framewire bench ended with {status}: {}", process.stderr().trim());
        };
        if report.cut_short { Ok(None) } else { Ok(Some(report)) }
    }
}
