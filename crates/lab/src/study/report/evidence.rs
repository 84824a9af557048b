//! Reads the results of a study, and adds them up.

use std::collections::HashMap;

use anyhow::Context;
use framewire_loadtest::Strategy;
use framewire_loadtest::report::Report;
use framewire_loadtest::row::Row;

use crate::setup::Script;
use crate::study::archive::{self, Archive, StudyInfo, machine_words};
use crate::study::figures::{Published, VERSIONS};
use crate::study::measure::{ended_name, system_name};
use crate::study::passes::combined;
use crate::study::plan;
use crate::study::rerun::Rerun;
use crate::study::results::{Allocations, EndedRun, Ending, Idle, Stampede, SystemCounters};
use crate::study::steps::{Kind, Run, Search, Step};
use crate::study::trials;

/// The results from which the page is made.
#[derive(Debug)]
pub struct Evidence {
    /// The programs, machines and options of the study.
    pub about: StudyInfo,
    /// The folder of the results, as it is written in links on the page.
    pub link: String,
    archive: Archive,
    /// All steps, in order.
    steps: Vec<Step>,
    /// For each step, by name: one row that combines all passes.
    rows: HashMap<String, Row>,
    /// For each step, by name: the row of each pass.
    passes: HashMap<String, Vec<Row>>,
    /// For each step that has a pass from a machine other than the first, by name: the number of that machine.
    machines: HashMap<String, usize>,
}

impl Evidence {
    /// Reads the results in `archive`.
    ///
    /// # Errors
    /// If there is no study in the archive's folder, or if its file has another schema version.
    pub fn read(archive: &Archive) -> anyhow::Result<Evidence> {
        let folder = archive.folder();
        let about = archive.about()?.with_context(|| {
            format!("there is no study in {}; make one with `framewire-lab study`", folder.display())
        })?;
        let link = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let steps = plan::all();
        let row = |step: &Step, number| archive.report(&plan::pass_name(&step.name, number))?.rows.pop();
        let passes = |step: &Step| (1..=about.passes).filter_map(|number| row(step, number)).collect();
        let passes: HashMap<_, Vec<_>> = steps.iter().map(|step| (step.name.clone(), passes(step))).collect();
        let rows =
            passes.iter().filter_map(|(name, passes)| Some((name.clone(), combined(passes)?))).collect();
        let known: Vec<_> = about.machines().into_iter().map(machine_words).collect();
        let machine = |name: &String| {
            let report = archive.report(name).or_else(|| archive.limit(name))?;
            let place = known.iter().position(|known| *known == machine_words(&report.machine))?;
            (place > 0).then_some(place + 1)
        };
        let machines = |step: &Step| {
            let names = (1..=about.passes).map(|number| plan::pass_name(&step.name, number));
            Some((step.name.clone(), names.filter_map(|name| machine(&name)).max()?))
        };
        let machines = steps.iter().filter_map(machines).collect();
        Ok(Evidence { about, link, archive: archive.clone(), steps, rows, passes, machines })
    }

    /// How many steps have no result yet, and how many steps there are. A step counts once for each pass that has it.
    pub fn missing(&self) -> (usize, usize) {
        let steps: Vec<_> =
            (1..=self.about.passes).flat_map(|number| plan::pass(&self.steps, number)).collect();
        (steps.iter().filter(|step| !self.archive.is_done(step)).count(), steps.len())
    }

    /// The passes of a row, by the name of its step.
    pub fn passes(&self, name: &str) -> &[Row] {
        self.passes.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The rows that were measured again.
    pub fn rerun(&self) -> Option<Rerun> {
        Rerun::read(&self.archive)
    }

    /// The row that combines all passes, by the name of its step.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.get(name)
    }

    /// The rows of these steps, or `None` if one of them is missing.
    pub fn rows<const COUNT: usize>(&self, names: &[String; COUNT]) -> Option<[&Row; COUNT]> {
        let rows: Option<Vec<_>> = names.iter().map(|name| self.row(name)).collect();
        rows?.try_into().ok()
    }

    /// The row that repeats a published one.
    pub fn version(&self, version: &str, script: Script, published: &Published) -> Measured<'_> {
        self.measured(plan::version_row(version, script, published.bytes, published.asked))
    }

    /// A row and its passes, by the name of its step.
    pub fn measured(&self, name: String) -> Measured<'_> {
        Measured { row: self.row(&name), passes: self.passes(&name), name }
    }

    /// All rows that have been measured, in order.
    pub fn runs(&self) -> impl Iterator<Item = (&Step, &Run, &Row)> {
        self.steps.iter().filter_map(|step| match &step.kind {
            Kind::Run(run) => Some((step, run, self.rows.get(&step.name)?)),
            _ => None,
        })
    }

    /// The rows of versions 4 to 7 with one script.
    pub fn versions(&self, script: Script) -> impl Iterator<Item = (&'static str, &Published, Measured<'_>)> {
        VERSIONS.iter().flat_map(move |version| {
            let rows = version.rows.iter();
            rows.map(move |published| {
                (version.name, published, self.version(version.name, script, published))
            })
        })
    }

    /// The result of a stampede.
    pub fn stampede(&self, script: Script, clients: usize) -> Option<Stampede> {
        self.archive.result(&plan::stampede(script, clients))
    }

    /// What happened to a script when its client ended or its network failed, by the name of the step.
    pub fn ending(&self, name: &str) -> Option<Ending> {
        self.archive.result(name)
    }

    /// The result for the connection that was kept idle.
    pub fn idle(&self, script: Script) -> Option<Idle> {
        self.archive.result(&plan::idle(script))
    }

    /// The runs during which mGBA ended, with the names of their lines in the archive.
    pub fn ended(&self) -> Vec<(String, Vec<EndedRun>)> {
        let steps = (1..=self.about.passes).flat_map(|number| plan::pass(&self.steps, number));
        let names = steps.map(|step| ended_name(&step.name));
        names.filter_map(|name| self.archive.result(&name).map(|ended| (name, ended))).collect()
    }

    /// The system's counters during a trial.
    ///
    /// The number of packets is the sum over all passes, or `None` if a pass has no number. The numbers of connections
    /// in TIME_WAIT are those of the pass that began with the most. The garbage is that of the first pass, the only one
    /// that counts it.
    pub fn system(&self, name: &str) -> Option<SystemCounters> {
        let names = (1..=self.about.passes).map(|number| system_name(&plan::pass_name(name, number)));
        let passes: Vec<SystemCounters> = names.filter_map(|name| self.archive.result(&name)).collect();
        let packets = passes.iter().map(|system| system.packets).sum();
        let waiting = passes.iter().map(|system| system.waiting).max()?;
        Some(SystemCounters { packets, waiting, ..passes.into_iter().next()? })
    }

    /// The report of a search for a limit: the limit that it found, and its runs.
    pub fn limit(&self, search: &Search) -> Option<Report> {
        self.archive.limit(&trials::limit(search))
    }

    /// The allocations of `framewire serve`.
    pub fn allocations(&self) -> Option<Allocations> {
        self.archive.result(trials::ALLOCATIONS)
    }

    /// A Markdown link to a step's result. If the machine is not the first one, the machine's number follows.
    pub fn source(&self, text: &str, name: &str) -> String {
        let mark = self.machines.get(name).map_or(String::new(), |number| format!("<sup>{number}</sup>"));
        format!("[{text}]({}/{}#{name}){mark}", self.link, archive::FILE)
    }
}

/// A row of the plan, whether it has been measured or not.
#[derive(Debug)]
pub struct Measured<'a> {
    /// The name of its step.
    pub name: String,
    /// The row that combines all passes, if it was measured.
    pub row: Option<&'a Row>,
    /// Its passes.
    pub passes: &'a [Row],
}

/// Totals and extremes over several rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// The number of rows.
    pub rows: usize,
    /// The number of requests.
    pub requests: u64,
    /// How many requests got no correct reply, for any reason.
    pub failed: u64,
    /// How many requests failed because their connection was reset.
    pub reset: u64,
    /// How many requests got a wrong reply, such as the reply to another request.
    pub wrong: u64,
    /// The slowest correct reply, in ms.
    pub slowest: f64,
    /// The smallest share of correct replies, in percent.
    pub success: f64,
}

impl Tally {
    /// The tally of `rows`; `None` if there are no rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<Tally> {
        let mut tally = Tally { success: 100.0, ..Tally::default() };
        for row in rows {
            tally.rows += 1;
            tally.requests += row.requests;
            tally.failed += row.requests.saturating_sub(row.correct);
            tally.reset += failures(row, "reset");
            tally.wrong += failures(row, "wrong reply");
            tally.slowest = tally.slowest.max(row.intended.max);
            tally.success = tally.success.min(row.success);
        }
        (tally.rows > 0).then_some(tally)
    }
}

/// How many requests of a row failed in this way.
pub fn failures(row: &Row, kind: &str) -> u64 {
    row.failures.get(kind).copied().unwrap_or(0)
}

/// The description of a strategy on the page.
pub fn words(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Single => "one shared socket",
        Strategy::PerRequest => "a socket per request",
        Strategy::Pool => "a pool",
        Strategy::PoolRetry => "a pool with three tries",
        Strategy::PoolKeepBroken => "a pool that keeps broken sockets",
        Strategy::Mux => "one socket, many in flight",
    }
}
