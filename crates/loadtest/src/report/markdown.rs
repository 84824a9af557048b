//! The report as Markdown.

use std::fmt::Write;

use super::Report;
use super::parts::{errors, notices, tables};

/// The whole report, as Markdown that can also be read in a terminal.
pub fn report(report: &Report) -> String {
    let rows = report.shown();
    let mut out = format!("{}\n\n{}\n", report.summary(), report.machine.summary());
    for part in tables(report, &rows) {
        // Writing to memory does not fail.
        let _ = write!(out, "\n{} ({}):\n\n{}", part.heading, part.remark, part.table.markdown());
    }
    let errors = errors(&rows);
    if !errors.is_empty() {
        out += "\nErrors:\n\n";
    }
    for (row, texts) in errors {
        let _ = writeln!(out, "- {row}");
        for text in texts {
            let _ = writeln!(out, "  - {text}");
        }
    }
    let notices = notices(report, &rows);
    if !notices.is_empty() {
        out += "\n";
    }
    for notice in notices {
        let _ = writeln!(out, "- {}", notice.text);
    }
    out
}
