//! The runs that change one thing to answer a question of the study, and the searches for limits.

use framewire_loadtest::Strategy;

use super::steps::{Change, Kind, Run, Search, Step, Target};
use crate::setup::Script;

/// A question of the study, and the runs that answer it.
#[derive(Debug)]
pub struct Question {
    /// The group of its steps.
    pub group: &'static str,
    /// The title of its section on the page.
    pub title: &'static str,
    /// The text of that section, which says what is measured.
    pub about: &'static str,
    /// The runs.
    pub trials: &'static [Trial],
}

/// A run that sends text messages.
#[derive(Debug, Clone, Copy)]
pub struct Trial {
    /// The end of its step's name, after the group and the script.
    pub name: &'static str,
    /// The script; `None` if the trial is measured with both scripts.
    pub script: Option<Script>,
    /// How sockets are used.
    pub strategy: Strategy,
    /// The number of bytes in a message; `None` means that the message is a UUID.
    pub bytes: Option<usize>,
    /// Requests per second.
    pub rate: u32,
    /// What is different about it.
    pub change: Change,
}

impl Trial {
    /// The scripts with which it is measured.
    pub fn scripts(&self) -> impl Iterator<Item = Script> {
        let wanted = self.script;
        Script::BOTH.into_iter().filter(move |script| wanted.is_none_or(|wanted| wanted == *script))
    }
}

/// The default values for the trials below.
const PLAIN: Trial = Trial {
    name: "",
    script: None,
    strategy: Strategy::Pool,
    bytes: None,
    rate: 20,
    change: Change::Nothing,
};
/// The default values for trials with only the study's kind of script.
const STUDY: Trial = Trial { script: Some(Script::Study), ..PLAIN };
/// The default values for trials that come after a load with a socket per request.
const AFTER: Trial = Trial { rate: 15, change: Change::AfterClosing, ..STUDY };

/// All questions.
pub const QUESTIONS: [Question; 6] = [
    Question {
        group: "warm",
        title: "After a warm-up",
        about: "Version 6 after a warm-up: 5 s of the same load, which are not measured. At 160/s, the study had errors after \
                a cold start, and no errors after a warm-up.",
        trials: &[
            Trial { name: "5", strategy: Strategy::PoolRetry, rate: 5, change: Change::Warm, ..PLAIN },
            Trial { name: "160", strategy: Strategy::PoolRetry, rate: 160, change: Change::Warm, ..PLAIN },
        ],
    },
    Question {
        group: "retries",
        title: "The study's waits between tries",
        about: "Version 6 with the waits of 2025: 400 ms before the second try, 1,200 ms before the third. The rows of \
                versions 6 and 7 wait 50 and 100 ms.",
        trials: &[
            Trial { name: "20", strategy: Strategy::PoolRetry, change: Change::Waits, ..PLAIN },
            Trial { name: "40", strategy: Strategy::PoolRetry, rate: 40, change: Change::Waits, ..PLAIN },
        ],
    },
    Question {
        group: "broken",
        title: "A pool that keeps broken sockets",
        about: "As in version 5 of 2025, every socket returns to the pool. If it is broken, the pool tries to connect it again. \
                Linux refuses that with “already connected”, as Windows does with error 10056. Resets happen only after \
                connections were closed. So the last two rows come right after a load of 40 requests/s with a socket per \
                request: one row with this pool, one with a pool that drops broken sockets.",
        trials: &[
            Trial { name: "15", strategy: Strategy::PoolKeepBroken, rate: 15, ..PLAIN },
            Trial { name: "15-after", strategy: Strategy::PoolKeepBroken, ..AFTER },
            Trial { name: "15-after-pool", ..AFTER },
        ],
    },
    Question {
        group: "nagle",
        title: "Nagle's algorithm",
        about: "The same run with Nagle's algorithm, the system's default, which may hold back small packets, and without it \
                (TCP_NODELAY). *packets* is the number of TCP segments that the whole machine sent during the run, in both \
                directions of all connections. About 10 per second come from reading the frame counter.",
        trials: &[
            Trial { name: "pool-20-off", ..STUDY },
            Trial { name: "pool-20-on", change: Change::Nagle, ..STUDY },
            Trial { name: "mux-400-off", strategy: Strategy::Mux, rate: 400, ..STUDY },
            Trial { name: "mux-400-on", strategy: Strategy::Mux, rate: 400, change: Change::Nagle, ..STUDY },
        ],
    },
    Question {
        group: "unframed",
        title: "Version 6 with long messages",
        about: "Messages have no mark at their end, as before version 7. The script sends back each piece as it arrives, \
                and the client takes one read of at most 1,024 bytes as the reply. Framewire's script has no such mode. \
                In the second row, messages have 36 to 5,000 bytes; a fifth of them fit into one read.",
        trials: &[
            Trial { name: "5000-5", bytes: Some(5000), rate: 5, change: Change::Unframed, ..STUDY },
            Trial { name: "mixed-20", change: Change::UnframedMixed, ..STUDY },
            Trial { name: "uuid-20", change: Change::Unframed, ..STUDY },
        ],
    },
    Question {
        group: "waiting",
        title: "Right after another run",
        about: "A run with a socket per request, right after another run of the same kind. *Waiting* is the number of closed \
                connections that the system keeps for a minute (state TIME_WAIT), before and after the run, in the pass that \
                began with the most of them.",
        trials: &[Trial { name: "20", strategy: Strategy::PerRequest, change: Change::RightAfter, ..PLAIN }],
    },
];

/// The group of runs that count Lua's garbage. The page does not show their latency.
pub const GARBAGE: &str = "garbage";
/// The name of the step that counts the server's allocations.
pub const ALLOCATIONS: &str = "allocations-serve";

/// The searches for the highest rates.
pub const SEARCHES: [Search; 5] = [
    Search {
        way: "version 7 with the study's kind of script",
        target: Target::Window { script: Script::Study, binary: false },
        strategy: Some(Strategy::PoolRetry),
        start: 200,
    },
    Search {
        way: "version 7 with Framewire's script",
        target: Target::Window { script: Script::Ours, binary: false },
        strategy: Some(Strategy::PoolRetry),
        start: 4000,
    },
    Search {
        way: "Framewire's link",
        target: Target::Window { script: Script::Ours, binary: true },
        strategy: Some(Strategy::Mux),
        start: 20_000,
    },
    Search {
        way: "Framewire over HTTP",
        target: Target::Bridge,
        strategy: Some(Strategy::Pool),
        start: 8000,
    },
    Search { way: "the embedded core", target: Target::Embedded, strategy: None, start: 50_000 },
];
/// The goal that a rate must meet in a search.
pub const GOAL: &str = "success=100%,p99<60ms,achieved>=99%";

/// The name of a trial's step.
pub fn name(group: &str, script: Script, trial: &str) -> String {
    format!("{group}-{}-{trial}", script.name())
}

/// The name of the step that counts Lua's garbage.
pub fn garbage(script: Script) -> String {
    format!("{GARBAGE}-{}", script.name())
}

/// The name of the step for a search.
pub fn limit(search: &Search) -> String {
    let target = match search.target {
        Target::Window { script: Script::Study, .. } => "study",
        Target::Window { binary: false, .. } => "framewire",
        Target::Window { binary: true, .. } => "link",
        Target::Bridge => "http",
        Target::Embedded => "embedded",
    };
    format!("limit-{target}")
}

/// The steps of this file that need a window with this script; with `None`, those that need no window.
pub fn steps(window: Option<Script>) -> Vec<Step> {
    let mut steps = Vec::new();
    for question in &QUESTIONS {
        for trial in question.trials {
            for script in trial.scripts().filter(|script| Some(*script) == window) {
                let kind = Kind::Trial { run: run(script, trial), change: trial.change };
                let name = name(question.group, script, trial.name);
                steps.push(Step { group: question.group, name, kind });
            }
        }
    }
    if let Some(script) = window {
        let trial = Trial { rate: 40, change: Change::Garbage, ..PLAIN };
        let kind = Kind::Trial { run: run(script, &trial), change: trial.change };
        steps.push(Step { group: GARBAGE, name: garbage(script), kind });
    }
    if window == Some(Script::Ours) {
        steps.push(Step { group: GARBAGE, name: ALLOCATIONS.to_owned(), kind: Kind::Allocations });
    }
    for search in SEARCHES {
        let step = Step { group: "limit", name: limit(&search), kind: Kind::Limit(search) };
        if step.window() == window {
            steps.push(step);
        }
    }
    steps
}

fn run(script: Script, trial: &Trial) -> Run {
    Run { bytes: trial.bytes, ..Run::text(script, trial.strategy, trial.rate) }
}
