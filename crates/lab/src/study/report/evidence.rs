//! The results of a study, read.

use std::collections::HashMap;

use anyhow::Context;
use framewire_loadtest::Strategy;
use framewire_loadtest::report::Report;
use framewire_loadtest::row::Row;

use crate::setup::Script;
use crate::study::archive::{self, Archive, StudyInfo, machine_words};
use crate::study::figures::{Published, VERSIONS};
use crate::study::measure::system_name;
use crate::study::plan;
use crate::study::results::{Allocations, Ending, Idle, Stampede, System};
use crate::study::steps::{Kind, Run, Search, Step};
use crate::study::trials;

/// Everything that the page may state.
#[derive(Debug)]
pub struct Evidence {
    /// What the study was made with.
    pub about: StudyInfo,
    /// The folder of the files as links on the page name it.
    pub link: String,
    archive: Archive,
    /// All steps, in order.
    steps: Vec<Step>,
    rows: HashMap<String, Row>,
    /// Numbers of the machines of the steps that were not measured on the first one.
    machines: HashMap<String, usize>,
}

impl Evidence {
    /// Reads what there is in `archive`.
    ///
    /// # Errors
    /// If no study was begun there, or its description is broken.
    pub fn read(archive: &Archive) -> anyhow::Result<Evidence> {
        let folder = archive.folder();
        let about = archive.about()?.with_context(|| {
            format!("there is no study in {}; make one with `framewire-lab study`", folder.display())
        })?;
        let link = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let steps = plan::all();
        let row = |step: &Step| Some((step.name.clone(), archive.report(&step.name)?.rows.pop()?));
        let rows = steps.iter().filter_map(row).collect();
        let known: Vec<_> = about.machines().into_iter().map(machine_words).collect();
        let machine = |step: &Step| {
            let report = archive.report(&step.name).or_else(|| archive.limit(&step.name))?;
            let place = known.iter().position(|known| *known == machine_words(&report.machine))?;
            (place > 0).then_some((step.name.clone(), place + 1))
        };
        let machines = steps.iter().filter_map(machine).collect();
        Ok(Evidence { about, link, archive: archive.clone(), steps, rows, machines })
    }

    /// Names of the steps without a result, and the number of all.
    pub fn missing(&self) -> (Vec<&str>, usize) {
        let missing = self.steps.iter().filter(|step| !self.archive.is_done(step));
        (missing.map(|step| step.name.as_str()).collect(), self.steps.len())
    }

    /// A row by the name of its step.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.get(name)
    }

    /// The row that repeats a published one.
    pub fn version(&self, version: &str, script: Script, published: &Published) -> Measured<'_> {
        self.measured(plan::version_row(version, script, published.bytes, published.asked))
    }

    /// A row and where it lies.
    pub fn measured(&self, name: String) -> Measured<'_> {
        Measured { row: self.row(&name), name }
    }

    /// The measured rows among all steps, in order.
    pub fn runs(&self) -> impl Iterator<Item = (&Step, &Run, &Row)> {
        self.steps.iter().filter_map(|step| match &step.kind {
            Kind::Run(run) => Some((step, run, self.rows.get(&step.name)?)),
            _ => None,
        })
    }

    /// The measured rows of versions 4 to 7, of one script.
    pub fn versions(&self, script: Script) -> impl Iterator<Item = (&'static str, &Published, Measured<'_>)> {
        VERSIONS.iter().flat_map(move |version| {
            let rows = version.rows.iter();
            rows.map(move |published| {
                (version.name, published, self.version(version.name, script, published))
            })
        })
    }

    /// A stampede.
    pub fn stampede(&self, script: Script, clients: usize) -> Option<Stampede> {
        self.archive.result(&plan::stampede(script, clients))
    }

    /// A way of ending, by the name of its step.
    pub fn ending(&self, name: &str) -> Option<Ending> {
        self.archive.result(name)
    }

    /// The connection that was kept idle.
    pub fn idle(&self, script: Script) -> Option<Idle> {
        self.archive.result(&plan::idle(script))
    }

    /// Rows during which a window ended, so that requests were refused, by the names of their lines. A row that was measured
    /// again because of it keeps its first result as `NAME.first`.
    pub fn ended_windows(&self) -> Vec<String> {
        let names = self.steps.iter().flat_map(|step| [step.name.clone(), format!("{}.first", step.name)]);
        let refused = |name: &String| {
            let report = self.archive.report(name);
            report.is_some_and(|report| failures(&report.rows[0], "refused") > 0)
        };
        names.filter(refused).collect()
    }

    /// What the system counted during a trial.
    pub fn system(&self, name: &str) -> Option<System> {
        self.archive.result(&system_name(name))
    }

    /// A search for a limit: what it found, and its runs.
    pub fn limit(&self, search: &Search) -> Option<Report> {
        self.archive.limit(&trials::limit(search))
    }

    /// The allocations of `framewire serve`.
    pub fn allocations(&self) -> Option<Allocations> {
        self.archive.result(trials::ALLOCATIONS)
    }

    /// A link to a step's result. A number after it names the machine, if it is not the first one.
    pub fn source(&self, text: &str, name: &str) -> String {
        let mark = self.machines.get(name).map_or(String::new(), |number| format!("<sup>{number}</sup>"));
        format!("[{text}]({}/{}#{name}){mark}", self.link, archive::FILE)
    }
}

/// A row that was or was not measured.
#[derive(Debug)]
pub struct Measured<'a> {
    /// Name of its step.
    pub name: String,
    /// The row, if it was.
    pub row: Option<&'a Row>,
}

/// Sums over rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// How many rows.
    pub rows: usize,
    /// Their requests.
    pub requests: u64,
    /// Those without a right reply, for whatever reason.
    pub failed: u64,
    /// Those that the other side reset.
    pub reset: u64,
    /// Those with a reply that was another's.
    pub wrong: u64,
    /// The slowest right reply, in ms.
    pub slowest: f64,
    /// The smallest share of right replies, in percent.
    pub success: f64,
}

impl Tally {
    /// Over `rows`; `None` without any.
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

/// Requests of a row that failed in one way.
pub fn failures(row: &Row, kind: &str) -> u64 {
    row.failures.get(kind).copied().unwrap_or(0)
}

/// How a strategy is called on the page.
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
