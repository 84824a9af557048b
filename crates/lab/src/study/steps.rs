//! What a step of the study is.

use std::time::Duration;

use framewire_lab::Signal;
use framewire_loadtest::Strategy;

use crate::bench::Load;
use crate::setup::Script;

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
    /// How much is asked.
    pub load: Load,
    /// Whether the study's script keeps the sockets that it closes, so that they are never collected as garbage.
    pub keeps: bool,
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
            Kind::Run(run) => match run.target {
                Target::Window { script, .. } => Some(script),
                Target::Bridge => Some(Script::Ours),
                Target::Embedded => None,
            },
            Kind::Stampede { script, .. } | Kind::Ending { script, .. } | Kind::Idle { script } => {
                Some(*script)
            }
        }
    }

    /// About how long it takes, when a row takes `row`.
    pub fn estimate(&self, row: Duration) -> Duration {
        let seconds = match &self.kind {
            Kind::Run(_) => return row + Duration::from_secs(2),
            Kind::Stampede { script: Script::Study, clients } if *clients > 5 => 25,
            Kind::Stampede { .. } => 3,
            Kind::Ending { way: Way::Network, .. } => 25,
            Kind::Ending { .. } => 4,
            Kind::Idle { .. } => 2,
        };
        Duration::from_secs(seconds)
    }
}
