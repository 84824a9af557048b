//! Combines the passes of a row that was measured several times: into one row, and into the spread of each figure.

use std::collections::BTreeMap;

use framewire_loadtest::probe::Pace;
use framewire_loadtest::row::{Row, Summary};

/// The range and the median of a figure over all passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The lowest value.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The highest value.
    pub high: f64,
}

impl Spread {
    /// The spread of these values; `None` if there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        // If the number of values is odd, both arguments are the value in the middle.
        let median = f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Spread { low, median, high })
    }

    /// Whether the two ranges overlap.
    pub fn overlaps(&self, other: &Spread) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// The median as text, followed by the range in parentheses if the values differ.
    pub fn words(&self, words: fn(f64) -> String) -> String {
        let [low, median, high] = [self.low, self.median, self.high].map(words);
        if low == high { median } else { format!("{median} ({low} to {high})") }
    }
}

/// Whether a pass has latencies.
pub fn is_timed(row: &&Row) -> bool {
    row.intended.count > 0
}

/// Combines all passes into one row: the sums of requests, the medians of latencies and rates, and the slowest request
/// of all. `None` if there is no pass.
pub fn combined(passes: &[Row]) -> Option<Row> {
    let [first, rest @ ..] = passes else { return None };
    if rest.is_empty() {
        return Some(first.clone());
    }
    let median = |value: fn(&Row) -> f64| middle(passes.iter().map(value));
    let sum = |value: fn(&Row) -> u64| passes.iter().map(value).sum::<u64>();
    let (requests, correct) = (sum(|row| row.requests), sum(|row| row.correct));
    Some(Row {
        seconds: passes.iter().map(|row| row.seconds).sum(),
        achieved: median(|row| row.achieved),
        requests,
        correct,
        success: 100.0 * correct as f64 / requests.max(1) as f64,
        failures: added(passes, |row| &row.failures),
        statuses: added(passes, |row| &row.statuses),
        failure_texts: added(passes, |row| &row.failure_texts),
        intended: summary(passes, |row| &row.intended),
        sent: summary(passes, |row| &row.sent),
        connect: summary(passes, |row| &row.connect),
        first_byte: summary(passes, |row| &row.first_byte),
        late: summary(passes, |row| &row.late),
        tester_busy: Spread::of(passes.iter().filter_map(|row| row.tester_busy)).map(|spread| spread.median),
        waited: sum(|row| row.waited),
        connections: sum(|row| row.connections),
        retries: sum(|row| row.retries),
        most_in_flight: passes.iter().map(|row| row.most_in_flight).max().unwrap_or(0),
        pace: pace(passes),
        series: Vec::new(),
        warnings: warnings(passes),
        ..first.clone()
    })
}

fn middle(values: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(values).map_or(0.0, |spread| spread.median)
}

fn added<K: Ord + Clone>(passes: &[Row], counts: fn(&Row) -> &BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let mut all = BTreeMap::new();
    for (kind, count) in passes.iter().flat_map(counts) {
        *all.entry(kind.clone()).or_default() += count;
    }
    all
}

fn summary(passes: &[Row], part: fn(&Row) -> &Summary) -> Summary {
    let parts: Vec<_> = passes.iter().map(part).filter(|part| part.count > 0).collect();
    let median = |value: fn(&Summary) -> f64| middle(parts.iter().map(|&part| value(part)));
    let p50 = median(|part| part.p50);
    let nearest = parts.iter().min_by(|one, other| (one.p50 - p50).abs().total_cmp(&(other.p50 - p50).abs()));
    Summary {
        count: parts.iter().map(|part| part.count).sum(),
        mean: median(|part| part.mean),
        p50,
        p90: median(|part| part.p90),
        p95: median(|part| part.p95),
        p99: median(|part| part.p99),
        p999: median(|part| part.p999),
        p9999: median(|part| part.p9999),
        max: parts.iter().map(|part| part.max).fold(0.0, f64::max),
        curve: nearest.map(|part| part.curve.clone()).unwrap_or_default(),
    }
}

fn pace(passes: &[Row]) -> Option<Pace> {
    let paces: Vec<_> = passes.iter().filter_map(|row| row.pace).collect();
    Some(Pace {
        mean: Spread::of(paces.iter().map(|pace| pace.mean))?.median,
        min: paces.iter().map(|pace| pace.min).fold(f64::INFINITY, f64::min),
        max: paces.iter().map(|pace| pace.max).fold(0.0, f64::max),
        samples: paces.iter().map(|pace| pace.samples).sum(),
    })
}

/// Returns one example of each kind of warning, with the number of passes that had such a warning. The kind of a
/// warning is its text before the first digit.
fn warnings(passes: &[Row]) -> Vec<String> {
    let kind =
        |warning: &str| warning.split(|letter: char| letter.is_ascii_digit()).next().unwrap_or("").to_owned();
    let mut kinds: Vec<(String, &str, usize)> = Vec::new();
    for warning in passes.iter().flat_map(|row| &row.warnings) {
        let this = kind(warning);
        match kinds.iter_mut().find(|known| known.0 == this) {
            Some(known) => known.2 += 1,
            None => kinds.push((this, warning, 1)),
        }
    }
    let total = passes.len();
    kinds
        .into_iter()
        .map(|(_, warning, count)| format!("in {count} of {total} passes, such as: {warning}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(requests: u64, correct: u64, mean: f64) -> Row {
        let intended = Summary { count: correct, mean, max: 2.0 * mean, ..Summary::default() };
        let failures = BTreeMap::from([("reset".to_owned(), requests - correct)]);
        let warnings = vec![format!("late by {mean} ms")];
        Row { requests, correct, success: 100.0, intended, failures, warnings, ..Row::default() }
    }

    #[test]
    fn requests_of_passes_are_added_and_latencies_become_a_median() {
        let row = combined(&[pass(10, 9, 3.0), pass(10, 10, 1.0), pass(20, 20, 2.0)]).unwrap();
        assert_eq!((row.requests, row.correct, row.success), (40, 39, 97.5));
        assert_eq!((row.intended.mean, row.intended.max, row.intended.count), (2.0, 6.0, 39));
        assert_eq!(row.failures["reset"], 1);
        assert_eq!(row.warnings, ["in 3 of 3 passes, such as: late by 3 ms"]);
        assert_eq!(combined(&[]), None);
        let single = pass(10, 9, 3.0);
        assert_eq!(combined(std::slice::from_ref(&single)), Some(single));
    }

    #[test]
    fn passes_without_a_reply_do_not_count_for_latency() {
        let row = combined(&[pass(10, 0, 0.0), pass(10, 10, 4.0)]).unwrap();
        assert_eq!((row.intended.mean, row.success), (4.0, 50.0));
    }

    #[test]
    fn a_spread_has_a_median_and_a_range() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(spread, Spread { low: 1.0, median: 2.5, high: 4.0 });
        let words: fn(f64) -> String = |value| value.to_string();
        assert_eq!(spread.words(words), "2.5 (1 to 4)");
        assert_eq!(Spread::of([2.0, 2.0]).unwrap().words(words), "2");
        assert_eq!(Spread::of([]), None);
        assert!(spread.overlaps(&Spread::of([4.0, 9.0]).unwrap()));
        assert!(!spread.overlaps(&Spread::of([4.1, 9.0]).unwrap()));
    }
}
