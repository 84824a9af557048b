//! The beginning of the page: its subject, whether the study is complete, a short result, and the method.

use std::fmt::Write;

use framewire_loadtest::report::format::{millis, percent, rate, thousands};
use framewire_loadtest::report::table::Table;
use framewire_loadtest::row::Row;

use super::evidence::{Evidence, Tally};
use super::pictures::{self, GOAL_RATE};
use super::table::MISSING;
use super::versions::HELD;
use super::{GOAL_MS, limits};
use crate::bench::Load;
use crate::setup::Script;
use crate::study::archive::{self, StudyInfo, machine_words};
use crate::study::figures::VERSIONS;
use crate::study::steps::{FEWEST, LIGHT, LONGEST, Lengths, Run, Step};

/// The repository of the study.
const STUDY: &str = "https://github.com/nikouu/mGBA-lua-socket-loadtest";

/// The title, whether the study is complete, and a short result.
pub fn opening(evidence: &Evidence) -> String {
    let about = &evidence.about;
    let mut out = format!(
        "# The load-test study of 2025, repeated\n\n\
         In 2025 [mGBA-lua-socket-loadtest]({STUDY}) measured, version by version, how fast and how reliably a Lua script \
         in mGBA answers requests over sockets. This page repeats its rows with a script of the same kind \
         (`crates/lab/src/study.lua`, written for this purpose) and with Framewire's script, in a stock mGBA's window.\n\n\
         `framewire-lab study` made this page from [{0}/{1}]({0}/{1}) alone. That file has a line for each measurement. \
         The link of each row in the tables ends with the name of its line. If the row was measured in several passes, this \
         is the line of the first pass; the names of the others end with `.2`, `.3` and so on. `make study` measures \
         everything again.\n",
        evidence.link,
        archive::FILE
    );
    let (missing, steps) = evidence.missing();
    if missing > 0 {
        let _ = write!(
            out,
            "\n> **This study is not complete:** {} of {steps} steps are measured. The others are shown as “{MISSING}”. \
             The same command continues from here, with rows of the same length; `--fresh` begins again.\n",
            steps - missing,
        );
    }
    let full = Lengths::default();
    if about.seconds < full.row.as_secs_f64() {
        let _ = write!(
            out,
            "\n> **A quick study:** {} passes of {} s instead of {} of {} s. Rare events and high percentiles mean less.\n",
            about.passes,
            about.seconds,
            full.passes,
            full.row.as_secs_f64()
        );
    }
    out += "\n## In short\n\n";
    for line in short(evidence) {
        let _ = writeln!(out, "- {line}");
    }
    out
}

fn short(evidence: &Evidence) -> Vec<String> {
    let mut lines = Vec::new();
    let goals = Script::BOTH.map(|script| met(evidence, script));
    if let [(study, of_study @ 1..), (ours, of_ours @ 1..)] = goals {
        lines.push(format!(
            "The goal of 2025 was {GOAL_RATE} requests/s, every one answered and none slower than {GOAL_MS} ms. It is met in \
             {study} of {of_study} rows with the study's kind of script and in {ours} of {of_ours} with Framewire's."
        ));
    }
    let early = |script| {
        let rows = evidence.versions(script).filter(|(version, ..)| matches!(*version, "v4" | "v5"));
        Tally::of(rows.filter_map(|(.., measured)| measured.row))
    };
    if let (Some(study), Some(ours)) = (early(Script::Study), early(Script::Ours)) {
        lines.push(format!(
            "Versions 4 and 5 at the rates of 2025: with the study's kind of script, {} requests had no correct reply (worst \
             row: {} success); with Framewire's, {} (worst row: {} success).",
            lost(&study),
            percent(study.success),
            lost(&ours),
            percent(ours.success)
        ));
    }
    let all = |script| Tally::of(evidence.versions(script).filter_map(|(.., measured)| measured.row));
    if let (Some(study), Some(ours)) = (all(Script::Study), all(Script::Ours)) {
        lines.push(format!(
            "The slowest correct reply in all rows of versions 4 to 7: {} ms with the study's kind of script, {} ms with \
             Framewire's.",
            millis(study.slowest),
            millis(ours.slowest)
        ));
    }
    lines.extend(limits::best_line(evidence));
    let total = |of_study: bool| {
        let rows = evidence.runs().filter(|(step, ..)| of_study == (step.window() == Some(Script::Study)));
        Tally::of(rows.map(|(.., row)| row))
    };
    if let (Some(study), Some(ours)) = (total(true), total(false)) {
        lines.push(format!(
            "Replies that belonged to another request, or were damaged: {} of {} with the study's kind of script, {} \
             of {} with Framewire.",
            thousands(study.wrong),
            thousands(study.requests),
            thousands(ours.wrong),
            thousands(ours.requests),
        ));
    }
    if lines.is_empty() {
        lines.push("Too little is measured yet.".to_owned());
    }
    lines
}

fn lost(tally: &Tally) -> String {
    format!("{} of {}", thousands(tally.failed), thousands(tally.requests))
}

/// How many of the rows at the goal's rate meet the goal, and how many such rows there are.
fn met(evidence: &Evidence, wanted: Script) -> (usize, usize) {
    let rows: Vec<_> = at_goal(evidence).filter(|(_, script, _)| *script == wanted).collect();
    (rows.iter().filter(|(.., row)| meets(row)).count(), rows.len())
}

fn meets(row: &Row) -> bool {
    row.correct == row.requests && row.requests > 0 && row.intended.max <= GOAL_MS
}

fn at_goal(evidence: &Evidence) -> impl Iterator<Item = (&str, Script, &Row)> {
    let rows = evidence.runs().filter(|(_, run, _)| run.load == Load::Rate(GOAL_RATE));
    rows.filter_map(|(step, _, row)| Some((step.name.as_str(), step.window()?, row)))
}

/// The section about the goal of 2025, with each row at the rate of that goal.
pub fn goal(evidence: &Evidence) -> String {
    let then = VERSIONS.iter().flat_map(|version| version.rows).filter(|row| row.asked == GOAL_RATE);
    let (least, most) =
        then.fold((f64::INFINITY, 0.0_f64), |(least, most), row| (least.min(row.max), most.max(row.max)));
    let mut out = format!(
        "## The goal of 2025\n\nThe goal was {GOAL_RATE} requests/s, every one answered and none slower than {GOAL_MS} ms. The \
         study never met it: in its tables of release builds, the slowest replies at this rate took {} to {} ms.\n\n",
        millis(least),
        millis(most)
    );
    let mut table = Table::new(&["<row", "requests", "success", "p99", "slowest", "<goal"]);
    for (name, _, row) in at_goal(evidence) {
        table.row([
            evidence.source(name, name),
            row.requests.to_string(),
            percent(row.success),
            millis(row.intended.p99),
            millis(row.intended.max),
            if meets(row) { "met" } else { "missed" }.to_owned(),
        ]);
    }
    out += &table.markdown();
    out += &pictures::embed(evidence, pictures::GOAL);
    out
}

/// A description of how long and how many times a row is measured.
fn lengths(evidence: &Evidence) -> String {
    let StudyInfo { passes, seconds, .. } = evidence.about;
    let mut out = format!(
        "{passes} passes over all of them, each pass in new windows. Rows that are measured at the same time as others have a new \
         order in each pass. A row takes {seconds} s in a pass, or up to {} s if it needs that to have {FEWEST} requests. The tables \
         show the median of the passes and, in parentheses, the lowest and the highest value. Requests, errors and the share of \
         correct replies are those of all passes together, and *max* is the slowest reply of all passes.",
        seconds * LONGEST,
    );
    let rows = || evidence.runs().map(|(step, ..)| evidence.passes(&step.name).len());
    let short = rows().filter(|measured| *measured < passes).count();
    if short > 0 {
        let _ = write!(
            out,
            " **{short} of {} rows have fewer passes so far, and {} have only one, so they show no range.**",
            rows().count(),
            rows().filter(|measured| *measured == 1).count()
        );
    }
    out
}

/// The section about the method: the machine, the programs, the commands.
pub fn method(evidence: &Evidence) -> String {
    let about = &evidence.about;
    let machine = &about.machine;
    let mut out = format!(
        "## How it was measured\n\n\
         - Machine: {} x {}, {}, kernel {}, {}; everything runs on this machine.\n\
         - Emulator: {}, with the demo game, in a window on a display of its own (Xvfb); embedded: libmgba {}.\n\
         - Tester: {}, `framewire bench`, one process per row, one thread. The rate is constant unless the row names \
         clients. Each row starts cold: its first request makes the first connection. Each request carries a new UUID or \
         random bytes, and the reply must contain the same bytes.\n\
         - Rows: {}\n",
        machine.processors,
        machine.processor,
        machine.system,
        machine.kernel,
        machine.architecture,
        about.mgba,
        about.libmgba,
        about.tool,
        lengths(evidence),
    );
    for (number, session) in about.sessions.iter().enumerate() {
        let verb = if number == 0 { "Begun" } else { "Continued" };
        let _ = write!(out, "- {verb}: {}, `{}`", session.started, session.command.join(" "));
        if let Some(windows) = session.windows {
            let _ = write!(out, ", rates up to {LIGHT}/s in {windows} windows at the same time");
        }
        let known = session.machine.as_ref().map(machine_words);
        let place = about.machines().into_iter().position(|machine| Some(machine_words(machine)) == known);
        if let Some(place) = place {
            let _ = write!(out, ", on machine {}", place + 1);
        }
        out.push('\n');
    }
    for (place, machine) in about.machines().into_iter().enumerate().skip(1) {
        let _ = writeln!(
            out,
            "- Machine {}: {} x {}, {}, kernel {}. Rows with a <sup>{}</sup> were measured on it. Compare them with each other \
             first, because this machine is different.",
            place + 1,
            machine.processors,
            machine.processor,
            machine.system,
            machine.kernel,
            place + 1
        );
    }
    let paces = || evidence.runs().filter_map(|(step, _, row)| Some((step, row.pace?)));
    if let Some((step, slowest)) = paces().min_by(|one, other| one.1.mean.total_cmp(&other.1.mean)) {
        let slow = paces().filter(|(_, pace)| pace.mean < HELD).count();
        let _ = writeln!(
            out,
            "- Emulation: the console's rate is 59.73 frames/s. Of {} rows, {slow} had a mean below {HELD}; the \
             slowest was {} with {:.1}.",
            paces().count(),
            evidence.source(&step.name, &step.name),
            slowest.mean
        );
    }
    let busiest = evidence.runs().filter_map(|(step, _, row)| Some((step, row, row.tester_busy?)));
    if let Some((step, row, busy)) = busiest.max_by(|one, other| one.2.total_cmp(&other.2)) {
        let in_a_pass =
            |(step, ..): &(&Step, &Run, &Row)| evidence.passes(&step.name).iter().any(Row::tester_limited);
        let _ = writeln!(
            out,
            "- Load on the tester: it was busiest in {}, with {:.0}% of a processor at {} requests/s. In {} of {} rows, the \
             tester, not the target, was the limit in at least one pass; a note below the table says in how many passes. By \
             the medians of the passes, the tester was the limit in {} rows.",
            evidence.source(&step.name, &step.name),
            100.0 * busy,
            rate(row.achieved),
            evidence.runs().filter(in_a_pass).count(),
            evidence.runs().count(),
            evidence.runs().filter(|(.., row)| row.tester_limited()).count(),
        );
    }
    out
}
