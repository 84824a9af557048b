//! Performs the steps that have no result yet, each in the window that it needs.
//!
//! A *lane* is a thread that performs the steps of a queue one after another, with at most one window of its own.
//! Several lanes can run at the same time. A *row* is one run of requests at one load.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use framewire_lab::Framewire;
use framewire_loadtest::report::Report;
use framewire_loadtest::report::format::{millis, percent, rate};
use framewire_loadtest::{Stop, Strategy};
use parking_lot::Mutex;
use tempfile::TempDir;

use super::allocations::CountedBridge;
use super::archive::Archive;
use super::ending;
use super::plan;
use super::progress::{Progress, words};
use super::results::{AllocatedIn, Allocations, EndedRun, Stampede, SystemCounters};
use super::steps::{Change, Kind, Lengths, Run, Search, Step, Target};
use super::trials;
use super::window::StudyWindow;
use crate::bench::{Bench, Load};
use crate::setup::{self, Script};
use crate::stampede;

/// The pause between two steps.
const REST: Duration = Duration::from_millis(200);
/// The pause after several windows were opened at the same time. Their start keeps the processors busy for this long.
const SETTLING: Duration = Duration::from_secs(6);
/// How many times a step is tried, at most. Each further try is in a new window.
const TRIES: u32 = 3;
/// The study ends when this many steps have failed.
const FAILURES: usize = 3;
/// The length of each run in a search for a limit.
const SEARCH: Duration = Duration::from_secs(1);
/// How many runs a search for a limit has time for.
const SEARCH_RUNS: u32 = 40;
/// For how long Lua's garbage is counted while there are no requests.
const UNASKED: Duration = Duration::from_secs(5);
/// At each of the rates below, allocations are counted for this many times the length of a row.
const ALLOCATION_ROWS: u32 = 3;
/// The rates at which allocations are counted: the rate at which the study profiled its server, and a high rate that
/// shows what a request costs.
const ALLOCATING: [u32; 2] = [10, 400];

/// The rate at which connections are closed before a run of [`Change::AfterClosing`].
const CLOSING: u32 = 40;

/// Performs all of `steps` that have no result yet, until `stop` is set.
///
/// # Errors
/// If a step failed. The other steps are still performed, unless [`FAILURES`] steps fail.
pub fn all(archive: &mut Archive, lengths: Lengths, stop: &Stop, steps: &[Step]) -> anyhow::Result<()> {
    let passes: Vec<_> = (1..=lengths.passes).map(|number| plan::pass(steps, number)).collect();
    let (done, todo): (Vec<_>, Vec<_>) = passes.iter().flatten().partition(|step| archive.is_done(step));
    let progress = Progress::start(&todo, done.len(), lengths);
    let study = Study {
        archive: Mutex::new(archive),
        lengths,
        stop,
        progress: Mutex::new(progress),
        failed: Mutex::default(),
    };
    for (pass, steps) in passes.into_iter().enumerate() {
        study.pass(pass, steps);
        if study.is_over() {
            break;
        }
    }
    study.failed.into_inner().into_iter().next().map_or(Ok(()), Err)
}

/// A study that is being measured.
struct Study<'a> {
    archive: Mutex<&'a mut Archive>,
    lengths: Lengths,
    stop: &'a Stop,
    progress: Mutex<Progress>,
    failed: Mutex<Vec<anyhow::Error>>,
}

impl Study<'_> {
    /// Performs one pass over the plan: first the steps that can be measured at the same time, in a new order and in
    /// new windows, and then the other steps one by one. The steps for idle connections come last. They run at the same
    /// time, each in a window of its own.
    fn pass(&self, number: usize, mut steps: Vec<Step>) {
        steps.retain(|step| !self.archive.lock().is_done(step));
        let (idle, steps): (Vec<_>, Vec<_>) =
            steps.into_iter().partition(|step| matches!(step.kind, Kind::Idle { .. }));
        let (mut windows, alone): (Vec<_>, Vec<_>) =
            steps.into_iter().partition(|step| self.lengths.windows > 1 && step.fits_with_others());
        fastrand::Rng::with_seed(number as u64).shuffle(&mut windows);
        let queues = Script::BOTH.map(|script| {
            let steps = windows.iter().filter(|step| step.window() == Some(script));
            Queue::new(steps.cloned().collect())
        });
        let lanes = queues.each_ref().map(|queue| (self.lengths.windows / 2).max(1).min(queue.lock().len()));
        let opened = Barrier::new(lanes.iter().sum());
        thread::scope(|scope| {
            for (queue, lanes) in queues.iter().zip(lanes) {
                for _ in 0..lanes {
                    scope.spawn(|| self.lane(queue, Some(&opened)));
                }
            }
        });
        if !self.is_over() {
            self.lane(&Queue::new(alone.into()), None);
        }
        thread::scope(|scope| {
            for step in idle {
                scope.spawn(|| self.lane(&Queue::new([step].into()), None));
            }
        });
    }

    fn is_over(&self) -> bool {
        self.stop.stopped() || self.failed.lock().len() >= FAILURES
    }

    /// Measures the steps of a queue one after another. If there are several lanes, all wait until all windows are
    /// open.
    fn lane(&self, queue: &Queue, opened: Option<&Barrier>) {
        let mut measure = match Measure::new(self, opened.is_some()) {
            Ok(measure) => measure,
            Err(error) => {
                // The other lanes still wait for this lane at the barrier.
                if let Some(opened) = opened {
                    opened.wait();
                }
                return self.failed.lock().push(error);
            }
        };
        let mut next = queue.lock().pop_front();
        if let (Some(opened), Some(step)) = (opened, &next) {
            // A window that opens slows down the others, so all windows open first. If a window does not open,
            // `try_step` tries to open it again.
            if let Err(error) = measure.prepare(step) {
                eprintln!("{error:#}");
            }
            opened.wait();
            measure.sleep(SETTLING);
        }
        while let Some(step) = next.filter(|_| !self.is_over()) {
            let began = Instant::now();
            match measure.try_step(&step) {
                Ok(Some(line)) => self.progress.lock().end(&step, began.elapsed(), &line),
                Ok(None) => {}
                Err(error) => {
                    eprintln!("{error:#}");
                    measure.close();
                    self.failed.lock().push(error);
                }
            }
            measure.sleep(REST);
            next = queue.lock().pop_front();
        }
    }
}

/// Steps that one or more lanes must still perform.
type Queue = Mutex<VecDeque<Step>>;

/// The state of a lane: its window, its bridge, and the current try.
struct Measure<'a, 'b> {
    study: &'a Study<'b>,
    files: TempDir,
    window: Option<StudyWindow>,
    bridge: Option<Framewire>,
    /// Whether this is the last try of the step.
    last_try: bool,
    /// Whether other windows are measured at the same time.
    side_by_side: bool,
}

impl<'a, 'b> Measure<'a, 'b> {
    fn new(study: &'a Study<'b>, side_by_side: bool) -> anyhow::Result<Self> {
        let files = TempDir::with_prefix("framewire-study-").context("no folder for temporary files")?;
        Ok(Measure { study, files, window: None, bridge: None, last_try: false, side_by_side })
    }

    fn keep<T: serde::Serialize>(&self, name: &str, result: &T) -> anyhow::Result<()> {
        self.study.archive.lock().keep(name, result)
    }

    /// Performs a step. Returns a description of the result, or `None` if the step was stopped.
    fn try_step(&mut self, step: &Step) -> anyhow::Result<Option<String>> {
        let mut tries = 0;
        loop {
            tries += 1;
            self.last_try = tries == TRIES;
            let result = self.prepare(step).and_then(|()| self.step(step));
            match result {
                Err(_) if self.study.stop.stopped() => return Ok(None),
                Err(error) if tries < TRIES => {
                    eprintln!("{}: {error:#}; trying again in a new window", step.name);
                    self.close();
                }
                result => return result.with_context(|| format!("{} cannot be done", step.name)),
            }
        }
    }

    /// Opens the window that a step needs, unless it is already open and its script answers. Closes any other window.
    /// Starts a bridge if the step needs one.
    fn prepare(&mut self, step: &Step) -> anyhow::Result<()> {
        let is_bridged = matches!(
            &step.kind,
            Kind::Run(Run { target: Target::Bridge, .. })
                | Kind::Limit(Search { target: Target::Bridge, .. })
        );
        if !is_bridged {
            self.bridge = None;
        }
        let kept = self.window.as_ref().filter(|window| Some(window.setup.script) == step.window());
        if kept.is_some_and(|window| !window.is_healthy()) {
            eprintln!("the script does not answer any more; opening a new window");
            self.close();
        } else if kept.is_none() {
            self.close();
        }
        if let (Some(script), None) = (step.window(), &self.window) {
            self.window = Some(StudyWindow::open(script)?);
        }
        if is_bridged && self.bridge.is_none() {
            self.bridge = Some(setup::bridge(self.window()?.setup.address)?);
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> anyhow::Result<Option<String>> {
        let line = match &step.kind {
            Kind::Run(run) => return Ok(self.run(step, run)?.as_ref().map(summary)),
            Kind::Trial { run, change } => {
                return Ok(self.trial(step, run, *change)?.as_ref().map(summary));
            }
            Kind::Limit(search) => {
                let Some(report) = self.limit(step, search)? else { return Ok(None) };
                let limit = report.limit.as_ref().and_then(|limit| limit.rate);
                format!("{} runs, limit {}", report.rows.len(), limit.map_or("none".to_owned(), rate))
            }
            Kind::Allocations => {
                let Some(allocations) = self.allocations(step)? else { return Ok(None) };
                let runs = allocations.runs.iter();
                let runs = runs.map(|run| format!("{} for {} requests", run.allocated.times, run.requests));
                runs.collect::<Vec<_>>().join(", ")
            }
            Kind::Stampede { clients, .. } => {
                let result = Stampede::of(stampede::run(&self.window()?.setup, *clients));
                self.keep(&step.name, &result)?;
                let slowest = result.answered.last().map_or("-".to_owned(), |slowest| millis(*slowest));
                format!("{} of {clients} answered, slowest {slowest} ms", result.answered.len())
            }
            Kind::Ending { way, .. } => {
                let window = self.window.as_mut().context("no window")?;
                let result = ending::run(window, *way, self.files.path())?;
                self.keep(&step.name, &result)?;
                format!("{}, {} lines in the console", result.ended, result.console.len())
            }
            Kind::Idle { .. } => {
                let left = self.study.lengths.idle.saturating_sub(self.window()?.idle());
                if left > Duration::from_secs(5) {
                    eprintln!("{}: idle for {} more", step.name, words(left));
                }
                if !self.sleep(left) {
                    return Ok(None);
                }
                let result = self.window_mut()?.use_idle();
                self.keep(&step.name, &result)?;
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
        self.window_mut()?.set_keeping(true)?;
        let report = self.measure(step, run);
        self.window_mut()?.set_keeping(false)?;
        report
    }

    fn measure(&mut self, step: &Step, run: &Run) -> anyhow::Result<Option<Report>> {
        let report = self.bench(run)?.run(self.study.stop)?;
        if let Some(report) = &report {
            self.keep_report(step, report)?;
        }
        Ok(report)
    }

    /// Stores the report of a step, unless mGBA ended during the step. In that case, this stores how mGBA ended, and
    /// returns an error so that the step is tried again. In the last try, the report is stored anyway.
    fn keep_report(&mut self, step: &Step, report: &Report) -> anyhow::Result<()> {
        if let Some(how) = self.window.as_mut().and_then(StudyWindow::end) {
            let (requests, correct) = report.rows.first().map_or((0, 0), |row| (row.requests, row.correct));
            let name = ended_name(&step.name);
            let mut ended: Vec<EndedRun> = self.study.archive.lock().result(&name).unwrap_or_default();
            ended.push(EndedRun { how: how.clone(), requests, correct });
            self.keep(&name, &ended)?;
            if !self.last_try {
                bail!("{how}");
            }
        }
        self.keep(&step.name, &without_details(report))
    }

    /// Performs a run with one change, and stores its report and the system's counters.
    fn trial(&mut self, step: &Step, run: &Run, change: Change) -> anyhow::Result<Option<Report>> {
        if change.is_unframed() {
            self.window_mut()?.set_unframed(true)?;
        }
        let mut bench = self.bench(run)?;
        // `--raw` only leaves out the prefix of the messages. Messages of `--unframed` have no prefix anyway, and
        // `framewire bench` does not accept both.
        bench.target.retain(|word| !change.is_unframed() || word != "--raw");
        bench.options = change.options().iter().map(|&word| word.to_owned()).collect();
        if change == Change::UnframedMixed {
            "36..5000".clone_into(&mut bench.payload);
        }
        if change == Change::AfterClosing {
            let strategy = Some(Strategy::PerRequest);
            let closing = Run { strategy, load: Load::Rate(CLOSING), ..run.clone() };
            if self.bench(&closing)?.run(self.study.stop)?.is_none() {
                return Ok(None);
            }
        }
        if change == Change::RightAfter && bench.run(self.study.stop)?.is_none() {
            return Ok(None);
        }
        let mut idle_garbage = 0.0; // bytes per second
        let mut bytes = 0.0;
        if change == Change::Garbage {
            let window = self.window_mut()?;
            window.set_collecting(false)?;
            // This pause is needed because a new window makes more garbage at first.
            thread::sleep(UNASKED);
            let before = window.lua_bytes()?;
            let start = Instant::now();
            thread::sleep(UNASKED);
            bytes = window.lua_bytes()?;
            idle_garbage = (bytes - before) / start.elapsed().as_secs_f64();
        }
        let start = Instant::now();
        // `waiting`: how many closed connections to the script the system still keeps (TIME_WAIT).
        let (waiting, packets) = (self.window()?.waiting()?, packets_sent()?);
        let report = bench.run(self.study.stop)?;
        let (packets, waiting) = (packets_sent()? - packets, [waiting, self.window()?.waiting()?]);
        let mut garbage = None;
        if change == Change::Garbage {
            let window = self.window_mut()?;
            let grown = window.lua_bytes()? - bytes - idle_garbage * start.elapsed().as_secs_f64();
            window.set_collecting(true)?;
            let requests =
                report.as_ref().and_then(|report| report.rows.first()).map_or(1, |row| row.requests);
            garbage = Some((grown / requests as f64).max(0.0));
        }
        if change.is_unframed() {
            self.window_mut()?.set_unframed(false)?;
        }
        let Some(report) = report else { return Ok(None) };
        let system =
            SystemCounters { packets: Some(packets).filter(|_| !self.side_by_side), waiting, garbage };
        self.keep(&system_name(&step.name), &system)?;
        self.keep_report(step, &report)?;
        Ok(Some(report))
    }

    fn limit(&self, step: &Step, search: &Search) -> anyhow::Result<Option<Report>> {
        let Search { target, strategy, start, .. } = *search;
        let mut bench =
            self.bench(&Run { target, strategy, bytes: None, load: Load::Rate(start), keeps: false })?;
        bench.length = SEARCH;
        bench.runs = SEARCH_RUNS;
        bench.options = ["--find-limit", "--goal", trials::GOAL].map(str::to_owned).to_vec();
        let report = bench.run(self.study.stop)?;
        if let Some(report) = &report {
            self.keep(&step.name, report)?;
        }
        Ok(report)
    }

    fn allocations(&self, step: &Step) -> anyhow::Result<Option<Allocations>> {
        let folder = TempDir::new_in(self.files.path()).context("no folder for heaptrack")?;
        let mut counted = CountedBridge::start(&self.window()?.setup, folder.path())?;
        let mut result = Allocations { start: counted.allocated()?, runs: Vec::new() };
        for rate in ALLOCATING {
            let target = vec![format!("{}/mgbaendpoint", counted.bridge.url())];
            let bench = Bench::pool(target, rate, "uuid", self.study.lengths.row * ALLOCATION_ROWS);
            let Some(report) = bench.run(self.study.stop)? else { return Ok(None) };
            let row = report.rows.first().context("a report without a row")?;
            let (requests, correct) = (row.requests, row.correct);
            result.runs.push(AllocatedIn { rate, requests, correct, allocated: counted.allocated()? });
        }
        self.keep(&step.name, &result)?;
        Ok(Some(result))
    }

    /// The command line of `framewire bench` that measures a row.
    fn bench(&self, run: &Run) -> anyhow::Result<Bench> {
        let target = match run.target {
            Target::Embedded => vec!["embedded".to_owned()],
            Target::Bridge => {
                vec![format!("{}/mgbaendpoint", self.bridge.as_ref().context("no bridge")?.url())]
            }
            Target::Window { script, binary } => {
                let scheme = if binary { "link" } else { "marker" };
                let mut words = vec![format!("{scheme}://{}", self.window()?.setup.address)];
                if script == Script::Study {
                    words.push("--raw".to_owned());
                }
                words
            }
        };
        let counter = match run.target {
            Target::Embedded => "auto".to_owned(),
            _ => self.window()?.counter.clone(),
        };
        Ok(Bench {
            target,
            strategy: run.strategy,
            load: run.load,
            payload: run.bytes.map_or("uuid".to_owned(), |bytes| bytes.to_string()),
            length: run.length(self.study.lengths.row),
            counter,
            options: Vec::new(),
            runs: 1,
        })
    }

    fn window(&self) -> anyhow::Result<&StudyWindow> {
        self.window.as_ref().context("the step needs a window")
    }

    fn window_mut(&mut self) -> anyhow::Result<&mut StudyWindow> {
        self.window.as_mut().context("the step needs a window")
    }

    fn close(&mut self) {
        self.bridge = None;
        self.window = None;
    }

    /// Waits for this time. Returns false if a signal has stopped the study.
    fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.study.stop.stopped() {
            thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
        }
        !self.study.stop.stopped()
    }
}

/// Removes the parts of a report that the page does not show: its course over time, and most of its percentile curves.
fn without_details(report: &Report) -> Report {
    let mut report = report.clone();
    for row in &mut report.rows {
        row.series.clear();
        for summary in [&mut row.sent, &mut row.connect, &mut row.first_byte, &mut row.late] {
            summary.curve.clear();
        }
    }
    report
}

/// The name under which the archive lists the runs of a step during which mGBA ended.
pub fn ended_name(step: &str) -> String {
    format!("{step}.ended")
}

/// The name under which the archive stores the system's counters for a step.
pub fn system_name(step: &str) -> String {
    format!("{step}.system")
}

/// The number of TCP segments that this machine has sent since it started.
fn packets_sent() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/net/snmp").context("cannot read /proc/net/snmp")?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut pairs = names.split(' ').zip(values.split(' '));
    let sent = pairs.find(|(name, _)| *name == "OutSegs").and_then(|(_, value)| value.parse().ok());
    sent.context("/proc/net/snmp has no OutSegs")
}

fn summary(report: &Report) -> String {
    let Some(row) = report.rows.first() else { return "nothing".to_owned() };
    format!(
        "{}/s, mean {} p99 {} max {} ms, {} correct{}",
        rate(row.achieved),
        millis(row.intended.mean),
        millis(row.intended.p99),
        millis(row.intended.max),
        percent(row.success),
        row.pace.map_or(String::new(), |pace| format!(", {:.1} frames/s", pace.mean)),
    )
}
