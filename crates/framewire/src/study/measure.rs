//! Does the steps that are left, one after another, each in the window that it needs.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use framewire_loadtest::Stop;
use framewire_loadtest::report::Report;
use framewire_loadtest::report::format::{millis, percent, rate};
use tempfile::TempDir;

use super::folder::Folder;
use super::programs::Bridge;
use super::progress::{Progress, words};
use super::run::{self, Place};
use super::steps::{Kind, Run, Stand, Step};
use super::window::StudyWindow;
use super::{ending, stampede};

/// Between two steps.
const REST: Duration = Duration::from_millis(500);
/// How often a step is tried; one that fails is tried again in a new window.
const TRIES: u32 = 2;

/// Does the steps that are left.
pub struct Measure<'a> {
    folder: &'a Folder,
    row: Duration,
    idle: Duration,
    stop: &'a Stop,
    files: TempDir,
    window: Option<StudyWindow>,
    bridge: Option<Bridge>,
}

impl<'a> Measure<'a> {
    /// Rows of length `row`, connections kept idle for at least `idle`.
    ///
    /// # Errors
    /// Without a folder for temporary files.
    pub fn new(folder: &'a Folder, row: Duration, idle: Duration, stop: &'a Stop) -> anyhow::Result<Self> {
        let files = TempDir::with_prefix("framewire-study-").context("no folder for temporary files")?;
        Ok(Measure { folder, row, idle, stop, files, window: None, bridge: None })
    }

    /// Does all of `steps` that have no result yet, until it is stopped.
    ///
    /// # Errors
    /// At the first step that cannot be done.
    pub fn all(&mut self, steps: &[Step]) -> anyhow::Result<()> {
        let (done, todo): (Vec<_>, Vec<_>) =
            steps.iter().cloned().partition(|step| self.folder.is_done(step));
        let mut progress = Progress::start(&todo, done.len(), self.row);
        for step in &todo {
            if self.stop.stopped() {
                break;
            }
            progress.begin(step);
            if let Some(line) = self.try_step(step, &progress)? {
                progress.end(step, &line);
            }
            self.rest();
        }
        Ok(())
    }

    /// Does a step; what to say of it, or `None` if it was stopped.
    fn try_step(&mut self, step: &Step, progress: &Progress) -> anyhow::Result<Option<String>> {
        let mut tries = 0;
        loop {
            tries += 1;
            let result = self.prepare(step, progress).and_then(|()| self.step(step, progress));
            match result {
                Err(_) if self.stop.stopped() => return Ok(None),
                Err(error) if tries < TRIES => {
                    progress.say(&format!("{}: {error:#}; once more in a new window", step.name));
                    self.close();
                }
                result => return result.with_context(|| format!("{} cannot be done", step.name)),
            }
        }
    }

    /// Has the window that a step needs, in good health, and no other.
    fn prepare(&mut self, step: &Step, progress: &Progress) -> anyhow::Result<()> {
        let is_bridged = matches!(&step.kind, Kind::Run(Run { stand: Stand::Bridge, .. }));
        if !is_bridged {
            self.bridge = None;
        }
        let kept = self.window.as_ref().filter(|window| Some(window.script()) == step.window());
        if kept.is_some_and(|window| !window.is_healthy()) {
            progress.say("the script does not answer any more; a new window");
            self.close();
        } else if kept.is_none() {
            self.close();
        }
        if let (Some(script), None) = (step.window(), &self.window) {
            self.window = Some(StudyWindow::open(script, self.files.path())?);
        }
        if is_bridged && self.bridge.is_none() {
            self.bridge = Some(Bridge::start(self.window()?.address(), self.files.path())?);
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, progress: &Progress) -> anyhow::Result<Option<String>> {
        let line = match &step.kind {
            Kind::Run(run) => match self.run(step, run)? {
                Some(report) => tell(&report),
                None => return Ok(None),
            },
            Kind::Stampede { script, clients } => {
                let result = stampede::run(self.window()?.address(), *script, *clients);
                self.folder.keep(step, &result)?;
                let slowest = result.answered.last().map_or("-".to_owned(), |slowest| millis(*slowest));
                format!("{} of {clients} answered, slowest {slowest} ms", result.answered.len())
            }
            Kind::Ending { way, .. } => {
                let window = self.window.as_mut().context("no window")?;
                let result = ending::run(window, *way, self.files.path())?;
                self.folder.keep(step, &result)?;
                format!("{}, {} lines in the console", result.ended, result.console.len())
            }
            Kind::Idle { .. } => {
                let left = self.idle.saturating_sub(self.window()?.idle());
                if left > Duration::from_secs(5) {
                    progress.say(&format!("{}: idle for {} more", step.name, words(left)));
                }
                if !self.sleep(left) {
                    return Ok(None);
                }
                let result = self.window.as_mut().context("no window")?.use_idle();
                self.folder.keep(step, &result)?;
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

    fn measure(&self, step: &Step, run: &Run) -> anyhow::Result<Option<Report>> {
        let place = match run.stand {
            Stand::Embedded => Place { address: None, counter: None },
            stand => {
                let window = self.window()?;
                let bridge = self.bridge.as_ref().filter(|_| stand == Stand::Bridge);
                let address = bridge.map_or(window.address(), Bridge::address);
                Place { address: Some(address), counter: Some(window.counter()) }
            }
        };
        run::run(step, run, &place, self.row, self.folder, self.files.path(), self.stop)
    }

    fn window(&self) -> anyhow::Result<&StudyWindow> {
        self.window.as_ref().context("the step needs a window")
    }

    fn close(&mut self) {
        self.bridge = None;
        self.window = None;
    }

    fn rest(&self) {
        self.sleep(REST);
    }

    /// Whether it was not stopped meanwhile.
    fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.stop.stopped() {
            thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
        }
        !self.stop.stopped()
    }
}

fn tell(report: &Report) -> String {
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
