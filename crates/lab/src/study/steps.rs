//! What a step of the study is.

use std::time::Duration;

use framewire_lab::Signal;
use framewire_loadtest::Strategy;

use crate::bench::Load;
use crate::setup::Script;

/// The highest rate that is measured in several windows at the same time.
pub const LIGHT: u32 = 400;

/// The same with a socket per request, of which the study's kind of script accepts one a frame.
const LIGHT_EACH: u32 = 40;

/// Fewest requests of a row, as far as its length allows that.
pub const FEWEST: f64 = 15.0;
/// How many times as long as usual a row is for them at most.
pub const LONGEST: f64 = 2.5;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    /// How many times each row is measured.
    pub passes: usize,
    /// Length of a row in a pass. Rows of low rates are longer.
    pub row: Duration,
    /// Least time that a connection is kept idle.
    pub idle: Duration,
    /// How many windows are measured at the same time at low rates.
    pub windows: usize,
}

impl Default for Lengths {
    fn default() -> Lengths {
        Lengths { passes: 4, row: Duration::from_secs(3), idle: Duration::from_secs(30), windows: 6 }
    }
}

impl Lengths {
    /// How many steps are done at the same time as this one, itself included.
    pub fn share(&self, step: &Step) -> u32 {
        if step.fits_with_others() { self.windows as u32 } else { 1 }
    }
}

/// What a row of requests goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A script in a stock mGBA, over its socket: text by default, binary frames where `binary` says so.
    Window {
        /// Which.
        script: Script,
        /// Whether Framewire's binary frames are spoken.
        binary: bool,
    },
    /// `framewire serve --attach` in front of our script.
    Bridge,
    /// The core in the tester's process.
    Embedded,
}

/// One run of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What they go to.
    pub target: Target,
    /// How sockets are used; none in the tester's own process.
    pub strategy: Option<Strategy>,
    /// Bytes of random data in a message; none is a UUID.
    pub bytes: Option<usize>,
    /// The load of the run.
    pub load: Load,
    /// Whether the study's script keeps the sockets that it closes, so that they are never collected as garbage.
    pub keeps: bool,
}

impl Run {
    /// How long it is measured in a pass, when rows of usual rates take `row`.
    pub fn length(&self, row: Duration) -> Duration {
        match self.load {
            Load::Rate(rate) => {
                let wanted = Duration::from_secs_f64((FEWEST / f64::from(rate)).ceil());
                wanted.clamp(row, row.mul_f64(LONGEST))
            }
            Load::Clients(_) => row,
        }
    }
}

/// What is different about a run of [`Kind::Trial`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing: it is measured again.
    Nothing,
    /// A load before it that is not measured.
    Warm,
    /// The study's waits between tries.
    Waits,
    /// Nagle's algorithm.
    Nagle,
    /// No marks at the end of messages, on both sides.
    Unframed,
    /// The same without marks, and with messages of many sizes.
    UnframedMixed,
    /// The same run comes right before it.
    RightAfter,
    /// A load with a socket per request comes before it, so that Lua has closed sockets to collect.
    AfterClosing,
    /// Lua's garbage collector is stopped, and the garbage is counted.
    Garbage,
}

impl Change {
    /// Options of `framewire bench` that it means.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Change::Nothing | Change::RightAfter | Change::AfterClosing | Change::Garbage => &[],
            Change::Warm => &["--warmup", "5s"],
            Change::Waits => &["--retries", "400ms,1200ms"],
            Change::Nagle => &["--nagle"],
            Change::Unframed | Change::UnframedMixed => &["--unframed"],
        }
    }

    /// Whether the study's script must send back each piece as it comes.
    pub fn is_unframed(self) -> bool {
        matches!(self, Change::Unframed | Change::UnframedMixed)
    }
}

/// A way whose limit is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// What it is called on the page.
    pub way: &'static str,
    /// What is asked.
    pub target: Target,
    /// How sockets are used.
    pub strategy: Option<Strategy>,
    /// The first rate.
    pub start: u32,
}

/// How a bridge ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It gets a signal.
    Signal(Signal),
    /// It closes each connection after a reply, as version 3 of the study did.
    Orderly,
    /// The network between it and the script goes silent.
    Network,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 6] = [
        Way::Signal(Signal::INT),
        Way::Signal(Signal::TERM),
        Way::Signal(Signal::HUP),
        Way::Signal(Signal::KILL),
        Way::Orderly,
        Way::Network,
    ];

    /// Its name in names of steps.
    pub fn name(self) -> &'static str {
        match self {
            Way::Signal(Signal::INT) => "sigint",
            Way::Signal(Signal::TERM) => "sigterm",
            Way::Signal(Signal::HUP) => "sighup",
            Way::Signal(_) => "sigkill",
            Way::Orderly => "orderly",
            Way::Network => "network",
        }
    }
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Measures requests.
    Run(Run),
    /// Measures requests with something changed, to answer one question.
    Trial {
        /// The run.
        run: Run,
        /// What is different about it.
        change: Change,
    },
    /// Searches the highest rate that meets a goal.
    Limit(Search),
    /// Counts the allocations of `framewire serve`.
    Allocations,
    /// So many clients connect at once, each with one request.
    Stampede {
        /// To which script.
        script: Script,
        /// How many.
        clients: usize,
    },
    /// Ends what talks to the script, and looks at what becomes of that.
    Ending {
        /// Which script.
        script: Script,
        /// How.
        way: Way,
    },
    /// Uses a connection again that was kept idle.
    Idle {
        /// To which script.
        script: Script,
    },
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it belongs to, for `--only`.
    pub group: &'static str,
    /// Its name, and that of its file.
    pub name: String,
    /// What it does.
    pub kind: Kind,
}

impl Step {
    /// The script of the window that it needs; none needs no window.
    pub fn window(&self) -> Option<Script> {
        match &self.kind {
            Kind::Run(Run { target, .. })
            | Kind::Trial { run: Run { target, .. }, .. }
            | Kind::Limit(Search { target, .. }) => match target {
                Target::Window { script, .. } => Some(*script),
                Target::Bridge => Some(Script::Ours),
                Target::Embedded => None,
            },
            Kind::Allocations => Some(Script::Ours),
            Kind::Stampede { script, .. } | Kind::Ending { script, .. } | Kind::Idle { script } => {
                Some(*script)
            }
        }
    }

    /// Whether other windows may be measured at the same time: a low rate, in text, of which no packets are counted.
    pub fn fits_with_others(&self) -> bool {
        let is_light = |run: &Run| {
            matches!(run.target, Target::Window { binary: false, .. })
                && matches!(run.load, Load::Rate(..=LIGHT))
                && (run.strategy != Some(Strategy::PerRequest)
                    || matches!(run.load, Load::Rate(..=LIGHT_EACH)))
                && !run.keeps
        };
        match &self.kind {
            Kind::Run(run) => is_light(run) && run.strategy != Some(Strategy::Mux),
            Kind::Trial { run, .. } => is_light(run) && self.group != "nagle",
            Kind::Allocations => true,
            Kind::Limit(_) | Kind::Stampede { .. } | Kind::Ending { .. } | Kind::Idle { .. } => false,
        }
    }

    /// Whether it is measured in each pass: the runs of requests on whose latency the page reports.
    pub fn is_repeated(&self) -> bool {
        match &self.kind {
            Kind::Run(_) => true,
            Kind::Trial { change, .. } => *change != Change::Garbage,
            Kind::Limit(_)
            | Kind::Allocations
            | Kind::Stampede { .. }
            | Kind::Ending { .. }
            | Kind::Idle { .. } => false,
        }
    }

    /// About how long it takes.
    pub fn estimate(&self, lengths: &Lengths) -> Duration {
        let around = Duration::from_millis(700);
        match &self.kind {
            Kind::Run(run) => run.length(lengths.row) + around,
            Kind::Trial { run, change } => {
                let runs = match change {
                    Change::RightAfter | Change::AfterClosing | Change::Warm | Change::Garbage => 2,
                    _ => 1,
                };
                run.length(lengths.row) * runs + around
            }
            Kind::Allocations => lengths.row * 6 + around,
            Kind::Limit(_) => Duration::from_secs(25),
            Kind::Stampede { script: Script::Study, clients } if *clients > 5 => Duration::from_secs(25),
            Kind::Stampede { .. } => Duration::from_secs(3),
            Kind::Ending { way: Way::Network, .. } => Duration::from_secs(25),
            Kind::Ending { .. } => Duration::from_secs(4),
            Kind::Idle { .. } => lengths.idle / 2, // both scripts at the same time
        }
    }
}
