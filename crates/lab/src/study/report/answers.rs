//! Answers the study's open questions at length, from the results.

use std::fmt::Write;

use framewire_loadtest::Strategy;
use framewire_loadtest::report::format::{millis, thousands};
use framewire_loadtest::row::Row;

use super::evidence::{Evidence, Tally, failures};
use super::limits;
use super::others::late;
use crate::bench::Load;
use crate::setup::Script;
use crate::study::passes::Spread;
use crate::study::plan;
use crate::study::results::Stampede;

/// Fewer resets than this could be chance.
const FEW: u64 = 5;
/// If the queue for new connections is full, a client's system waits this long before it first tries again, in ms.
pub(super) const FIRST_RETRY: f64 = 1000.0;
/// How long the idle connection of the study of 2025 was unused (3 h 20 min), in seconds.
pub(super) const IDLE_2025: f64 = 12_000.0;

/// The section of the page.
pub fn section(evidence: &Evidence) -> String {
    let answers: [(&str, String); 5] = [
        ("Why is connecting so slow, and why do clients come in stampedes?", connecting(evidence)),
        ("Why are pooled sockets refused or reset under load?", resets(evidence)),
        ("Why does the result vary from run to run?", variation(evidence)),
        ("What happens to a socket that is idle for hours?", idle(evidence)),
        ("Where does the limit truly lie?", limits::answer(evidence)),
    ];
    let mut out = "## The study's open questions\n".to_owned();
    for (question, answer) in answers {
        let _ = write!(out, "\n### {question}\n\n{answer}");
    }
    out
}

fn unknown(what: &str) -> String {
    format!("Not measured yet: {what}.\n")
}

fn connecting(evidence: &Evidence) -> String {
    let mut out = "A script of the study's kind accepts one connection per frame, and `listen()` in mGBA's Lua makes a \
    queue of length 1 for new connections, unless the script sets another length. On Linux, a client that finds the \
    queue full gets no error: the system drops its packet, and the client's system sends it again after 1 s, then 2 s \
    later, then 4 s, and so on. So clients that came together wait together, and collide again.\n\n"
        .to_owned();
    let mut measured = false;
    for clients in plan::STAMPEDES {
        if let [Some(study), Some(ours)] = Script::BOTH.map(|script| evidence.stampede(script, clients)) {
            measured = true;
            let _ = writeln!(
                out,
                "- {clients} clients at once: with the study's kind of script, {}; with Framewire's, {}.",
                outcome(&study),
                outcome(&ours)
            );
        }
    }
    if !measured {
        return out + &unknown("clients that connect at once");
    }
    let largest = plan::STAMPEDES[plan::STAMPEDES.len() - 1];
    if let [Some(study), Some(ours)] = Script::BOTH.map(|script| evidence.stampede(script, largest)) {
        let waited = late(&study) > 0 || study.answered.len() < study.clients;
        let quick = ours.answered.len() == ours.clients && late(&ours) == 0;
        out += match (waited, quick) {
            (true, true) => {
                "\nFramewire's script asks for a queue of 512 and accepts until it is empty, and none of its clients \
                 had to try again.\n"
            }
            (true, false) => {
                "\nFramewire's script asks for a queue of 512, but in this run, some of its clients still waited or got \
                 no reply.\n"
            }
            (false, _) => "\nIn this run the short queue delayed no client by a second.\n",
        };
    }
    // The lowest rate at which a client waited for its system's first retry.
    let each = |script| {
        per_request(evidence, script)
            .filter(|(_, row)| row.intended.max >= FIRST_RETRY)
            .map(|(rate, _)| rate)
            .min()
    };
    let measured = per_request(evidence, Script::Study).map(|(rate, _)| rate).max();
    if let Some(highest) = measured {
        let _ = writeln!(
            out,
            "\nClients that come at even intervals, with a socket per request, fill the same queue if they come more often \
             than frames. The lowest rate at which a client waited a second or more: {} with the study's kind of script, \
             {} with Framewire's (measured up to {highest}/s).",
            each(Script::Study).map_or("none".to_owned(), |rate| format!("{rate}/s")),
            each(Script::Ours).map_or("none".to_owned(), |rate| format!("{rate}/s")),
        );
    }
    out + "\nThe study ran on Windows, which handles a full queue in another way; that was not measured here.\n"
}

fn outcome(result: &Stampede) -> String {
    let slowest = result
        .answered
        .last()
        .map_or(String::new(), |slowest| format!(", the slowest after {} ms", millis(*slowest)));
    let failed: Vec<_> = result.failed.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let failed = if failed.is_empty() { String::new() } else { format!(", and {}", failed.join(", ")) };
    format!(
        "{} got a reply, {} of them after 1 s or more{slowest}{failed}",
        result.answered.len(),
        late(result)
    )
}

/// The rows with a socket per request, with their rates.
fn per_request(evidence: &Evidence, wanted: Script) -> impl Iterator<Item = (u32, &Row)> {
    evidence.runs().filter_map(move |(_, run, row)| match (run.strategy, run.load) {
        (Some(Strategy::PerRequest), Load::Rate(rate)) if run.target.is_window(wanted) && !run.keeps => {
            Some((rate, row))
        }
        _ => None,
    })
}

/// The rows with a socket per request or a plain pool, which do not try a message a second time. A second try would
/// hide errors. Rows in which the script keeps its closed sockets are left out.
fn tried_once(evidence: &Evidence, wanted: Script) -> impl Iterator<Item = &Row> {
    let rows = evidence.runs().filter(move |(_, run, _)| run.target.is_window(wanted) && !run.keeps);
    let rows = rows.filter(|(_, run, _)| matches!(run.strategy, Some(Strategy::PerRequest | Strategy::Pool)));
    rows.map(|(.., row)| row)
}

fn resets(evidence: &Evidence) -> String {
    let (Some(study), Some(ours)) =
        (Tally::of(tried_once(evidence, Script::Study)), Tally::of(tried_once(evidence, Script::Ours)))
    else {
        return unknown("a socket per request and a pool, with both scripts");
    };
    let mut out = String::new();
    let alone: Vec<_> = tried_once(evidence, Script::Study).filter(|row| row.most_in_flight == 1).collect();
    let reset = alone.iter().filter(|row| failures(row, "reset") > 0).count();
    let _ = writeln!(
        out,
        "In the rows without a second try, the study's kind of script reset {} of {} requests, Framewire's {} of {}.{}\n",
        thousands(study.reset),
        thousands(study.requests),
        thousands(ours.reset),
        thousands(ours.requests),
        match reset {
            0 => String::new(),
            _ => format!(
                " The load is not the cause: in {} of these rows, there was never more than one request under way, and \
                 {reset} of them had resets.",
                alone.len()
            ),
        }
    );
    let usual = plan::beyond_row(Script::Study, Strategy::PerRequest, plan::KEPT);
    let pair = (evidence.row(&usual), evidence.row(plan::KEPT_ROW));
    let (Some(collected), Some(kept)) = pair else {
        return out + &unknown("what keeping closed sockets changes");
    };
    let share = |row: &Row| format!("{} of {}", row.requests - row.correct, row.requests);
    out += "mGBA 0.10.1 closes a socket's file descriptor when the script closes the socket, and closes it a second time \
            when Lua collects the socket as garbage. By then, the descriptor can belong to another connection, which is \
            then cut off. The same row was measured with and without this effect: a socket per request, ";
    let _ = writeln!(
        out,
        "{} requests/s, with a script that lets Lua collect closed sockets ({}) and with a script that keeps all of them so \
         that none is collected ({}).",
        plan::KEPT,
        evidence.source(&usual, &usual),
        evidence.source(plan::KEPT_ROW, plan::KEPT_ROW),
    );
    let (before, after) = (failures(collected, "reset"), failures(kept, "reset"));
    let verdict = match (before, after) {
        (0, 0) => "Neither had resets in this run, so it shows nothing.",
        (1..FEW, 0) => "That agrees with this cause, but so few resets could be chance.",
        (FEW.., 0) => "That accounts for all resets of this row.",
        (1.., _) if after * 4 <= before => "That accounts for most resets of this row, not for all.",
        _ => "In this run that made no clear difference.",
    };
    let _ = writeln!(
        out,
        "Requests without a correct reply: {} if Lua collects closed sockets, {} if it does not. {verdict}",
        share(collected),
        share(kept)
    );
    out + "Framewire's script closes sockets in a way that makes them forget their descriptor \
           ([lua/README.md](../lua/README.md)).\n\n\
           A pool that keeps a broken socket fails on it again and again: after the first reset, the study's pool reported \
           “A connect request was made on an already connected socket”. The pool of versions 5 to 7 here drops a broken \
           socket, so one reset costs one request. [A pool that keeps broken sockets](#a-pool-that-keeps-broken-sockets) \
           measures the other kind of pool, and shows why version 5 did worse in 2025 than it does here.\n"
}

fn variation(evidence: &Evidence) -> String {
    let names = Script::BOTH.map(|script| plan::version_row("v5", script, None, plan::POOL_FAILED));
    let [study, ours] = names.each_ref().map(|name| evidence.passes(name));
    if study.len() < 2 || ours.len() < 2 {
        return unknown("the same row several times, with both scripts");
    }
    let range = |rows: &[Row], value: fn(&Row) -> f64, words: fn(f64) -> String| {
        let Some(Spread { low, high, .. }) = Spread::of(rows.iter().map(value)) else { return String::new() };
        let (low, high) = (words(low), words(high));
        if low == high { low } else { format!("{low} to {high}") }
    };
    let count = |value: f64| format!("{value:.0}");
    let failed = |row: &Row| (row.requests - row.correct) as f64;
    let mut out = format!(
        "A pool at {} requests/s, where version 5 began to fail in 2025, in {} passes:\n\n",
        plan::POOL_FAILED,
        study.len().min(ours.len())
    );
    for (name, step, rows) in
        [("the study's kind of script", &names[0], study), ("Framewire's", &names[1], ours)]
    {
        let _ = writeln!(
            out,
            "- {}: {} failed requests, mean {} ms, slowest {} ms.",
            evidence.source(name, step),
            range(rows, failed, count),
            range(rows, |row| row.intended.mean, millis),
            range(rows, |row| row.intended.max, millis),
        );
    }
    let all = |script| Tally::of(tried_once(evidence, script)).map_or(0, |tally| tally.failed);
    out += match (all(Script::Study), all(Script::Ours)) {
        (1.., 0) => {
            "\nWith the study's kind of script, chance decides which connection has the descriptor that the garbage \
             collector closes, and, when clients come more often than frames, which client finds the queue full and \
             waits for whole seconds. Without these two causes, only the moment in the frame at which a request \
             arrives varies.\n"
        }
        (0, 0) => "\nNo request failed in these rows without a second try, with either script.\n",
        (0, _) => {
            "\nRequests failed only with Framewire's script, so the causes above do not explain them.\n"
        }
        (1.., _) => {
            "\nRequests failed with Framewire's script too, so the causes above do not explain all failures.\n"
        }
    };
    out
}

fn idle(evidence: &Evidence) -> String {
    let mut out = String::new();
    let (mut all, mut longest) = (true, 0.0_f64);
    for (script, name) in
        [(Script::Study, "the study's kind of script"), (Script::Ours, "Framewire's script")]
    {
        let Some(idle) = evidence.idle(script) else {
            return unknown("an idle connection to each script");
        };
        longest = longest.max(idle.seconds);
        let minutes = idle.seconds / 60.0;
        let _ = match (idle.after, &idle.error) {
            (Some(after), _) => writeln!(
                out,
                "- To {name}: after {minutes:.1} minutes without requests, the next one was answered in {} ms (the one \
                 before, in {} ms).",
                millis(after),
                millis(idle.before)
            ),
            (None, error) => {
                all = false;
                writeln!(
                    out,
                    "- To {name}: after {minutes:.1} minutes without requests, the next one was not answered: {}.",
                    error.as_deref().unwrap_or("no reason is known")
                )
            }
        };
    }
    if !all {
        return out + "\nSo an idle connection did not stay good here.\n";
    }
    out += "\nNothing, as far as this shows: the idle connection stayed good. The study had one that was still good after \
            3 h 20 min";
    out + if longest < IDLE_2025 { "; such a long time was not measured here.\n" } else { ", too.\n" }
}
