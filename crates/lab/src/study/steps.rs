//! The steps of the study. A step is one measurement, such as a row: one run of requests at one load.

use std::time::Duration;

use framewire_lab::Signal;
use framewire_loadtest::Strategy;

use crate::bench::Load;
use crate::setup::Script;

/// The highest rate that is measured in several windows at the same time.
pub const LIGHT: u32 = 400;

/// Like [`LIGHT`], for runs with a socket per request. This rate is lower, because the study's kind of script accepts
/// only one socket per frame.
const LIGHT_EACH: u32 = 40;

/// The smallest number of requests that a row has, if [`LONGEST`] allows it.
pub const FEWEST: f64 = 15.0;
/// To have [`FEWEST`] requests, a row at a low rate takes longer than usual, up to this many times the usual length.
pub const LONGEST: f64 = 2.5;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    /// How many times each row is measured.
    pub passes: usize,
    /// The length of a row in a pass. Rows of low rates are longer.
    pub row: Duration,
    /// The shortest time for which a connection is kept idle.
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
    /// How many steps are done at the same time, including this one.
    pub fn share(&self, step: &Step) -> u32 {
        if step.fits_with_others() { self.windows as u32 } else { 1 }
    }
}

/// The target of the requests of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A script in a stock mGBA, directly over its socket.
    Window {
        /// The script.
        script: Script,
        /// Whether the requests are Framewire's binary frames. Otherwise they are text messages.
        binary: bool,
    },
    /// `framewire serve --attach`, connected to Framewire's script.
    Bridge,
    /// An embedded core in the process of the load tester.
    Embedded,
}

impl Target {
    /// Whether requests go directly to this script.
    pub fn is_window(self, wanted: Script) -> bool {
        matches!(self, Target::Window { script, .. } if script == wanted)
    }
}

/// One run of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The target of the requests.
    pub target: Target,
    /// How sockets are used; `None` for an embedded core.
    pub strategy: Option<Strategy>,
    /// The number of random bytes in a message; `None` means that the message is a UUID.
    pub bytes: Option<usize>,
    /// The load of the run.
    pub load: Load,
    /// Whether the study's script keeps the sockets that it closes, so that they are never collected as garbage.
    pub keeps: bool,
}

impl Run {
    /// A run that sends UUIDs as text messages.
    pub fn text(script: Script, strategy: Strategy, rate: u32) -> Run {
        Run {
            target: Target::Window { script, binary: false },
            strategy: Some(strategy),
            bytes: None,
            load: Load::Rate(rate),
            keeps: false,
        }
    }

    /// How long the run takes in a pass, if rows of usual rates take `row`.
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
    /// Nothing, apart from the fields of the run itself.
    Nothing,
    /// There is a warm-up: a load before the run that is not measured.
    Warm,
    /// The waits between tries are those of the study.
    Waits,
    /// Nagle's algorithm is on.
    Nagle,
    /// Messages have no marks at their end, in both directions.
    Unframed,
    /// Messages have no marks at their end, and have different sizes.
    UnframedMixed,
    /// It comes right after another run of the same kind.
    RightAfter,
    /// It comes right after a load with a socket per request, so that Lua has closed sockets to collect as garbage.
    AfterClosing,
    /// Lua's garbage collector is stopped, and the garbage is counted.
    Garbage,
}

impl Change {
    /// The options of `framewire bench` for this change.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Change::Nothing | Change::RightAfter | Change::AfterClosing | Change::Garbage => &[],
            Change::Warm => &["--warmup", "5s"],
            Change::Waits => &["--retries", "400ms,1200ms"],
            Change::Nagle => &["--nagle"],
            Change::Unframed | Change::UnframedMixed => &["--unframed"],
        }
    }

    /// Whether the study's script must send back each piece of data as it arrives.
    pub fn is_unframed(self) -> bool {
        matches!(self, Change::Unframed | Change::UnframedMixed)
    }
}

/// A search for the highest rate of one way to send requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// The name of this way on the page.
    pub way: &'static str,
    /// The target of the requests.
    pub target: Target,
    /// How sockets are used.
    pub strategy: Option<Strategy>,
    /// The first rate.
    pub start: u32,
}

/// A way in which the connection between a client and a script ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The client gets a signal.
    Signal(Signal),
    /// The client closes each connection after a reply, as version 3 of the study did.
    Orderly,
    /// The network between the client and the script fails for a while.
    Network,
}

impl Way {
    /// All ways.
    pub const ALL: [Way; 6] = [
        Way::Signal(Signal::INT),
        Way::Signal(Signal::TERM),
        Way::Signal(Signal::HUP),
        Way::Signal(Signal::KILL),
        Way::Orderly,
        Way::Network,
    ];

    /// The part of step names that stands for this way.
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
        /// What is different about the run.
        change: Change,
    },
    /// Searches for the highest rate that meets a goal.
    Limit(Search),
    /// Counts the allocations of `framewire serve`.
    Allocations,
    /// Connects several clients at once. Each sends one request.
    Stampede {
        /// The script to which they connect.
        script: Script,
        /// The number of clients.
        clients: usize,
    },
    /// Ends the connection of a program to the script in one of several ways, and records what happens.
    Ending {
        /// The script.
        script: Script,
        /// The way in which the connection ends.
        way: Way,
    },
    /// Uses a connection again after it was kept idle.
    Idle {
        /// The script to which it is connected.
        script: Script,
    },
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The group to which it belongs, for `--only`.
    pub group: &'static str,
    /// Its name, which is also the name of its result in the archive.
    pub name: String,
    /// What it does.
    pub kind: Kind,
}

impl Step {
    /// The script of the window that the step needs; `None` if it needs no window.
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

    /// Whether other windows may be measured at the same time. This is so for most runs of text messages at a low rate,
    /// and for the count of allocations.
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
            // The trials of the group `nagle` count the packets of the whole machine.
            Kind::Trial { run, .. } => is_light(run) && self.group != "nagle",
            Kind::Allocations => true,
            Kind::Limit(_) | Kind::Stampede { .. } | Kind::Ending { .. } | Kind::Idle { .. } => false,
        }
    }

    /// Whether the step is measured in each pass. These are the runs of requests whose latency is on the page.
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

    /// An estimate of how long the step takes.
    pub fn estimate(&self, lengths: &Lengths) -> Duration {
        let overhead = Duration::from_millis(700);
        match &self.kind {
            Kind::Run(run) => run.length(lengths.row) + overhead,
            Kind::Trial { run, change } => {
                let runs = match change {
                    Change::RightAfter | Change::AfterClosing | Change::Warm | Change::Garbage => 2,
                    _ => 1,
                };
                run.length(lengths.row) * runs + overhead
            }
            Kind::Allocations => lengths.row * 6 + overhead,
            Kind::Limit(_) => Duration::from_secs(25),
            Kind::Stampede { script: Script::Study, clients } if *clients > 5 => Duration::from_secs(25),
            Kind::Stampede { .. } => Duration::from_secs(3),
            Kind::Ending { way: Way::Network, .. } => Duration::from_secs(25),
            Kind::Ending { .. } => Duration::from_secs(4),
            Kind::Idle { .. } => lengths.idle / 2, // both scripts at the same time
        }
    }
}
