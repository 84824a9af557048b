//! The sections about the study's version 1 and its versions 4 to 7, at the rates of 2025 and at higher rates.

use std::fmt::Write;

use framewire_loadtest::report::format::thousands;
use framewire_loadtest::report::table::Table;

use super::evidence::{Evidence, Measured, words};
use super::pictures;
use super::table::{FIGURES, figures, published};
use crate::setup::Script;
use crate::study::figures::{Published, VERSIONS, Version};
use crate::study::plan;

/// The name of a script in tables.
pub fn name(script: Script) -> &'static str {
    match script {
        Script::Study => "study's kind",
        Script::Ours => "Framewire",
    }
}

/// The sections of the page.
pub fn sections(evidence: &Evidence) -> String {
    let mut out = "## The versions at the rates of 2025\n\n\
         *2025* is what the study published, measured on Windows with its own server, script and load tester. The \
         other rows were measured here, in a stock mGBA's window: *study's kind* with the study's kind of script, and \
         *Framewire* with Framewire's script. Requests go directly to a script, and use sockets in the same way as the \
         study's version did. Times are in ms. A time begins when its request is due, and ends when the correct reply \
         has arrived.\n"
        .to_owned();
    out += "\n### Version 1: one socket for all requests\n\n\
            The study did not load-test this version. Here it is measured at the rate of the study's goal.\n\n";
    out += &single(evidence);
    out += &notes(evidence, |name| name.starts_with("v1-"));
    for version in &VERSIONS {
        let _ = write!(out, "\n### {}\n\n{}", version.title, table(evidence, version));
        out += &notes(evidence, |name| name.starts_with(&format!("{}-", version.name)));
        out += &pictures::embed(evidence, version.name);
    }
    out += "\n### Versions 4 and 5 beyond these rates\n\n\
            The rate at which a script begins to fail depends on the operating system. These rows continue beyond the \
            study's rates.\n\n";
    out += &beyond(evidence);
    out += &notes(evidence, |name| name.starts_with("beyond-"));
    for (picture, _) in pictures::FAILURES {
        out += &pictures::embed(evidence, picture);
    }
    out
}

fn table(evidence: &Evidence, version: &Version) -> String {
    let mut table = Table::new(&[&["asked", "<script"], &FIGURES[..]].concat());
    for row in version.rows {
        table.row([asked(row), "2025".to_owned()].into_iter().chain(published(row)));
        for script in Script::BOTH {
            let measured = evidence.version(version.name, script, row);
            let name = source(evidence, name(script), &measured);
            table.row([asked(row), name].into_iter().chain(figures(&measured)));
        }
    }
    table.markdown()
}

fn single(evidence: &Evidence) -> String {
    let mut table = Table::new(&[&["asked", "<script"], &FIGURES[..]].concat());
    for script in Script::BOTH {
        let measured = evidence.measured(plan::single_row(script));
        let name = source(evidence, name(script), &measured);
        table.row([plan::SINGLE.to_string(), name].into_iter().chain(figures(&measured)));
    }
    table.markdown()
}

fn beyond(evidence: &Evidence) -> String {
    let mut table = Table::new(&[&["<sockets", "asked", "<script"], &FIGURES[..]].concat());
    for (strategy, rates) in plan::BEYOND {
        for asked in rates {
            for script in Script::BOTH {
                let measured = evidence.measured(plan::beyond_row(script, strategy, *asked));
                let name = source(evidence, name(script), &measured);
                let first = [words(strategy).to_owned(), asked.to_string(), name];
                table.row(first.into_iter().chain(figures(&measured)));
            }
        }
    }
    table.markdown()
}

/// A link to a row, if it was measured.
pub fn source(evidence: &Evidence, text: &str, measured: &Measured) -> String {
    link(evidence, text, &measured.name, measured.row.is_some())
}

/// A link to a result, if `is_there` says that the result exists; otherwise only the text.
pub fn link(evidence: &Evidence, text: &str, name: &str, is_there: bool) -> String {
    if is_there { evidence.source(text, name) } else { text.to_owned() }
}

fn asked(row: &Published) -> String {
    match row.bytes {
        Some(bytes) => format!("{}, {} bytes", row.asked, thousands(bytes)),
        None => row.asked.to_string(),
    }
}

/// Notes on the rows whose names `includes` accepts, as a list: the load tester's warnings, and the emulation's rate if
/// it was below [`HELD`].
pub fn notes(evidence: &Evidence, includes: impl Fn(&str) -> bool) -> String {
    let mut out = String::new();
    for (step, _, row) in evidence.runs().filter(|(step, ..)| includes(&step.name)) {
        for warning in &row.warnings {
            let _ = writeln!(out, "- {}: {warning}.", evidence.source(&step.name, &step.name));
        }
        if let Some(pace) = row.pace.filter(|pace| pace.mean < HELD) {
            let _ = writeln!(
                out,
                "- {}: the emulation did not hold its rate: {:.1} frames/s, {:.1} in the slowest second.",
                evidence.source(&step.name, &step.name),
                pace.mean,
                pace.min
            );
        }
    }
    if out.is_empty() { out } else { format!("\nNotes on these figures:\n\n{out}") }
}

/// If the emulation runs at least this many frames per second, it counts as running at its full rate of 59.73.
pub const HELD: f64 = 59.0;
