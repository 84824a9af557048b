//! Sections about measurements that the study did not have: many messages in flight, the HTTP bridge, the embedded
//! core. Also the sections about clients that connect at once, rows that were measured again, the ways in which
//! the connection to a script ends, and an idle connection.

use std::fmt::Write;

use framewire_loadtest::report::format::{millis, thousands};
use framewire_loadtest::report::table::Table;

use super::answers::FIRST_RETRY;
use super::evidence::Evidence;
use super::pictures;
use super::table::{FIGURES, MISSING, NONE, figures};
use super::versions::{link, name, notes, source};
use crate::bench::Load;
use crate::setup::Script;
use crate::study::plan::{self, Loads};
use crate::study::rerun::{FIGURES as COMPARED, Rerun};
use crate::study::results::{Ending, Stampede};
use crate::study::steps::Way;

/// The section about multiplexing, the bridge and the embedded core.
pub fn rates(evidence: &Evidence) -> String {
    let mut out = "## Beyond the study\n\n\
         ### One socket, many messages in flight\n\n\
         The study planned this but never did it. Here, requests to its kind of script are text messages. Requests to \
         Framewire's script are binary frames, as in the link of `framewire serve`.\n\n"
        .to_owned();
    let study = (name(Script::Study), plan::MUX_STUDY, plan::MULTIPLEXED_STUDY);
    let ours = (name(Script::Ours), plan::MUX_OURS, plan::MULTIPLEXED_OURS);
    out += &table(evidence, "mux-", &[study, ours]);

    out += "\n### HTTP\n\n\
            Clients send `GET /mgbaendpoint?message=…` to `framewire serve --attach`, which is connected to Framewire's \
            script. The clients' connections stay open. This is the same path as in the study's load tests.\n\n";
    out += &table(evidence, "bridge-", &[("Framewire, HTTP", "bridge", plan::BRIDGE)]);

    out += "\n### The core in the tester's own process\n\n\
            There is no window, no script and no socket, so this measures only Framewire's queue and the emulation. The \
            frames/s are those of the embedded core.\n\n";
    out += &table(evidence, "embedded-", &[("embedded", "embedded", plan::EMBEDDED)]);
    out += &pictures::embed(evidence, pictures::RATES);
    out
}

/// A table of rows, and the notes on them. All of their names begin with `names`. Each part has the text of its first
/// cells, the group for [`plan::row`], and the loads of its rows.
fn table(evidence: &Evidence, names: &str, parts: &[(&str, &str, Loads)]) -> String {
    // Here and below, a `<` at the start of a head marks a column of text. It is not shown.
    let mut table = Table::new(&[&["<script", "asked"], &FIGURES[..]].concat());
    for (script, group, loads) in parts {
        for (bytes, load) in *loads {
            let measured = evidence.measured(plan::row(group, *bytes, *load));
            let load = match load {
                Load::Rate(rate) => thousands(rate),
                Load::Clients(clients) => format!("{clients} clients"),
            };
            let size = bytes.map(|bytes| format!(", {} bytes", thousands(bytes)));
            let name = source(evidence, script, &measured);
            table.row([name, load + &size.unwrap_or_default()].into_iter().chain(figures(&measured)));
        }
    }
    table.markdown() + &notes(evidence, |name| name.starts_with(names))
}

/// The section about clients that connect at once.
pub fn stampedes(evidence: &Evidence) -> String {
    let mut out = "## Clients that connect at once\n\nAll connect at the same moment, and each sends one request. Times \
                   are in ms from that moment to the reply.\n\n"
        .to_owned();
    let mut table =
        Table::new(&["clients", "<script", "answered", "median", "after 1 s", "slowest", "<not answered"]);
    for clients in plan::STAMPEDES {
        for script in Script::BOTH {
            let result = evidence.stampede(script, clients);
            let file = plan::stampede(script, clients);
            let name = link(evidence, name(script), &file, result.is_some());
            let cells = result.map_or_else(|| vec![MISSING.to_owned()], |result| stampede(&result));
            table.row([clients.to_string(), name].into_iter().chain(cells));
        }
    }
    out += &table.markdown();
    out += &pictures::embed(evidence, pictures::STAMPEDE);
    out
}

fn stampede(result: &Stampede) -> Vec<String> {
    let time = |value: Option<&f64>| value.map_or(NONE.to_owned(), |value| millis(*value));
    let failed: Vec<_> = result.failed.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    vec![
        result.answered.len().to_string(),
        time(result.answered.get(result.answered.len() / 2)),
        late(result).to_string(),
        time(result.answered.last()),
        failed.join(", "),
    ]
}

/// How many clients of a stampede waited a second or longer for their answer.
pub fn late(result: &Stampede) -> usize {
    result.answered.iter().filter(|time| **time >= FIRST_RETRY).count()
}

/// The section about rows that were measured again, and whether they agree with the study.
pub fn rerun(evidence: &Evidence) -> String {
    let mut out = "## A tenth of the rows, measured again\n\n".to_owned();
    let Some(rerun) = evidence.rerun() else {
        return out + "Not measured yet: `framewire-lab study --rerun`.\n";
    };
    let passes = rerun.rows.iter().map(|row| row.passes.len()).max().unwrap_or(0);
    let _ = write!(
        out,
        "`{}` measured {} rows again, chosen at random (seed {}): {passes} times each, in new windows, on {}. *study* and *again* \
         are the medians and the ranges of the passes. Two ranges agree if they overlap.\n\n",
        rerun.command.join(" "),
        rerun.rows.len(),
        rerun.seed,
        rerun.started,
    );
    let heads: Vec<_> =
        COMPARED.iter().flat_map(|(figure, ..)| [format!("{figure}, study"), "again".to_owned()]).collect();
    let heads: Vec<_> =
        ["<row"].into_iter().chain(heads.iter().map(String::as_str)).chain(["<agrees"]).collect();
    let mut table = Table::new(&heads);
    for again in &rerun.rows {
        let compared = Rerun::compared(again, evidence.passes(&again.name));
        let mut apart = Vec::new();
        let mut cells = vec![evidence.source(&again.name, &again.name)];
        for ((figure, _, words), compared) in COMPARED.iter().zip(compared) {
            match compared {
                Some(compared) => {
                    cells.extend([compared.study.words(*words), compared.again.words(*words)]);
                    if !compared.agrees() {
                        apart.push(*figure);
                    }
                }
                None => cells.extend([NONE.to_owned(), NONE.to_owned()]),
            }
        }
        cells.push(if apart.is_empty() { "yes".to_owned() } else { format!("no: {}", apart.join(", ")) });
        table.row(cells);
    }
    out += &table.markdown();
    let verdict = rerun.verdict(|name| evidence.passes(name));
    let _ = writeln!(out, "\n{}", verdict.words());
    out
}

/// The section about the ways in which the connection to a script ends, and about what the script writes then.
pub fn endings(evidence: &Evidence) -> String {
    let mut out = "## Ways of ending\n\n\
         Version 2 of the study asked what a script notices when the program that is connected to it ends. Here, this \
         program is a client with a pool for the study's kind of script, and `framewire serve` for Framewire's. *New \
         client* is the time from the signal to the first correct answer to a new client; without a signal, it is the time \
         for which this client waited. *Through it again* is the time from the signal to the first correct answer through \
         the program itself, which was started again after the answer to the new client. *Closed in order* is what version \
         3 did: each client closes its connection after the reply. *Left* is the number of connections that the script \
         still held a second after all of this.\n\n"
        .to_owned();
    let mut table = Table::new(&[
        "<signal",
        "<script",
        "<ended with",
        "after, ms",
        "new client, ms",
        "through it again, ms",
        "left",
        "<the script wrote",
    ]);
    for way in Way::ALL.into_iter().filter(|way| *way != Way::Network) {
        for script in Script::BOTH {
            let (ending, name) = ending(evidence, script, way);
            let title = if way == Way::Orderly {
                "none, closed in order".to_owned()
            } else {
                way.name().to_uppercase()
            };
            let mut cells = vec![title, name];
            match &ending {
                Some(ending) => cells.extend([
                    ending.ended.clone(),
                    time(ending.ending),
                    time(ending.new_client),
                    time(ending.through_client),
                    ending.connections_left.to_string(),
                    wrote(ending),
                ]),
                None => cells.push(MISSING.to_owned()),
            }
            table.row(cells);
        }
    }
    out += &table.markdown();
    for script in Script::BOTH {
        let endings = Way::ALL.into_iter().filter_map(|way| ending(evidence, script, way).0);
        let quiet: Vec<_> = endings.map(|ending| ending.quiet()).collect();
        if !quiet.is_empty() {
            let _ = writeln!(
                out,
                "\n{}: the script wrote a warning or an error in {} of {} endings. This counts the network failure \
                 in the next table, too.",
                capital(name(script)),
                quiet.iter().filter(|quiet| !**quiet).count(),
                quiet.len()
            );
        }
    }

    out += "\nIn the next table, the network between the script and its client fails, as if a cable were unplugged: nothing is \
    acknowledged, and no connection is refused or closed. Then the network comes back. The client sends requests all the \
    time. The client of the study's kind of script uses a pool with three tries.\n\n";
    let mut table = Table::new(&[
        "<script",
        "silent, s",
        "first error after, s",
        "new client, ms after it is back",
        "answers again, ms after it is back",
        "left",
        "<the script wrote",
    ]);
    let mut errors = String::new();
    for script in Script::BOTH {
        let (ending, name) = ending(evidence, script, Way::Network);
        let seconds =
            |time: Option<f64>| time.map_or(NONE.to_owned(), |time| format!("{:.1}", time / 1000.0));
        let mut cells = vec![name.clone()];
        match &ending {
            Some(ending) => cells.extend([
                seconds(ending.silence),
                seconds(ending.noticed),
                time(ending.new_client),
                ending.through_client.map_or("not in 20 s".to_owned(), millis),
                ending.connections_left.to_string(),
                wrote(ending),
            ]),
            None => cells.push(MISSING.to_owned()),
        }
        table.row(cells);
        if let Some(error) = ending.and_then(|ending| ending.error) {
            let _ = writeln!(errors, "- {name}: {error}");
        }
    }
    out += &table.markdown();
    if !errors.is_empty() {
        let _ = write!(out, "\nThe text of that first error:\n\n{errors}");
    }
    out
}

fn ending(evidence: &Evidence, script: Script, way: Way) -> (Option<Ending>, String) {
    let file = plan::ending(script, way);
    let ending = evidence.ending(&file);
    let link = link(evidence, name(script), &file, ending.is_some());
    (ending, link)
}

fn capital(text: &str) -> String {
    text[..1].to_uppercase() + &text[1..]
}

fn time(time: Option<f64>) -> String {
    time.map_or(NONE.to_owned(), millis)
}

/// The lines of a console in one table cell. Numbers become `N` and addresses become `0x…`, because they differ between
/// clients. Lines that are then equal are shown once, with their count.
fn wrote(ending: &Ending) -> String {
    let mut lines: Vec<(String, usize)> = Vec::new();
    for line in &ending.console {
        let line = without_numbers(line);
        match lines.iter_mut().find(|known| known.0 == line) {
            Some(known) => known.1 += 1,
            None => lines.push((line, 1)),
        }
    }
    let words = lines.into_iter().map(|(line, count)| match count {
        1 => format!("`{line}`"),
        count => format!("{count} x `{line}`"),
    });
    let words: Vec<_> = words.collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join("<br>") }
}

fn without_numbers(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let number = word.trim_end_matches(':');
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if is_number {
            word.replace(number, "N")
        } else if word.starts_with("0x") {
            "0x…".to_owned()
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The section about the connection that was kept idle.
pub fn idle(evidence: &Evidence) -> String {
    let mut out = "## An idle connection\n\n\
         This connection was opened when the script started, used once, and then left idle. Then it was used again. Times are \
         in ms.\n\n"
        .to_owned();
    let mut table = Table::new(&["<script", "idle, min", "before", "first after", "the next ones", "<error"]);
    for script in Script::BOTH {
        let idle = evidence.idle(script);
        let mut cells = vec![link(evidence, name(script), &plan::idle(script), idle.is_some())];
        match idle {
            Some(idle) => cells.extend([
                format!("{:.1}", idle.seconds / 60.0),
                millis(idle.before),
                time(idle.after),
                idle.then.iter().map(|time| millis(*time)).collect::<Vec<_>>().join(", "),
                idle.error.clone().unwrap_or_default(),
            ]),
            None => cells.push(MISSING.to_owned()),
        }
        table.row(cells);
    }
    out += &table.markdown();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_of_a_console_are_counted() {
        let console = [
            "error client 12: unknown error",
            "error client 9: unknown error",
            "error client 3: table: 0x7f",
        ];
        let console = console.map(str::to_owned).to_vec();
        let ending = Ending { console, ..Ending::of("", String::new()) };
        assert_eq!(wrote(&ending), "2 x `error client N: unknown error`<br>`error client N: table: 0x…`");
        assert_eq!(wrote(&Ending { console: vec![], ..ending }), "nothing");
    }
}
