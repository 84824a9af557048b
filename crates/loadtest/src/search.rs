//! Searches for the highest rate that still meets a goal.

use serde::{Deserialize, Serialize};

use crate::row::Phase;

/// How to search for a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// The first rate tried. All rates are in requests per second.
    pub start: f64,
    /// Rates below this are not tried.
    pub lowest: f64,
    /// Rates above this are not tried.
    pub highest: f64,
    /// The search ends when the lowest rate that failed is within this factor of the highest rate that passed.
    pub precision: f64,
    /// The number of confirmation runs that must pass at the end, one after the other.
    pub confirmations: u32,
}

impl Default for Search {
    fn default() -> Self {
        Search { start: 10.0, lowest: 0.1, highest: 10_000_000.0, precision: 1.03, confirmations: 3 }
    }
}

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The goal.
    pub goal: String,
    /// The highest rate, in requests per second, that met the goal in all confirmation runs; `None` if no rate did. If
    /// the search was cut short, confirmation runs may be missing.
    pub rate: Option<f64>,
    /// The lowest rate that missed the goal; `None` if no rate did.
    pub missed_at: Option<f64>,
    /// The conditions that were missed at the rate `missed_at`.
    pub missed: Vec<String>,
    /// Whether the tester was the limit at the rate `missed_at`. If so, the target may be faster.
    pub tester_limited: bool,
    /// The number of confirmation runs that passed at `rate`.
    pub confirmations: u32,
    /// Whether the search was stopped before its end.
    pub cut_short: bool,
}

/// How one run of a search ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The conditions that the run missed; empty if it passed.
    pub missed: Vec<String>,
    /// Whether the tester was the limit.
    pub tester_limited: bool,
    /// Whether the run was stopped. Then the whole search ends.
    pub stopped: bool,
}

/// The largest number of times that the rate is lowered because a confirmation failed.
const STEPS_DOWN: u32 = 12;

/// Searches for a limit. Doubles the rate while runs pass (or halves it until a run passes). Then narrows the gap
/// between the highest rate that passed and the lowest rate that missed the goal, and finally confirms the rate that
/// passed. A search run that misses the goal is repeated once, so that one hiccup of the machine does not end the
/// search.
///
/// # Errors
/// The errors of `trial`.
pub fn find<E>(
    search: &Search,
    goal: String,
    trial: &mut dyn FnMut(f64, Phase) -> Result<Trial, E>,
) -> Result<Limit, E> {
    let mut finder = Finder { trial, limit: Limit { goal, ..Limit::default() } };
    let mut passed = None;
    // Rounding must not lead below the lowest rate, or the search would end without a run.
    let mut rate = round(search.start).max(search.lowest);
    while !finder.limit.cut_short && rate >= search.lowest && rate <= search.highest {
        if finder.passes(rate, Phase::Search)? {
            passed = Some(rate);
            if finder.limit.missed_at.is_some() {
                break;
            }
            rate = round(rate * 2.0);
        } else if passed.is_some() {
            break;
        } else {
            rate = round(rate / 2.0);
        }
    }
    while let (Some(low), Some(high)) = (passed, finder.limit.missed_at) {
        let middle = round((low * high).sqrt());
        if finder.limit.cut_short || high <= low * search.precision || middle <= low || middle >= high {
            break;
        }
        if finder.passes(middle, Phase::Search)? {
            passed = Some(middle);
        }
    }
    let mut confirmations = 0;
    let mut steps = 0;
    while let Some(rate) = passed
        && !finder.limit.cut_short
        && confirmations < search.confirmations
    {
        if finder.passes(rate, Phase::Confirm)? {
            confirmations += 1;
        } else if !finder.limit.cut_short {
            confirmations = 0;
            steps += 1;
            let lower = round(rate / search.precision);
            let continues = steps <= STEPS_DOWN && lower >= search.lowest && lower < rate;
            passed = if continues { Some(lower) } else { None };
        }
    }
    Ok(Limit { rate: passed, confirmations, ..finder.limit })
}

struct Finder<'a, E> {
    trial: &'a mut dyn FnMut(f64, Phase) -> Result<Trial, E>,
    /// What was found so far, without the rate and its confirmations.
    limit: Limit,
}

impl<E> Finder<'_, E> {
    fn passes(&mut self, rate: f64, phase: Phase) -> Result<bool, E> {
        // A confirmation has no second chance, because its purpose is to detect rates that pass only sometimes.
        let chances = if phase == Phase::Confirm { 1 } else { 2 };
        for chance in 1..=chances {
            let trial = (self.trial)(rate, phase)?;
            self.limit.cut_short |= trial.stopped;
            if self.limit.cut_short {
                return Ok(false);
            }
            if trial.missed.is_empty() {
                return Ok(true);
            }
            if chance == chances {
                self.limit.missed_at = Some(rate);
                self.limit.missed = trial.missed;
                self.limit.tester_limited = trial.tester_limited;
            }
        }
        Ok(false)
    }
}

/// Rounds to three significant digits.
fn round(rate: f64) -> f64 {
    let scale = 10f64.powi(2 - rate.log10().floor() as i32);
    (rate * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: f64, mut passes: impl FnMut(f64, Phase) -> bool) -> (Limit, u32) {
        let mut trials = 0;
        let limit = find::<()>(&Search { start, ..Search::default() }, String::new(), &mut |rate, phase| {
            trials += 1;
            assert!(trials < 200, "the search does not end");
            let missed = if passes(rate, phase) { vec![] } else { vec!["slow".to_owned()] };
            Ok(Trial { missed, tester_limited: false, stopped: false })
        });
        (limit.unwrap(), trials)
    }

    #[test]
    fn finds_the_edge_from_below_and_from_above() {
        for edge in [0.3, 7.0, 330.0, 123_456.0] {
            for start in [1.0, 10.0, 1e6] {
                let (limit, _) = run(start, |rate, _| rate <= edge);
                let rate = limit.rate.unwrap();
                assert!(rate <= edge && rate * 1.04 > edge, "{edge} from {start}: {rate}");
                assert_eq!(limit.confirmations, 3);
                assert!(limit.missed_at.unwrap() > edge);
            }
        }
    }

    #[test]
    fn one_hiccup_does_not_end_the_search() {
        let mut count = 0;
        let (limit, _) = run(10.0, |rate, phase| {
            count += 1;
            rate <= 330.0 && (count % 4 != 0 || phase == Phase::Confirm)
        });
        assert!(limit.rate.unwrap() > 300.0, "{limit:?}");
    }

    #[test]
    fn a_confirmation_that_fails_lowers_the_limit() {
        let (limit, _) = run(10.0, |rate, phase| rate <= if phase == Phase::Confirm { 280.0 } else { 330.0 });
        assert!((265.0..=280.0).contains(&limit.rate.unwrap()), "{limit:?}");
        let (limit, _) = run(10.0, |_, phase| phase == Phase::Search);
        assert_eq!(limit.rate, None);
    }

    #[test]
    fn the_missed_conditions_are_those_of_the_rate_that_missed() {
        let (mut misses, mut hiccups) = (0, 0);
        let limit = find::<()>(&Search::default(), String::new(), &mut |rate, _| {
            // Rates above 330/s miss the goal. After the first miss, one trial at a lower rate misses it too, but its
            // repetition passes.
            let hiccup = rate <= 330.0 && misses > 0 && hiccups == 0;
            let missed = if rate > 330.0 || hiccup { vec![format!("slow at {rate}")] } else { vec![] };
            misses += u32::from(!missed.is_empty());
            hiccups += u32::from(hiccup);
            Ok(Trial { missed, tester_limited: hiccup, stopped: false })
        })
        .unwrap();
        assert_eq!(hiccups, 1);
        assert_eq!(limit.missed, [format!("slow at {}", limit.missed_at.unwrap())]);
        assert!(!limit.tester_limited);
    }

    #[test]
    fn a_search_can_end_without_a_passing_rate_or_without_a_failing_rate() {
        let (limit, _) = run(10.0, |_, _| false);
        assert_eq!((limit.rate, limit.missed.len()), (None, 1));
        let (limit, _) = run(10.0, |_, _| true);
        assert!(limit.rate.unwrap() > 5e6 && limit.missed_at.is_none());
    }

    #[test]
    fn the_lowest_rate_is_tried_even_if_its_rounded_value_is_lower() {
        let search = Search { start: 1.0 / 3.0, lowest: 1.0 / 3.0, ..Search::default() };
        let passed = |_, _| Ok::<_, ()>(Trial { missed: vec![], tester_limited: false, stopped: false });
        let limit = find(&search, String::new(), &mut { passed }).unwrap();
        assert!(limit.rate.is_some_and(|rate| rate >= search.lowest), "{limit:?}");
    }
}
