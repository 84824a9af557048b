//! Writes the page `docs/study.md` and its pictures. They contain only what is in the file of results.
//!
//! - [`evidence`]: reads that file, and adds up rows; [`table`]: figures as cells of Markdown tables;
//! - [`opening`], [`versions`], [`trials`], [`others`]: sections of the page;
//! - [`questions`]: the study's questions with short answers, in a table; [`answers`]: longer answers to its open
//!   questions; [`limits`]: one of these answers;
//! - [`pictures`]: the plots; [`svg`]: writes them as files that are readable on light and dark pages.
//!
//! Sentences that depend on the measurements are computed, so that each says what the current figures show.

mod answers;
mod evidence;
mod limits;
mod opening;
mod others;
mod pictures;
mod questions;
mod svg;
mod table;
mod trials;
mod versions;

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::archive::Archive;
use super::rerun::Verdict;
use evidence::Evidence;

/// The goal of the study of 2025: the longest time that a request may take, in ms.
const GOAL_MS: f64 = 60.0;

/// Writes the page and its pictures.
///
/// # Errors
/// If there is no study in `archive`, or a file cannot be written.
pub fn write(archive: &Archive, page: &Path) -> anyhow::Result<()> {
    let evidence = Evidence::read(archive)?;
    pictures::write(&evidence, archive.folder())?;
    fs::write(page, text(&evidence)).with_context(|| format!("cannot write {}", page.display()))
}

/// The verdict of the rerun of a study.
///
/// # Errors
/// If there is no rerun.
pub fn verdict(archive: &Archive) -> anyhow::Result<Verdict> {
    let evidence = Evidence::read(archive)?;
    let rerun = evidence.rerun().context("no row was measured again")?;
    Ok(rerun.verdict(|name| evidence.passes(name)))
}

fn text(evidence: &Evidence) -> String {
    [
        opening::opening(evidence),
        opening::method(evidence),
        opening::goal(evidence),
        questions::section(evidence),
        answers::section(evidence),
        versions::sections(evidence),
        others::rates(evidence),
        trials::sections(evidence),
        others::stampedes(evidence),
        others::rerun(evidence),
        others::endings(evidence),
        others::idle(evidence),
    ]
    .join("\n")
}
