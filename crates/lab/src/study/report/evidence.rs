//! The results of a study, read.

use std::collections::HashMap;

use anyhow::Context;
use framewire_loadtest::Strategy;
use framewire_loadtest::row::Row;

use crate::setup::Script;
use crate::study::archive::{self, Archive, StudyInfo};
use crate::study::figures::{Published, VERSIONS};
use crate::study::plan;
use crate::study::results::{Ending, Idle, Stampede};
use crate::study::steps::{Kind, Run, Step};

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
        Ok(Evidence { about, link, archive: archive.clone(), steps, rows })
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

    /// A link to a step's result.
    pub fn source(&self, text: &str, name: &str) -> String {
        format!("[{text}]({}/{}#{name})", self.link, archive::FILE)
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
