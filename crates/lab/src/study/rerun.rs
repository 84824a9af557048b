//! Measures a random tenth of the rows again, and compares them with the spread of the study.

use anyhow::{Context, bail};
use framewire_loadtest::Stop;
use framewire_loadtest::report::format::{self, millis, percent};
use framewire_loadtest::report::machine::Machine;
use framewire_loadtest::row::Row;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::archive::{Archive, SessionOptions, StudyInfo};
use super::measure;
use super::passes::{Spread, is_timed};
use super::plan;
use super::steps::{Lengths, Step};

/// The name of the rerun's line in the archive.
const LINE: &str = "rerun";
/// One in this many rows is measured again.
const SHARE: usize = 10;
/// How many times each chosen row is measured again.
const PASSES: usize = 3;
/// The rerun does not agree with the study if the probability that chance alone causes as many differences is below
/// this value.
const CHANCE: f64 = 0.05;

/// Rows that were measured again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rerun {
    /// When the rerun began, in UTC and the format of RFC 3339.
    pub started: String,
    /// The command line.
    pub command: Vec<String>,
    /// The seed of the random choice of rows.
    pub seed: u64,
    /// The machine.
    pub machine: Machine,
    /// The rows.
    pub rows: Vec<RerunRow>,
}

/// A row that was measured again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RerunRow {
    /// The name of its step.
    pub name: String,
    /// Its figures in each pass.
    pub passes: Vec<RowFigures>,
}

/// The figures of a row in one pass. Times are in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RowFigures {
    /// The number of requests.
    pub requests: u64,
    /// The share of correct replies, in percent.
    pub success: f64,
    /// The mean latency, if there was a correct reply.
    pub mean: Option<f64>,
    /// The 99th percentile of the latency, if there was a correct reply.
    pub p99: Option<f64>,
}

impl RowFigures {
    fn of(row: &Row) -> RowFigures {
        let timed = Some(row).filter(is_timed);
        RowFigures {
            requests: row.requests,
            success: row.success,
            mean: timed.map(|row| row.intended.mean),
            p99: timed.map(|row| row.intended.p99),
        }
    }
}

/// A figure of [`RowFigures`]: its name, a function that returns its value, and a function that formats the value.
pub type ComparedFigure = (&'static str, fn(&RowFigures) -> Option<f64>, fn(f64) -> String);

/// The figures that are compared.
pub const FIGURES: [ComparedFigure; 3] = [
    ("correct replies", |figures| Some(figures.success), percent),
    ("mean", |figures| figures.mean, millis),
    ("p99", |figures| figures.p99, millis),
];

/// A figure in the study and in the rerun.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// The spread in the study.
    pub study: Spread,
    /// The spread in the rerun.
    pub again: Spread,
}

impl Compared {
    /// Whether the ranges of the two overlap.
    pub fn agrees(&self) -> bool {
        self.study.overlaps(&self.again)
    }
}

/// The result of the comparison of all rows. A figure is *apart* if its ranges in the study and in the rerun do not
/// overlap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// How many figures were compared.
    pub compared: usize,
    /// How many of these are apart.
    pub apart: usize,
    /// How many would be apart by chance on average, if nothing had changed.
    pub expected: f64,
    /// The largest number of figures that may be apart by chance.
    pub allowed: usize,
}

impl Verdict {
    /// Whether the rerun agrees with the study: no more figures are apart than chance explains.
    pub fn agrees(&self) -> bool {
        self.apart <= self.allowed
    }

    /// The verdict as text.
    pub fn words(&self) -> String {
        let Verdict { compared, apart, expected, allowed } = self;
        format!(
            "The rerun {} with the study: the ranges of {apart} of {compared} figures do not overlap. By chance alone, there would \
             be {expected:.1} such figures on average, and no more than {allowed} in 95 of 100 reruns.",
            if self.agrees() { "agrees" } else { "does not agree" }
        )
    }
}

impl Rerun {
    /// The rerun that is stored in a study's archive.
    pub fn read(archive: &Archive) -> Option<Rerun> {
        archive.result(LINE)
    }

    /// The figures of a row in the study and in the rerun, in the order of [`FIGURES`].
    pub fn compared(again: &RerunRow, study: &[Row]) -> Vec<Option<Compared>> {
        let study: Vec<_> = study.iter().map(RowFigures::of).collect();
        let compare = |(_, value, _): &ComparedFigure| {
            let spread = |passes: &[RowFigures]| Spread::of(passes.iter().filter_map(value));
            Some(Compared { study: spread(&study)?, again: spread(&again.passes)? })
        };
        FIGURES.iter().map(compare).collect()
    }

    /// The verdict on all rows. `passes` returns a row's passes in the study.
    pub fn verdict<'a>(&self, passes: impl Fn(&str) -> &'a [Row]) -> Verdict {
        let mut chances = Vec::new();
        let mut apart = 0;
        for again in &self.rows {
            let study = passes(&again.name);
            for compared in Rerun::compared(again, study).into_iter().flatten() {
                chances.push(apart_by_chance(study.len(), again.passes.len()));
                apart += usize::from(!compared.agrees());
            }
        }
        Verdict { compared: chances.len(), apart, expected: chances.iter().sum(), allowed: allowed(&chances) }
    }
}

/// The probability that the ranges of two groups of values from the same distribution do not overlap. The groups have
/// `one` and `other` values. In sorted order, they can be mixed in `orders` ways, which are all equally probable. In
/// two of these ways, the ranges do not overlap.
fn apart_by_chance(one: usize, other: usize) -> f64 {
    let orders: f64 = (1..=other).map(|number| (one + number) as f64 / number as f64).product();
    (2.0 / orders).min(1.0)
}

/// The smallest number `n` for which the probability of more than `n` events is below [`CHANCE`]. `chances` has the
/// probability of each event.
fn allowed(chances: &[f64]) -> usize {
    let mut counts = vec![1.0]; // probability of each number of events
    for chance in chances {
        let mut next = vec![0.0; counts.len() + 1];
        for (count, probability) in counts.iter().enumerate() {
            next[count] += probability * (1.0 - chance);
            next[count + 1] += probability * chance;
        }
        counts = next;
    }
    let mut exceeded = 1.0;
    for (count, probability) in counts.iter().enumerate() {
        exceeded -= probability;
        if exceeded < CHANCE {
            return count;
        }
    }
    chances.len()
}

/// Chooses rows at random, among those that the study has measured in all of its passes.
fn chosen(archive: &Archive, about: &StudyInfo, seed: u64) -> Vec<Step> {
    let is_whole = |step: &Step| {
        let names = (1..=about.passes).map(|number| plan::pass_name(&step.name, number));
        step.is_repeated() && names.into_iter().all(|name| archive.report(&name).is_some())
    };
    let steps: Vec<_> = plan::all().into_iter().filter(is_whole).collect();
    let count = steps.len().div_ceil(SHARE);
    let mut places = fastrand::Rng::with_seed(seed).choose_multiple(0..steps.len(), count);
    places.sort_unstable();
    places.into_iter().map(|place| steps[place].clone()).collect()
}

/// Measures a tenth of the rows again, and stores the result in the study's archive. Returns `None`, and stores
/// nothing, if `stop` was set.
///
/// # Errors
/// If there is no study of several passes, or a row cannot be measured.
pub fn run(
    archive: &mut Archive,
    lengths: Lengths,
    how: SessionOptions,
    seed: u64,
    stop: &Stop,
) -> anyhow::Result<Option<Rerun>> {
    let about = archive.about()?.context("there is no study to compare with; make one without --rerun")?;
    let steps = chosen(archive, &about, seed);
    if about.passes < 2 || steps.is_empty() {
        bail!(
            "no row was measured in several passes, so no spread is known; make the study with `framewire-lab study`"
        );
    }
    let row = std::time::Duration::from_secs_f64(about.seconds);
    let lengths = Lengths { passes: PASSES, row, ..lengths };
    let folder = TempDir::with_prefix("framewire-rerun-").context("no folder for temporary files")?;
    let mut results = Archive::open(folder.path())?;
    let command = how.command.clone();
    let now = results.begin(StudyInfo::new(about.mgba, &lengths), how)?;
    let started = format::now();
    measure::all(&mut results, lengths, stop, &steps)?;
    if stop.stopped() {
        return Ok(None);
    }
    let again = |step: Step| RerunRow {
        passes: (1..=PASSES)
            .filter_map(|number| results.report(&plan::pass_name(&step.name, number))?.rows.pop())
            .map(|row| RowFigures::of(&row))
            .collect(),
        name: step.name,
    };
    let rows = steps.into_iter().map(again).collect();
    let rerun = Rerun { started, command, seed, machine: now.machine, rows };
    archive.keep(LINE, &rerun)?;
    Ok(Some(rerun))
}

#[cfg(test)]
mod tests {
    use framewire_loadtest::row::Summary;

    use super::*;

    fn row(success: f64, mean: f64) -> Row {
        let intended = Summary { count: 10, mean, p99: 2.0 * mean, ..Summary::default() };
        Row { requests: 10, success, intended, ..Row::default() }
    }

    fn rerun(rows: &[Row]) -> Rerun {
        let again = RerunRow { name: "a".to_owned(), passes: rows.iter().map(RowFigures::of).collect() };
        Rerun {
            started: String::new(),
            command: Vec::new(),
            seed: 1,
            machine: Machine::here(),
            rows: vec![again; 10],
        }
    }

    #[test]
    fn figures_whose_ranges_overlap_agree() {
        let study = [row(100.0, 5.0), row(99.0, 6.0), row(100.0, 5.5), row(98.0, 7.0)];
        let same = rerun(&[row(98.5, 6.9), row(98.0, 8.0), row(98.5, 9.0)]).verdict(|_| &study);
        assert_eq!((same.compared, same.apart, same.agrees()), (30, 0, true));
        let slower = rerun(&[row(100.0, 7.1), row(100.0, 8.0), row(100.0, 9.0)]).verdict(|_| &study);
        assert_eq!((slower.compared, slower.apart, slower.agrees()), (30, 20, false));
        assert!(
            slower.words().contains("does not agree") && slower.words().contains("20 of 30"),
            "{}",
            slower.words()
        );
    }

    #[test]
    fn chance_sets_how_many_figures_may_be_apart() {
        // There are 35 ways to choose 3 of 7 values. In two of them, the 3 values are the lowest or the highest.
        assert!((apart_by_chance(4, 3) - 2.0 / 35.0).abs() < 1e-12);
        assert!((apart_by_chance(1, 1) - 1.0).abs() < 1e-12);
        assert_eq!(allowed(&[]), 0);
        assert_eq!(allowed(&[0.01]), 0);
        assert_eq!(allowed(&[0.5, 0.5]), 2);
        assert_eq!(allowed(&[0.057; 48]), 6);
    }
}
