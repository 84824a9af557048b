//! The sections about runs with one thing changed, about windows that ended, about searches for limits, and about
//! allocations.

use std::fmt::Write;

use framewire_loadtest::report::Report;
use framewire_loadtest::report::format::{percent, rate, thousands};
use framewire_loadtest::report::table::Table;
use framewire_loadtest::row::Row;

use super::GOAL_MS;
use super::evidence::{Evidence, words};
use super::table::{FIGURES, MISSING, NONE, figures};
use super::versions::{link, name, source};
use crate::setup::Script;
use crate::study::results::{EndedRun, SystemCounters};
use crate::study::steps::Change;
use crate::study::trials::{self, QUESTIONS, Question, SEARCHES};

/// An additional column: its head, and a function that returns a cell.
type Column = (&'static str, fn(&Row, &SystemCounters) -> String);

/// The columns that a question's table has in addition to the usual ones.
fn columns(group: &str) -> &'static [Column] {
    match group {
        "retries" => &[("tried again", |row, _| row.retries.to_string())],
        "broken" => &[("connections", |row, _| row.connections.to_string())],
        "nagle" => &[
            ("requests", |row, _| thousands(row.requests)),
            ("packets", |_, system| system.packets.map_or(NONE.to_owned(), thousands)),
        ],
        "waiting" => &[
            ("waiting before", |_, system| system.waiting[0].to_string()),
            ("waiting after", |_, system| system.waiting[1].to_string()),
        ],
        _ => &[],
    }
}

/// The sections about runs with one thing changed, about windows that ended, and about allocations.
pub fn sections(evidence: &Evidence) -> String {
    let mut out = "## One question at a time\n\nEach of these runs changes one thing.\n".to_owned();
    for question in &QUESTIONS {
        let _ =
            write!(out, "\n### {}\n\n{}\n\n{}", question.title, question.about, table(evidence, question));
    }
    out + &ended_windows(evidence) + "\n" + &allocations(evidence)
}

fn ended_windows(evidence: &Evidence) -> String {
    let ended = evidence.ended();
    if ended.is_empty() {
        return String::new();
    }
    let runs: usize = ended.iter().map(|(_, runs)| runs.len()).sum();
    let mut out = format!(
        "\n### Windows that ended\n\nmGBA itself ended during {runs} runs. Such a run does not count and is measured again in a \
         new window. If mGBA ends three times, the last run counts.\n\n"
    );
    for (name, runs) in ended {
        for EndedRun { how, requests, correct } in runs {
            let how = how.lines().collect::<Vec<_>>().join(" ");
            let _ = writeln!(
                out,
                "- {}: {how}. {correct} of {requests} requests had a correct reply.",
                evidence.source(&name, &name)
            );
        }
    }
    out
}

fn table(evidence: &Evidence, question: &Question) -> String {
    let further = columns(question.group);
    let heads: Vec<_> = further.iter().map(|(head, _)| *head).collect();
    let mut table = Table::new(&[&["<sockets", "asked", "<script"], &FIGURES[..], &heads[..]].concat());
    for trial in question.trials {
        let mut sockets = words(trial.strategy).to_owned();
        let options = trial.change.options();
        if !options.is_empty() {
            let _ = write!(sockets, ", `{}`", options.join(" "));
        }
        let mut asked = trial.rate.to_string();
        if trial.change == Change::UnframedMixed {
            asked += ", 36 to 5,000 bytes";
        } else if let Some(bytes) = trial.bytes {
            let _ = write!(asked, ", {} bytes", thousands(bytes));
        }
        for script in trial.scripts() {
            let step = trials::name(question.group, script, trial.name);
            let system = evidence.system(&step).unwrap_or_default();
            let measured = evidence.measured(step);
            let name = source(evidence, name(script), &measured);
            let mut cells = vec![sockets.clone(), asked.clone(), name];
            cells.extend(figures(&measured));
            if let Some(row) = measured.row {
                cells.extend(further.iter().map(|(_, cell)| cell(row, &system)));
            }
            table.row(cells);
        }
    }
    table.markdown()
}

/// The text and the table about the limits that the searches found.
pub fn limits(evidence: &Evidence) -> String {
    let mut out = format!(
        "\n`framewire bench --find-limit` searched for the highest rate that meets `{}`. Each run takes {} s and starts cold. The \
         search doubles the rate until two runs miss the goal, and then halves the gap until it is 3%. Three more runs in a row \
         must confirm the result; if they do not, the search tries up to twelve lower rates. If no rate passes three times, the \
         limit is *none*, and the best single run shows what was reached while nothing disturbed the machine.\n\n",
        trials::GOAL,
        SEARCHES
            .iter()
            .find_map(|search| evidence.limit(search))
            .map_or(0.0, |report| report.settings.seconds)
    );
    let mut table = Table::new(&[
        "<way",
        "limit",
        "confirmed",
        "best single run",
        "missed at",
        "<missed",
        "runs",
        "<what was the limit",
    ]);
    for search in &SEARCHES {
        let report = evidence.limit(search);
        let way = link(evidence, search.way, &trials::limit(search), report.is_some());
        let found = report.as_ref().and_then(|report| report.limit.as_ref());
        let cells = match (found, &report) {
            (Some(limit), Some(report)) => {
                let shown = |value: Option<f64>| value.map_or("none".to_owned(), |value| rate(value) + "/s");
                let limited = match (limit.missed_at, limit.tester_limited) {
                    (None, _) => NONE,
                    (Some(_), true) => "the tester",
                    (Some(_), false) => "the target",
                };
                vec![
                    shown(limit.rate),
                    format!("{} times", limit.confirmations),
                    shown(best_run(report)),
                    shown(limit.missed_at),
                    limit.missed.join("; "),
                    report.rows.len().to_string(),
                    limited.to_owned(),
                ]
            }
            _ => vec![MISSING.to_owned()],
        };
        table.row([way].into_iter().chain(cells));
    }
    out += &table.markdown();
    out
}

/// The highest rate at which a single run met the goal, confirmed or not.
pub fn best_run(report: &Report) -> Option<f64> {
    let met = |row: &&Row| {
        let asked = row.asked.unwrap_or(f64::INFINITY);
        row.correct == row.requests && row.intended.p99 < GOAL_MS && row.achieved >= 0.99 * asked
    };
    report.rows.iter().filter(met).filter_map(|row| row.asked).max_by(f64::total_cmp)
}

/// The section about the server's allocations and Lua's garbage.
fn allocations(evidence: &Evidence) -> String {
    let mut out = "### Allocations\n\nThe study looked at its server in a profiler after 10 requests/s for 30 s. Here \
                   heaptrack's library counts each allocation of `framewire serve --attach` while it passes HTTP requests \
                   to Framewire's script.\n\n"
        .to_owned();
    let mut table = Table::new(&[
        "<load",
        "requests",
        "correct",
        "allocations",
        "per request",
        "bytes per request",
        "freed",
    ]);
    match evidence.allocations() {
        Some(allocations) => {
            for run in &allocations.runs {
                let each = |count: u64| format!("{:.1}", count as f64 / run.requests.max(1) as f64);
                let name = format!("{}/s", run.rate);
                table.row([
                    evidence.source(&name, trials::ALLOCATIONS),
                    thousands(run.requests),
                    thousands(run.correct),
                    thousands(run.allocated.times),
                    each(run.allocated.times),
                    thousands(format!("{:.0}", run.allocated.bytes as f64 / run.requests.max(1) as f64)),
                    percent(
                        (1000.0 * run.allocated.freed as f64 / run.allocated.times.max(1) as f64).round()
                            / 10.0,
                    ),
                ]);
            }
        }
        None => table.row([MISSING.to_owned()]),
    }
    out += &table.markdown();
    out += "\nAt 10/s, a part of the allocations does not come from requests but from regular work, such as the link's pings.\n\n";
    for script in Script::BOTH {
        let step = trials::garbage(script);
        match evidence.system(&step).and_then(|system| system.garbage) {
            Some(bytes) => {
                let _ = writeln!(
                    out,
                    "- {}: a request makes {} bytes of garbage in Lua (collector stopped, 40/s, a pool). This does not \
                     include the garbage that the script makes even when there are no requests.",
                    evidence.source(name(script), &step),
                    thousands(format!("{bytes:.0}"))
                );
            }
            None => {
                let _ = writeln!(out, "- {}: Lua's garbage is not measured.", name(script));
            }
        }
    }
    out
}
