//! Everything the study does, in order, each step with a name that its result's file bears.

use std::time::Duration;

use framewire_link::strategy::Strategy;
use framewire_stock::Signal;

use super::figures::VERSIONS;

/// Which script a stock mGBA runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// The study's kind.
    Study,
    /// Framewire's.
    Ours,
}

impl Script {
    /// Both, in the order they are measured.
    pub const BOTH: [Script; 2] = [Script::Study, Script::Ours];

    /// Its name in names of steps.
    pub fn name(self) -> &'static str {
        match self {
            Script::Study => "study",
            Script::Ours => "framewire",
        }
    }
}

/// What a row of requests goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
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

/// How much is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// So many requests a second.
    Rate(u32),
    /// So many clients, each of which asks again when answered.
    Clients(usize),
}

/// One run of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What they go to.
    pub stand: Stand,
    /// How sockets are used; none in the tester's own process.
    pub strategy: Option<Strategy>,
    /// Bytes of random data in a message; none is a UUID.
    pub bytes: Option<usize>,
    /// How much is asked.
    pub load: Load,
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
            Kind::Run(run) => match run.stand {
                Stand::Window { script, .. } => Some(script),
                Stand::Bridge => Some(Script::Ours),
                Stand::Embedded => None,
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
            Kind::Ending { way: Way::Network, .. } => 20,
            Kind::Ending { .. } => 4,
            Kind::Idle { .. } => 2,
        };
        Duration::from_secs(seconds)
    }
}

/// Groups, in the order of their first steps.
pub const GROUPS: [&str; 10] =
    ["v4", "v5", "v6", "v7", "mux", "repeat", "stampede", "ending", "bridge", "embedded"];
/// The group that is always last of its window.
pub const IDLE: &str = "idle";

/// Clients of a stampede.
pub const STAMPEDES: [usize; 3] = [5, 20, 100];
/// How often the row of the group `repeat` is measured.
pub const REPEATS: usize = 3;
/// That row's rate, at which the study's pool began to fail.
pub const REPEATED: u32 = 15;

const LONG: usize = 5000;

/// All steps. Those that need the same window follow each other.
pub fn all() -> Vec<Step> {
    let mut steps = Vec::new();
    for script in Script::BOTH {
        steps.extend(versions(script));
        steps.extend(multiplexed(script));
        steps.extend(repeats(script));
        for clients in STAMPEDES {
            let name = format!("stampede-{}-{clients}", script.name());
            steps.push(Step { group: "stampede", name, kind: Kind::Stampede { script, clients } });
        }
        for way in Way::ALL {
            let name = format!("ending-{}-{}", script.name(), way.name());
            steps.push(Step { group: "ending", name, kind: Kind::Ending { script, way } });
        }
        if script == Script::Ours {
            steps.extend(bridge());
        }
        let name = format!("idle-{}", script.name());
        steps.push(Step { group: IDLE, name, kind: Kind::Idle { script } });
    }
    steps.extend(embedded());
    steps
}

/// The name of a version's row.
pub fn version_row(version: &str, script: Script, bytes: Option<usize>, asked: u32) -> String {
    format!("{version}-{}-{}-{asked}", script.name(), payload(bytes))
}

/// Rates of multiplexing as it can be done with the study's kind of script: its text, several messages in flight.
pub const MULTIPLEXED_STUDY: &[(Option<usize>, Load)] =
    &[(None, Load::Rate(40)), (None, Load::Rate(400)), (None, Load::Rate(1000))];
/// Rates of the multiplexed link.
pub const MULTIPLEXED_OURS: &[(Option<usize>, Load)] = &[
    (None, Load::Rate(5)),
    (None, Load::Rate(40)),
    (None, Load::Rate(100)),
    (None, Load::Rate(400)),
    (None, Load::Rate(1000)),
    (None, Load::Rate(5000)),
    (None, Load::Rate(10_000)),
    (None, Load::Rate(20_000)),
    (None, Load::Clients(64)),
    (Some(LONG), Load::Rate(40)),
    (Some(LONG), Load::Rate(400)),
    (Some(LONG), Load::Rate(2000)),
];
/// Rates of the HTTP bridge.
pub const BRIDGE: &[(Option<usize>, Load)] = &[
    (None, Load::Rate(5)),
    (None, Load::Rate(40)),
    (None, Load::Rate(100)),
    (None, Load::Rate(400)),
    (None, Load::Rate(1000)),
    (None, Load::Rate(5000)),
    (None, Load::Rate(10_000)),
    (Some(LONG), Load::Rate(40)),
    (Some(LONG), Load::Rate(400)),
];
/// Rates of the embedded core.
pub const EMBEDDED: &[(Option<usize>, Load)] = &[
    (None, Load::Rate(60)),
    (None, Load::Rate(1000)),
    (None, Load::Rate(10_000)),
    (None, Load::Rate(50_000)),
    (None, Load::Clients(64)),
    (Some(LONG), Load::Rate(1000)),
];

/// The name of a row of `mux`, `bridge` or `embedded`.
pub fn row(group: &str, bytes: Option<usize>, load: Load) -> String {
    match load {
        Load::Rate(rate) => format!("{group}-{}-{rate}", payload(bytes)),
        Load::Clients(clients) => format!("{group}-{}-{clients}-clients", payload(bytes)),
    }
}

fn payload(bytes: Option<usize>) -> String {
    bytes.map_or("uuid".to_owned(), |bytes| bytes.to_string())
}

fn versions(script: Script) -> impl Iterator<Item = Step> {
    VERSIONS.iter().flat_map(move |version| {
        version.rows.iter().map(move |published| Step {
            group: version.name,
            name: version_row(version.name, script, published.bytes, published.asked),
            kind: Kind::Run(Run {
                stand: Stand::Window { script, binary: false },
                strategy: Some(version.strategy),
                bytes: published.bytes,
                load: Load::Rate(published.asked),
            }),
        })
    })
}

fn multiplexed(script: Script) -> impl Iterator<Item = Step> {
    let (rows, group) = match script {
        Script::Study => (MULTIPLEXED_STUDY, "mux-study"),
        Script::Ours => (MULTIPLEXED_OURS, "mux-framewire"),
    };
    let stand = Stand::Window { script, binary: script == Script::Ours };
    rows.iter().map(move |(bytes, load)| Step {
        group: "mux",
        name: row(group, *bytes, *load),
        kind: Kind::Run(Run { stand, strategy: Some(Strategy::Mux), bytes: *bytes, load: *load }),
    })
}

fn repeats(script: Script) -> impl Iterator<Item = Step> {
    let stand = Stand::Window { script, binary: false };
    (1..=REPEATS).map(move |number| Step {
        group: "repeat",
        name: format!("repeat-{}-{number}", script.name()),
        kind: Kind::Run(Run {
            stand,
            strategy: Some(Strategy::Pool),
            bytes: None,
            load: Load::Rate(REPEATED),
        }),
    })
}

fn bridge() -> impl Iterator<Item = Step> {
    BRIDGE.iter().map(|(bytes, load)| Step {
        group: "bridge",
        name: row("bridge", *bytes, *load),
        kind: Kind::Run(Run {
            stand: Stand::Bridge,
            strategy: Some(Strategy::Pool),
            bytes: *bytes,
            load: *load,
        }),
    })
}

fn embedded() -> impl Iterator<Item = Step> {
    EMBEDDED.iter().map(|(bytes, load)| Step {
        group: "embedded",
        name: row("embedded", *bytes, *load),
        kind: Kind::Run(Run { stand: Stand::Embedded, strategy: None, bytes: *bytes, load: *load }),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_different_and_groups_known() {
        let steps = all();
        let names: HashSet<_> = steps.iter().map(|step| &step.name).collect();
        assert_eq!(names.len(), steps.len());
        for step in &steps {
            assert!(GROUPS.contains(&step.group) || step.group == IDLE, "{}", step.group);
        }
    }

    #[test]
    fn every_published_row_is_measured_with_both_scripts_and_windows_are_opened_once() {
        let steps = all();
        let published: usize = VERSIONS.iter().map(|version| version.rows.len()).sum();
        let versions = VERSIONS.map(|version| version.name);
        let measured = steps.iter().filter(|step| versions.contains(&step.group)).count();
        assert_eq!((published, measured), (23, 46));
        let mut windows: Vec<_> = steps.iter().map(Step::window).collect();
        windows.dedup();
        assert_eq!(windows, [Some(Script::Study), Some(Script::Ours), None]);
    }

    #[test]
    fn a_full_study_fits_in_an_hour_and_a_quick_one_in_twenty_minutes() {
        let total = |row| all().iter().map(|step| step.estimate(Duration::from_secs(row))).sum::<Duration>();
        // With ten minutes left for windows and for what answers late.
        assert!(total(30) < Duration::from_secs(70 * 60), "{:?}", total(30));
        assert!(total(5) < Duration::from_secs(18 * 60), "{:?}", total(5));
    }
}
