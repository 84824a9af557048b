//! What is written at the end.
//!
//! - [`Report`]: everything, as JSON (`docs/bench-json.md` describes it);
//! - [`markdown`]: for a terminal; [`html`]: one page with [`plot`]s; `parts`: the [`table`]s and sentences of both;
//! - [`export`]: CSV and Prometheus' text format; [`hdr_log`]: the histograms themselves;
//! - [`machine`]: where it was measured; [`mod@format`]: numbers for people.

pub mod export;
pub mod format;
pub mod hdr_log;
pub mod html;
pub mod machine;
pub mod markdown;
mod parts;
pub mod plot;
pub mod table;

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::goal::Goal;
use crate::plan::Plan;
use crate::row::{Phase, Row};
use crate::search::Limit;
use machine::Machine;

/// Name of the schema.
pub const SCHEMA: &str = "framewire-bench";
/// Version of the schema; rises when a reader of the last version could not read the next.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything that was measured in one go, and with what.
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
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// Where.
    pub machine: Machine,
    /// What.
    pub target: TargetInfo,
    /// How.
    pub settings: Settings,
    /// One a run, in the order they were made.
    pub rows: Vec<Row>,
    /// The limit, if one was searched.
    pub limit: Option<Limit>,
    /// What the runs were judged by, if a goal was given without a search for the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Whether it was stopped before its end.
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
    /// What the sampled counter counts, if one was sampled; its rate is [`Row::pace`].
    pub counter: Option<String>,
    /// Which replies counted as right.
    #[serde(default)]
    pub check: String,
    /// The requests that were sent, for a target that can be sent different ones.
    #[serde(default)]
    pub requests: Vec<String>,
}

/// How it was measured, for all rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// `constant`, `poisson` or `closed`.
    pub arrivals: String,
    /// `uuid`, a number of bytes, or two numbers joined by `..` between which the sizes were.
    pub payload: String,
    /// Size of the payload in bytes; the largest one if it varied.
    pub payload_bytes: usize,
    /// Whether replies had to equal it.
    pub checked: bool,
    /// Length of a run's window.
    pub seconds: f64,
    /// Unmeasured load before it; 0 is a cold start: the first measured request makes the first connection.
    pub warmup: f64,
    /// Threads.
    pub workers: usize,
    /// The largest number of exchanges under way at a time.
    pub connections: usize,
    /// Longest wait for a reply, in seconds.
    pub timeout: f64,
}

impl Settings {
    /// Of a plan for a target.
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

    /// Whether the first connection was made by the first measured request.
    pub fn cold(&self) -> bool {
        self.warmup == 0.0
    }
}

/// Why a file is not a report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Not JSON, or JSON of another form.
    #[error("this is not a report of `bench --json`")]
    Json(#[from] serde_json::Error),
    /// Another program's or version's.
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
            started: format::time(SystemTime::now()),
            machine: Machine::here(),
            settings: Settings::of(plan, &target),
            target,
            rows: Vec::new(),
            limit: None,
            verdict: None,
            cut_short: false,
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        // Nothing in a report can fail to become JSON: no maps with other keys than text.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads what [`to_json`](Self::to_json) writes.
    ///
    /// # Errors
    /// If the text is something else, or of another version.
    pub fn from_json(text: &str) -> Result<Report, ReportError> {
        #[derive(Deserialize)]
        struct Header {
            schema: String,
            schema_version: u32,
        }
        let header: Header = serde_json::from_str(text)?;
        if header.schema != SCHEMA || header.schema_version != SCHEMA_VERSION {
            return Err(ReportError::Schema(header.schema, header.schema_version));
        }
        Ok(serde_json::from_str(text)?)
    }

    /// The requested rows; those of a search if there are no others.
    pub fn shown(&self) -> Vec<&Row> {
        let measured: Vec<_> = self.rows.iter().filter(|row| row.phase == Phase::Measure).collect();
        if measured.is_empty() { self.rows.iter().collect() } else { measured }
    }

    /// One sentence on how it was measured.
    pub fn summary(&self) -> String {
        let settings = &self.settings;
        let start = if settings.cold() {
            "cold start".to_owned()
        } else {
            format!("{} warm-up", seconds(settings.warmup))
        };
        format!(
            "{} ({}), {} arrivals, payload {}, {} a run, {start}, {} worker{}, at most {} in flight, time-out {}",
            self.target.url,
            self.target.strategy,
            settings.arrivals,
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
