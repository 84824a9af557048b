//! Writes results as Markdown, and puts them between two marks in a page.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use framewire_loadtest::report::format::{millis, percent, rate};
use framewire_loadtest::report::table::Table;

use super::judge::{Bound, Metric};
use super::record::{Figure, Figures, Provenance};
use super::sample::Sample;
use super::soak::{Memory, Soak};

/// The table of figures as Markdown.
pub fn table(table: &Figures) -> String {
    let heads =
        ["<line", "<measure", "<alternative", "<here", "<frames/s, slowest 5 s", "<must reach", "<result"];
    let mut rows = Table::new(&heads);
    for figure in &table.figures {
        rows.row(row(figure));
    }
    format!("{}\n{}", about(&table.about), rows.markdown())
}

fn row(figure: &Figure) -> [String; 7] {
    let Figure { name, measure, bounds, alternative, other, ours, missed } = figure;
    let alternative =
        alternative.as_ref().map_or("-".to_owned(), |what| format!("{what}: {}", summary(other, &[])));
    let frames = [ours, other].map(|runs| Metric::Frames.of(runs, &[]));
    let frames = match frames {
        [Some(ours), Some(other)] => format!("{ours:.1} (alternative: {other:.1})"),
        [Some(ours), None] => format!("{ours:.1}"),
        [None, _] => "-".to_owned(),
    };
    let must: Vec<_> = bounds.iter().map(words).collect();
    let verdict =
        if missed.is_empty() { "met".to_owned() } else { format!("**missed**: {}", missed.join("; ")) };
    [name.clone(), measure.clone(), alternative, summary(ours, other), frames, must.join(", "), verdict]
}

/// The main figures of some runs.
fn summary(runs: &[Sample], alternative: &[Sample]) -> String {
    let mut parts = Vec::new();
    if let Some(value) = Metric::Rate.of(runs, &[]) {
        parts.push(format!("{}/s", rate(value)));
    }
    // The rate as a share of the alternative's rate is shown only for runs without requests, which measure frames. Runs
    // with requests have no bound on this share.
    if runs.iter().all(|run| run.requests == 0)
        && let Some(share) = Metric::Share.of(runs, alternative)
    {
        parts.push(format!("{share:.1}%"));
    }
    for (metric, name) in [(Metric::Mean, "mean"), (Metric::P99, "p99"), (Metric::Max, "max")] {
        if let Some(value) = metric.of(runs, &[]) {
            parts.push(format!("{name} {} ms", millis(value)));
        }
    }
    let (correct, requests) =
        runs.iter().fold((0, 0), |sum, run| (sum.0 + run.correct, sum.1 + run.requests));
    if requests > 0 {
        parts.push(if correct == requests {
            "all correct".to_owned()
        } else {
            format!("{} correct", percent(100.0 * correct as f64 / requests as f64))
        });
    }
    if runs.len() > 1 {
        parts.push(format!("{} runs", runs.len()));
    }
    parts.join(", ")
}

fn words(bound: &Bound) -> String {
    let limit = bound.limit;
    match bound.metric {
        Metric::Rate => format!("{}/s", rate(limit)),
        Metric::Share => format!("{limit}%"),
        Metric::Mean => format!("mean under {limit} ms"),
        Metric::P99 => format!("p99 under {limit} ms"),
        Metric::Max => format!("max under {limit} ms"),
        Metric::Success => "all correct".to_owned(),
        Metric::Frames => format!("{limit:.1} frames/s"),
    }
}

/// The results of the long run as Markdown.
pub fn soak(soak: &Soak) -> String {
    let run = std::slice::from_ref(&soak.run);
    let frames = soak.run.frames;
    let lowest =
        frames.and_then(|frames| frames.lowest).map_or("-".to_owned(), |lowest| format!("{lowest:.1}"));
    let mut text = about(&soak.about);
    text +=
        &format!("\n- {} requests in {:.0} s: {}\n", soak.run.requests, soak.run.seconds, summary(run, &[]));
    text += &format!(
        "- {:.2} frames/s, {lowest} over the slowest 5 s\n",
        frames.map_or(0.0, |frames| frames.mean)
    );
    text += &memory("the bridge", &soak.bridge);
    text += &memory("mGBA", &soak.emulator);
    for missed in &soak.missed {
        text += &format!("- **missed**: {missed}\n");
    }
    text
}

fn memory(name: &str, memory: &Memory) -> String {
    let mib = |minute: usize| {
        memory.minutes.get(minute).map_or("-".to_owned(), |bytes| format!("{:.1}", bytes / 1048576.0))
    };
    format!(
        "- memory of {name}: {} MiB in the second minute, {} MiB in the last ({}); {} file descriptors before, {} after\n",
        mib(1),
        mib(memory.minutes.len().saturating_sub(1)),
        memory.drift().map_or("-".to_owned(), |drift| format!("{drift:+.1}%")),
        memory.descriptors.0,
        memory.descriptors.1,
    )
}

fn about(about: &Provenance) -> String {
    format!(
        "`{}`, {}, at commit {}; {}; {}, libmgba {}.\n",
        about.command.join(" "),
        about.started,
        about.commit.as_deref().unwrap_or("unknown"),
        about.machine.summary(),
        about.mgba,
        about.libmgba,
    )
}

/// Replaces the text between `<!-- NAME -->` and `<!-- /NAME -->` in a page.
///
/// # Errors
/// If the page cannot be read or written, or does not contain the marks.
pub fn insert(path: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let page = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let Some(page) = replaced(&page, name, text) else {
        bail!("{} has no marks <!-- {name} --> and <!-- /{name} -->", path.display());
    };
    fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
}

fn replaced(page: &str, name: &str, text: &str) -> Option<String> {
    let (front, rest) = page.split_once(&format!("<!-- {name} -->\n"))?;
    let end = format!("<!-- /{name} -->");
    let (_, back) = rest.split_once(&end)?;
    Some(format!("{front}<!-- {name} -->\n{text}{end}{back}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n";
        let new = replaced(page, "x", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n");
        assert_eq!(replaced(&new, "x", "old\n").unwrap(), page);
        assert_eq!(replaced(page, "y", ""), None);
    }

    #[test]
    fn a_summary_contains_only_what_was_measured() {
        let run = Sample { rate: Some(5000.0), ..Sample::default() };
        let bare = Sample { rate: Some(5100.0), ..Sample::default() };
        assert_eq!(summary(&[run], &[bare]), "5,000/s, 98.0%");
        let asked = Sample { rate: Some(10.0), requests: 100, correct: 99, ..Sample::default() };
        assert_eq!(summary(&[asked.clone(), asked.clone()], &[asked]), "10/s, 99% correct, 2 runs");
    }
}
