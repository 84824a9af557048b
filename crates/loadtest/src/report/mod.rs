//! The report that is written at the end.
//!
//! - [`Report`]: everything, as JSON (`docs/bench-json.md` describes it);
//! - [`markdown`]: for a terminal; [`html`]: one page with [`plot`]s; `parts`: the [`table`]s and sentences of both;
//! - [`export`]: CSV and Prometheus' text format; [`hdr_log`]: the histograms themselves;
//! - [`machine`]: describes the machine; [`mod@format`]: formats numbers for people.

pub mod export;
pub mod format;
pub mod hdr_log;
pub mod html;
pub mod machine;
pub mod markdown;
mod parts;
pub mod plot;
pub mod table;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::goal::Goal;
use crate::plan::Plan;
use crate::row::{Phase, Row};
use crate::search::Limit;
use machine::Machine;

/// The name of the schema.
pub const SCHEMA: &str = "framewire-bench";
/// The version of the schema. It rises when programs that read the previous version cannot read the new one.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything that one call of the program measured, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The program that measured, with its version.
    pub tool: String,
    /// The command line.
    pub command: Vec<String>,
    /// When the measurement began, in the format of RFC 3339 and in UTC.
    pub started: String,
    /// The machine on which the load tester ran.
    pub machine: Machine,
    /// What was measured.
    pub target: TargetInfo,
    /// How it was measured.
    pub settings: Settings,
    /// One row per run, in the order of the runs.
    pub rows: Vec<Row>,
    /// The result of the search for the limit, which is the highest rate that meets the goal, if there was a search.
    pub limit: Option<Limit>,
    /// The goal and the runs that missed it, if a goal was given without a search for the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Whether the measurement was stopped before its end.
    pub cut_short: bool,
}

/// A goal, and the runs that missed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The original text of the goal.
    pub goal: String,
    /// The loads that missed it, and what they missed, in the order of the runs.
    pub missed: Vec<(String, Vec<String>)>,
}

impl Verdict {
    /// Judges runs by a goal.
    pub fn of(goal: &Goal, rows: &[Row]) -> Verdict {
        let judged = rows.iter().map(|row| (row.load(), goal.missed(row)));
        Verdict { goal: goal.to_string(), missed: judged.filter(|(_, missed)| !missed.is_empty()).collect() }
    }
}

/// What was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetInfo {
    /// Its address.
    pub url: String,
    /// How its connections were used.
    pub strategy: String,
    /// The unit of the sampled counter, such as `frames`, if one was sampled. Its rate is [`Row::pace`].
    pub counter: Option<String>,
    /// Which replies counted as correct.
    #[serde(default)]
    pub check: String,
    /// The requests that were sent, if the target is an HTTP server; otherwise empty.
    #[serde(default)]
    pub requests: Vec<String>,
    /// The options that change what was measured and that no other field names, such as `speed 2`, without those that
    /// had their default value. `None` in reports of older versions.
    #[serde(default)]
    pub options: Option<Vec<String>>,
}

/// How it was measured, for all rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// `constant`, `poisson` or `closed`.
    pub arrivals: String,
    /// `uuid`, a size in bytes, or the smallest and the largest size joined by `..`, if the sizes varied.
    pub payload: String,
    /// Size of the payload in bytes; the largest one if it varied.
    pub payload_bytes: usize,
    /// Whether replies had to equal the payload.
    pub checked: bool,
    /// The length of the window (the measured part of a run), in seconds.
    pub seconds: f64,
    /// The seconds of load before the window, which are not measured. 0 means a cold start: the first measured request
    /// opens the first connection.
    pub warmup: f64,
    /// The number of threads that sent requests.
    pub workers: usize,
    /// The largest number of requests in flight at a time.
    pub connections: usize,
    /// The longest wait for a reply, including all retries, in seconds.
    pub timeout: f64,
}

impl Settings {
    /// The settings of a plan for a target.
    pub fn of(plan: &Plan, target: &TargetInfo) -> Self {
        use crate::plan::{Arrivals, Load};
        let arrivals = match plan.load {
            Load::Open { arrivals, .. } | Load::Stages { arrivals, .. } => match arrivals {
                Arrivals::Constant => "constant",
                Arrivals::Poisson => "poisson",
            },
            Load::Closed { .. } => "closed",
        };
        Settings {
            arrivals: arrivals.to_owned(),
            payload: plan.payload.to_string(),
            payload_bytes: plan.payload.size(),
            checked: target.check == "echo",
            seconds: plan.duration.as_secs_f64(),
            warmup: plan.warmup.as_secs_f64(),
            workers: plan.workers,
            connections: plan.connections,
            timeout: plan.timeout.as_secs_f64(),
        }
    }
}

/// Why a file is not a report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The text is not JSON, or is JSON of another form.
    #[error("this is not a report; `framewire bench TARGET --json FILE` writes one")]
    Json,
    /// The report has another schema, or another version of it.
    #[error("this is {0} version {1}, and this program reads {SCHEMA} version {SCHEMA_VERSION}")]
    Schema(String, u32),
}

impl Report {
    /// A report without rows.
    pub fn new(tool: String, command: Vec<String>, target: TargetInfo, plan: &Plan) -> Self {
        Report {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            tool,
            command,
            started: format::now(),
            machine: Machine::here(),
            settings: Settings::of(plan, &target),
            target,
            rows: Vec::new(),
            limit: None,
            verdict: None,
            cut_short: false,
        }
    }

    /// Formats the report as JSON.
    pub fn to_json(&self) -> String {
        // This cannot fail, because the keys of all maps in a report are texts or numbers.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads a report that [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// If the text is not a report, or has another version.
    pub fn from_json(text: &str) -> Result<Report, ReportError> {
        #[derive(Deserialize)]
        struct Header {
            schema: String,
            schema_version: u32,
        }
        let header: Header = serde_json::from_str(text).map_err(|_| ReportError::Json)?;
        if header.schema != SCHEMA || header.schema_version != SCHEMA_VERSION {
            return Err(ReportError::Schema(header.schema, header.schema_version));
        }
        serde_json::from_str(text).map_err(|_| ReportError::Json)
    }

    /// The rows of the runs that the command line requested or, if there are no such rows, those of the search.
    pub fn shown(&self) -> Vec<&Row> {
        let measured: Vec<_> = self.rows.iter().filter(|row| row.phase == Phase::Measure).collect();
        if measured.is_empty() { self.rows.iter().collect() } else { measured }
    }

    /// One line that says how the runs were measured.
    pub fn summary(&self) -> String {
        let settings = &self.settings;
        let start = if settings.warmup == 0.0 {
            "cold start".to_owned()
        } else {
            format!("{} warm-up", seconds(settings.warmup))
        };
        format!(
            "{} ({}), {} {}, payload {}, {} a run, {start}, {} worker{}, at most {} in flight, time-out {}",
            self.target.url,
            self.target.strategy,
            settings.arrivals,
            if settings.arrivals == "closed" { "load" } else { "arrivals" },
            match settings.payload.as_str() {
                "uuid" => "a fresh UUID".to_owned(),
                size => format!("{size} random bytes"),
            },
            seconds(settings.seconds),
            settings.workers,
            if settings.workers == 1 { "" } else { "s" },
            settings.connections,
            seconds(settings.timeout),
        )
    }
}

fn seconds(seconds: f64) -> String {
    humantime::format_duration(Duration::from_secs_f64(seconds.clamp(0.0, 1e9))).to_string()
}
