//! The plan: all steps of the study, in order. Each step has a name, which is also the name of its result.

use framewire_loadtest::Strategy;

use super::figures::VERSIONS;
use super::steps::{Kind, Run, Step, Target, Way};
use super::trials;
use crate::bench::Load;
use crate::setup::Script;

/// The groups of steps.
pub const GROUPS: [&str; 21] = [
    "v1", "v4", "v5", "v6", "v7", "beyond", "kept", "mux", "stampede", "ending", "bridge", "embedded",
    "warm", "retries", "broken", "nagle", "unframed", "waiting", "garbage", "limit", IDLE,
];
/// The group of the steps about idle connections. Each of these steps has a window of its own.
pub const IDLE: &str = "idle";

/// Further rates for versions 4 and 5. They are needed because the rates at which these versions fail depend on the
/// operating system.
pub const BEYOND: [(Strategy, &[u32]); 2] =
    [(Strategy::PerRequest, &[40, 60, 80]), (Strategy::Pool, &[60, 400])];
/// The rate of an additional row with a socket per request. In this row, the script keeps the sockets that it has
/// closed, so that Lua does not collect them as garbage. The row is compared with the row of `beyond` at the same rate.
pub const KEPT: u32 = 40;
/// The name of that row.
pub const KEPT_ROW: &str = "kept-study";

/// The numbers of clients in the stampedes, in which all clients connect at once.
pub const STAMPEDES: [usize; 3] = [5, 20, 100];
/// The rate at which the study's pool of sockets began to fail.
pub const POOL_FAILED: u32 = 15;

/// The size of a long message, in bytes.
const LONG: usize = 5000;

/// The steps of a pass over the plan. Passes are counted from 1. The first pass has all steps, and the others have the
/// steps that are repeated.
pub fn pass(steps: &[Step], pass: usize) -> Vec<Step> {
    let steps = steps.iter().filter(|step| pass == 1 || step.is_repeated());
    steps.map(|step| Step { name: pass_name(&step.name, pass), ..step.clone() }).collect()
}

/// The name of a step's result in a pass.
pub fn pass_name(name: &str, pass: usize) -> String {
    if pass == 1 { name.to_owned() } else { format!("{name}.{pass}") }
}

/// All steps. Those that need the same window follow each other.
pub fn all() -> Vec<Step> {
    let mut steps = Vec::new();
    for script in Script::BOTH {
        let kind = Kind::Run(Run::text(script, Strategy::Single, SINGLE));
        steps.push(Step { group: "v1", name: single_row(script), kind });
        steps.extend(versions(script));
        steps.extend(beyond(script));
        if script == Script::Study {
            let run = Run { keeps: true, ..Run::text(script, Strategy::PerRequest, KEPT) };
            steps.push(Step { group: "kept", name: KEPT_ROW.to_owned(), kind: Kind::Run(run) });
        }
        steps.extend(multiplexed(script));
        for clients in STAMPEDES {
            let name = stampede(script, clients);
            steps.push(Step { group: "stampede", name, kind: Kind::Stampede { script, clients } });
        }
        for way in Way::ALL {
            let name = ending(script, way);
            steps.push(Step { group: "ending", name, kind: Kind::Ending { script, way } });
        }
        if script == Script::Ours {
            steps.extend(rows("bridge", "bridge", Target::Bridge, Some(Strategy::Pool), BRIDGE));
        }
        steps.extend(trials::steps(Some(script)));
        let name = idle(script);
        steps.push(Step { group: IDLE, name, kind: Kind::Idle { script } });
    }
    steps.extend(rows("embedded", "embedded", Target::Embedded, None, EMBEDDED));
    steps.extend(trials::steps(None));
    steps
}

/// The rate at which version 1 is measured, in requests per second. The study did not load-test this version, so this
/// is the rate of the study's goal.
pub const SINGLE: u32 = 5;

/// The name of version 1's row.
pub fn single_row(script: Script) -> String {
    version_row("v1", script, None, SINGLE)
}

/// The name of a version's row.
pub fn version_row(version: &str, script: Script, bytes: Option<usize>, asked: u32) -> String {
    format!("{version}-{}-{}-{asked}", script.name(), payload(bytes))
}

/// The sizes of the messages in a group of rows, in bytes, and the rows' loads. `None` means UUIDs.
pub type Loads = &'static [(Option<usize>, Load)];

/// The beginning of the names of multiplexed rows with the study's kind of script.
pub const MUX_STUDY: &str = "mux-study";
/// The beginning of the names of multiplexed rows with Framewire's script.
pub const MUX_OURS: &str = "mux-framewire";
/// The loads of multiplexed rows with the study's kind of script: text messages, several in flight on one socket.
pub const MULTIPLEXED_STUDY: Loads =
    &[(None, Load::Rate(40)), (None, Load::Rate(400)), (None, Load::Rate(1000))];
/// The loads of multiplexed rows with Framewire's script, over the link.
pub const MULTIPLEXED_OURS: Loads = &[
    (None, Load::Rate(5)),
    (None, Load::Rate(40)),
    (None, Load::Rate(400)),
    (None, Load::Rate(1000)),
    (None, Load::Rate(5000)),
    (None, Load::Rate(20_000)),
    (None, Load::Clients(64)),
    (Some(LONG), Load::Rate(400)),
    (Some(LONG), Load::Rate(2000)),
];
/// The loads of the HTTP bridge.
pub const BRIDGE: Loads = &[
    (None, Load::Rate(5)),
    (None, Load::Rate(40)),
    (None, Load::Rate(400)),
    (None, Load::Rate(1000)),
    (None, Load::Rate(5000)),
    (None, Load::Rate(10_000)),
    (Some(LONG), Load::Rate(400)),
];
/// The loads of the embedded core.
pub const EMBEDDED: Loads = &[
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

/// The part of a row's name that describes its messages: `uuid`, or their size in bytes.
fn payload(bytes: Option<usize>) -> String {
    bytes.map_or("uuid".to_owned(), |bytes| bytes.to_string())
}

fn versions(script: Script) -> impl Iterator<Item = Step> {
    VERSIONS.iter().flat_map(move |version| {
        version.rows.iter().map(move |published| Step {
            group: version.name,
            name: version_row(version.name, script, published.bytes, published.asked),
            kind: Kind::Run(Run {
                bytes: published.bytes,
                ..Run::text(script, version.strategy, published.asked)
            }),
        })
    })
}

/// The name of the step for a stampede.
pub fn stampede(script: Script, clients: usize) -> String {
    format!("stampede-{}-{clients}", script.name())
}

/// The name of the step for a way in which the connection to a script ends.
pub fn ending(script: Script, way: Way) -> String {
    format!("ending-{}-{}", script.name(), way.name())
}

/// The name of the step for an idle connection.
pub fn idle(script: Script) -> String {
    format!("idle-{}", script.name())
}

/// The name of a row of `beyond`.
pub fn beyond_row(script: Script, strategy: Strategy, asked: u32) -> String {
    format!("beyond-{}-{strategy}-{asked}", script.name())
}

fn beyond(script: Script) -> impl Iterator<Item = Step> {
    BEYOND.iter().flat_map(move |(strategy, rates)| {
        rates.iter().map(move |rate| Step {
            group: "beyond",
            name: beyond_row(script, *strategy, *rate),
            kind: Kind::Run(Run::text(script, *strategy, *rate)),
        })
    })
}

fn multiplexed(script: Script) -> impl Iterator<Item = Step> {
    let (loads, names) = match script {
        Script::Study => (MULTIPLEXED_STUDY, MUX_STUDY),
        Script::Ours => (MULTIPLEXED_OURS, MUX_OURS),
    };
    let target = Target::Window { script, binary: script == Script::Ours };
    rows("mux", names, target, Some(Strategy::Mux), loads)
}

/// A step for each of these loads. Their names begin with `names`.
fn rows(
    group: &'static str,
    names: &'static str,
    target: Target,
    strategy: Option<Strategy>,
    loads: Loads,
) -> impl Iterator<Item = Step> {
    loads.iter().map(move |&(bytes, load)| Step {
        group,
        name: row(names, bytes, load),
        kind: Kind::Run(Run { target, strategy, bytes, load, keeps: false }),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;
    use crate::study::steps::Lengths;

    #[test]
    fn step_names_are_unique_and_all_groups_are_known() {
        let steps = all();
        let names: HashSet<_> = steps.iter().map(|step| &step.name).collect();
        assert_eq!(names.len(), steps.len());
        for step in &steps {
            assert!(GROUPS.contains(&step.group), "{}", step.group);
        }
    }

    #[test]
    fn every_published_row_is_measured_with_both_scripts_and_steps_for_one_window_follow_each_other() {
        let steps = all();
        let published: usize = VERSIONS.iter().map(|version| version.rows.len()).sum();
        let versions = VERSIONS.map(|version| version.name);
        let measured = steps.iter().filter(|step| versions.contains(&step.group)).count();
        assert_eq!((published, measured), (54, 108));
        let mut windows: Vec<_> = steps.iter().map(Step::window).collect();
        windows.dedup();
        assert_eq!(windows, [Some(Script::Study), Some(Script::Ours), None]);
    }

    #[test]
    fn only_runs_are_repeated_and_each_pass_has_names_of_its_own() {
        let steps = all();
        let (first, second) = (pass(&steps, 1), pass(&steps, 2));
        assert_eq!(first, steps);
        assert!(second.len() < first.len() && second.len() > 150, "{}", second.len());
        assert!(second.iter().all(|step| step.name.ends_with(".2")));
        let is_run = |step: &Step| matches!(step.kind, Kind::Run(_) | Kind::Trial { .. });
        assert!(second.iter().all(is_run) && second.iter().all(|step| !step.name.starts_with("garbage")));
    }

    #[test]
    fn a_whole_study_takes_less_than_half_an_hour() {
        let steps = all();
        let lengths = Lengths::default();
        let time = |step: &Step| step.estimate(&lengths) / lengths.share(step);
        let passes = (1..=lengths.passes).flat_map(|number| pass(&steps, number));
        let total = passes.map(|step| time(&step)).sum::<Duration>();
        // The rest of the half hour, four minutes, is for opening windows and for late answers.
        assert!(total < Duration::from_secs(26 * 60), "{total:?}");
    }
}
