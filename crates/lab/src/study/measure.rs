//! Does the steps that are left, one after another, each in the window that it needs.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use framewire_lab::Framewire;
use framewire_loadtest::Stop;
use framewire_loadtest::report::Report;
use framewire_loadtest::report::format::{millis, percent, rate};
use tempfile::TempDir;

use super::archive::Archive;
use super::ending;
use super::progress::{Progress, say, words};
use super::results::Stampede;
use super::steps::{Kind, Run, Step, Target};
use super::window::StudyWindow;
use crate::bench::Bench;
use crate::setup::Script;
use crate::stampede;

/// Pause between two steps.
const REST: Duration = Duration::from_millis(500);
/// How many times a step is tried; one that fails is tried again in a new window.
const TRIES: u32 = 2;

/// Does the steps that are left.
pub struct Measure<'a> {
    archive: &'a mut Archive,
    row: Duration,
    idle: Duration,
    stop: &'a Stop,
    files: TempDir,
    window: Option<StudyWindow>,
    bridge: Option<Framewire>,
}

impl<'a> Measure<'a> {
    /// Rows of length `row`, connections kept idle for at least `idle`.
    ///
    /// # Errors
    /// Without a folder for temporary files.
    pub fn new(
        archive: &'a mut Archive,
        row: Duration,
        idle: Duration,
        stop: &'a Stop,
    ) -> anyhow::Result<Self> {
        let files = TempDir::with_prefix("framewire-study-").context("no folder for temporary files")?;
        Ok(Measure { archive, row, idle, stop, files, window: None, bridge: None })
    }

    /// Does all of `steps` that have no result yet, until it is stopped.
    ///
    /// # Errors
    /// At the first step that cannot be done.
    pub fn all(&mut self, steps: &[Step]) -> anyhow::Result<()> {
        let (done, todo): (Vec<_>, Vec<_>) =
            steps.iter().cloned().partition(|step| self.archive.is_done(step));
        let mut progress = Progress::start(&todo, done.len(), self.row);
        for step in &todo {
            if self.stop.stopped() {
                break;
            }
            progress.begin();
            if let Some(line) = self.try_step(step)? {
                progress.end(step, &line);
            }
            self.sleep(REST);
        }
        Ok(())
    }

    /// Does a step; what to say of it, or `None` if it was stopped.
    fn try_step(&mut self, step: &Step) -> anyhow::Result<Option<String>> {
        let mut tries = 0;
        loop {
            tries += 1;
            let result = self.prepare(step).and_then(|()| self.step(step));
            match result {
                Err(_) if self.stop.stopped() => return Ok(None),
                Err(error) if tries < TRIES => {
                    say(&format!("{}: {error:#}; once more in a new window", step.name));
                    self.close();
                }
                result => return result.with_context(|| format!("{} cannot be done", step.name)),
            }
        }
    }

    /// Has the window that a step needs, in good health, and no other.
    fn prepare(&mut self, step: &Step) -> anyhow::Result<()> {
        let is_bridged = matches!(&step.kind, Kind::Run(Run { target: Target::Bridge, .. }));
        if !is_bridged {
            self.bridge = None;
        }
        let kept = self.window.as_ref().filter(|window| Some(window.script()) == step.window());
        if kept.is_some_and(|window| !window.is_healthy()) {
            say("the script does not answer any more; a new window");
            self.close();
        } else if kept.is_none() {
            self.close();
        }
        if let (Some(script), None) = (step.window(), &self.window) {
            self.window = Some(StudyWindow::open(script)?);
        }
        if is_bridged && self.bridge.is_none() {
            self.bridge = Some(self.window()?.setup.bridge()?);
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> anyhow::Result<Option<String>> {
        let line = match &step.kind {
            Kind::Run(run) => match self.run(step, run)? {
                Some(report) => summary(&report),
                None => return Ok(None),
            },
            Kind::Stampede { clients, .. } => {
                let result = Stampede::of(stampede::run(&self.window()?.setup, *clients));
                self.archive.keep(&step.name, &result)?;
                let slowest = result.answered.last().map_or("-".to_owned(), |slowest| millis(*slowest));
                format!("{} of {clients} answered, slowest {slowest} ms", result.answered.len())
            }
            Kind::Ending { way, .. } => {
                let window = self.window.as_mut().context("no window")?;
                let result = ending::run(window, *way, self.files.path())?;
                self.archive.keep(&step.name, &result)?;
                format!("{}, {} lines in the console", result.ended, result.console.len())
            }
            Kind::Idle { .. } => {
                let left = self.idle.saturating_sub(self.window()?.idle());
                if left > Duration::from_secs(5) {
                    say(&format!("{}: idle for {} more", step.name, words(left)));
                }
                if !self.sleep(left) {
                    return Ok(None);
                }
                let result = self.window.as_mut().context("no window")?.use_idle();
                self.archive.keep(&step.name, &result)?;
                match result.after {
                    Some(after) => format!("answered in {} ms after {:.0} s", millis(after), result.seconds),
                    None => result.error.unwrap_or_default(),
                }
            }
        };
        Ok(Some(line))
    }

    fn run(&mut self, step: &Step, run: &Run) -> anyhow::Result<Option<Report>> {
        if !run.keeps {
            return self.measure(step, run);
        }
        self.window.as_mut().context("no window")?.set_keeping(true)?;
        let report = self.measure(step, run);
        self.window.as_mut().context("no window")?.set_keeping(false)?;
        report
    }

    fn measure(&mut self, step: &Step, run: &Run) -> anyhow::Result<Option<Report>> {
        let report = self.bench(run)?.run(self.stop)?;
        if let Some(report) = &report {
            self.archive.keep(&step.name, report)?;
        }
        Ok(report)
    }

    /// The run of `framewire bench` that measures a row.
    fn bench(&self, run: &Run) -> anyhow::Result<Bench> {
        let target = match run.target {
            Target::Embedded => vec!["embedded".to_owned()],
            Target::Bridge => {
                vec![format!("{}/mgbaendpoint", self.bridge.as_ref().context("no bridge")?.url())]
            }
            Target::Window { script, binary } => {
                let scheme = if binary { "link" } else { "marker" };
                let mut words = vec![format!("{scheme}://{}", self.window()?.setup.address())];
                if script == Script::Study {
                    words.push("--raw".to_owned());
                }
                words
            }
        };
        let counter = match run.target {
            Target::Embedded => "auto".to_owned(),
            _ => self.window()?.counter(),
        };
        Ok(Bench {
            target,
            strategy: run.strategy,
            load: run.load,
            payload: run.bytes.map_or("uuid".to_owned(), |bytes| bytes.to_string()),
            length: self.row,
            counter,
        })
    }

    fn window(&self) -> anyhow::Result<&StudyWindow> {
        self.window.as_ref().context("the step needs a window")
    }

    fn close(&mut self) {
        self.bridge = None;
        self.window = None;
    }

    /// Returns whether the study goes on, not stopped by a signal.
    fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.stop.stopped() {
            thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
        }
        !self.stop.stopped()
    }
}

fn summary(report: &Report) -> String {
    let Some(row) = report.rows.first() else { return "nothing".to_owned() };
    format!(
        "{}/s, mean {} p99 {} max {} ms, {} right{}",
        rate(row.achieved),
        millis(row.intended.mean),
        millis(row.intended.p99),
        millis(row.intended.max),
        percent(row.success),
        row.pace.map_or(String::new(), |pace| format!(", {:.1} frames/s", pace.mean)),
    )
}
