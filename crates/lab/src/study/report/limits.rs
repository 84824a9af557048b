//! Finds the rates up to which every request was answered in time.

use std::fmt::Write;

use framewire_loadtest::report::format::{millis, percent, rate};
use framewire_loadtest::report::table::Table;
use framewire_loadtest::row::Row;

use super::GOAL_MS;
use super::evidence::Evidence;
use super::table::{MISSING, NONE};
use super::trials;
use super::versions::HELD;
use crate::bench::Load;
use crate::setup::Script;
use crate::study::plan;
use crate::study::steps::{Run, Search, Step, Target};
use crate::study::trials::SEARCHES;

/// A row reaches its requested rate if it achieves at least this share of it.
const REACHED: f64 = 0.99;

/// Whether a row sends its requests in the same way as a search. For text messages, only the rows of version 7 do.
fn is_row_of(search: &Search, step: &Step, run: &Run) -> bool {
    let is_text = matches!(run.target, Target::Window { binary: false, .. });
    run.target == search.target && (step.group == "v7" || !is_text)
}

/// The limits of one way to send requests, as its rows show them. A row *goes well* if it reaches its rate, all replies
/// are correct, and 99% of them come within the study's goal.
struct Limits<'a> {
    /// The row with the highest rate up to which all rows went well.
    best: Option<(&'a Step, &'a Row)>,
    /// The lowest rate at which a row did not go well.
    missed: Option<f64>,
    /// The rates above the missed one at which rows went well again.
    above: Vec<f64>,
}

impl<'a> Limits<'a> {
    fn of(evidence: &'a Evidence, search: &Search) -> Limits<'a> {
        let rows =
            evidence.runs().filter(|(step, run, _)| is_row_of(search, step, run) && run.bytes.is_none());
        let mut rows: Vec<_> = rows.filter_map(|(step, _, row)| Some((row.asked?, step, row))).collect();
        rows.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut limits = Limits { best: None, missed: None, above: Vec::new() };
        for (asked, step, row) in rows {
            let went_well =
                row.achieved >= REACHED * asked && row.correct == row.requests && row.intended.p99 <= GOAL_MS;
            match (went_well, limits.missed) {
                (true, None) => limits.best = Some((step, row)),
                (true, Some(_)) => limits.above.push(asked),
                (false, None) => limits.missed = Some(asked),
                (false, Some(_)) => {}
            }
        }
        limits
    }

    /// The reason why there is no best rate, as text. A miss at a low rate can be chance, so rows at higher rates may
    /// have gone well.
    fn none(&self) -> String {
        let Some(missed) = self.missed else { return "none".to_owned() };
        let above: Vec<_> = self.above.iter().map(|asked| rate(*asked)).collect();
        match &above[..] {
            [] => format!("none; {}/s already missed", rate(missed)),
            rates => format!("none, as {}/s missed; {}/s went well", rate(missed), rates.join(", ")),
        }
    }
}

/// The best rates of all ways to send requests, as one sentence; `None` if no row has been measured yet.
pub fn best_line(evidence: &Evidence) -> Option<String> {
    let words = SEARCHES.iter().filter(|search| is_measured(evidence, search)).map(|search| {
        let limits = Limits::of(evidence, search);
        let asked = limits.best.and_then(|(_, row)| row.asked);
        match asked {
            Some(asked) => format!("{}/s with {}", rate(asked), search.way),
            None => format!("for {} {}", search.way, limits.none()),
        }
    });
    let words: Vec<_> = words.collect();
    (!words.is_empty()).then(|| {
        format!(
            "Up to these rates, every request of every row with UUIDs was answered, and 99% of them within {GOAL_MS} ms: \
             {}.",
            words.join("; ")
        )
    })
}

fn is_measured(evidence: &Evidence, search: &Search) -> bool {
    evidence.runs().any(|(step, run, _)| is_row_of(search, step, run))
}

/// The answer to the question of where the limit lies.
pub fn answer(evidence: &Evidence) -> String {
    let mut out = String::new();
    let row = |script| evidence.row(&plan::version_row("v6", script, None, 160));
    if let (Some(study), Some(ours)) = (row(Script::Study), row(Script::Ours)) {
        let _ = writeln!(
            out,
            "In 2025, the load tester was the limit: at 160 requests/s, version 6 reached 63.67. The same row here: {} \
             with the study's kind of script, {} with Framewire's.\n",
            rate(study.achieved),
            rate(ours.achieved)
        );
    }
    let _ = writeln!(
        out,
        "Up to the rates in this table, every request of every row with UUIDs was answered: at least {:.0}% of them \
         before the row's end, and 99% within {GOAL_MS} ms.\n",
        100.0 * REACHED
    );
    // A `<` at the start of a head marks a column of text. It is not shown.
    let mut table = Table::new(&[
        "<way",
        "<row",
        "asked",
        "mean",
        "p99",
        "max",
        "frames/s",
        "tester busy",
        "tester late, p99",
        "<the next rate",
    ]);
    for search in &SEARCHES {
        let limits = Limits::of(evidence, search);
        let cells = match limits.best {
            Some((step, row)) => vec![
                evidence.source(&step.name, &step.name),
                row.load(),
                millis(row.intended.mean),
                millis(row.intended.p99),
                millis(row.intended.max),
                row.pace.map_or(NONE.to_owned(), |pace| format!("{:.1}", pace.mean)),
                row.tester_busy.map_or(NONE.to_owned(), |busy| percent((100.0 * busy).round())),
                format!("{} ms", millis(row.late.p99)),
                if limits.missed.is_none() { "not measured" } else { "missed" }.to_owned(),
            ],
            None if is_measured(evidence, search) => vec![limits.none()],
            None => vec![MISSING.to_owned()],
        };
        table.row([search.way.to_owned()].into_iter().chain(cells));
    }
    out += &table.markdown();
    out += &trials::limits(evidence);
    for (step, run, row) in evidence.runs() {
        let Load::Clients(clients) = run.load else { continue };
        let held = match row.pace {
            Some(pace) if pace.mean < HELD => {
                format!(" while the emulation ran at {:.1} frames/s", pace.mean)
            }
            Some(pace) => format!(" while the emulation held {:.1} frames/s", pace.mean),
            None => String::new(),
        };
        let _ = writeln!(
            out,
            "\n{clients} clients, each of which sends its next request after a reply ({}): {} requests/s{held}{}.",
            evidence.source(&step.name, &step.name),
            rate(row.achieved),
            if row.tester_limited() {
                "; the tester was the limit there, the target may be faster"
            } else {
                ""
            }
        );
    }
    out
}
