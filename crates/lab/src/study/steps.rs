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
    /// The network between it and the script goes silent.
    Network,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 5] = [
        Way::Signal(Signal::INT),
        Way::Signal(Signal::TERM),
        Way::Signal(Signal::HUP),
        Way::Signal(Signal::KILL),
        Way::Network,
    ];

    /// Its name in names of steps.
    pub fn name(self) -> &'static str {
        match self {
            Way::Signal(Signal::INT) => "sigint",
            Way::Signal(Signal::TERM) => "sigterm",
            Way::Signal(Signal::HUP) => "sighup",
            Way::Signal(_) => "sigkill",
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

    /// About how long it takes, when a row takes `row`.
    pub fn estimate(&self, row: Duration) -> Duration {
        let seconds = match &self.kind {
            Kind::Trial { change: Change::RightAfter | Change::AfterClosing, .. } | Kind::Allocations => {
                return row * 2 + Duration::from_secs(2);
            }
            Kind::Run(_) | Kind::Trial { .. } => return row + Duration::from_secs(2),
            Kind::Limit(_) => 50,
            Kind::Stampede { script: Script::Study, clients } if *clients > 5 => 25,
            Kind::Stampede { .. } => 3,
            Kind::Ending { way: Way::Network, .. } => 25,
            Kind::Ending { .. } => 4,
            Kind::Idle { .. } => 2,
        };
        Duration::from_secs(seconds)
    }
}
