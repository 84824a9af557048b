//! A row's figures as cells of tables.

use framewire_loadtest::report::format::{millis, percent, rate, thousands};
use framewire_loadtest::row::Row;

use super::evidence::{Measured, failures};
use crate::study::figures::Published;
use crate::study::passes::{Spread, is_timed};

/// Shown where there is no figure.
pub const NONE: &str = "-";
/// Shown where something is not measured yet.
pub const MISSING: &str = "not measured";

/// Heads of [`figures`].
pub const FIGURES: [&str; 10] =
    ["achieved", "mean", "p50", "p99", "p99.9", "max", "success", "<errors", "wrong", "frames/s"];

/// A row's figures. The mean, the 99th percentile and the share of right replies have the range of the passes.
pub fn figures(measured: &Measured) -> Vec<String> {
    let Some(row) = measured.row else { return vec![MISSING.to_owned()] };
    let times = &row.intended;
    let spread = |value: fn(&Row) -> f64| Spread::of(measured.passes.iter().filter(is_timed).map(value));
    let ranged =
        |value: fn(&Row) -> f64| spread(value).map_or(NONE.to_owned(), |spread| spread.words(millis));
    let success = Spread::of(measured.passes.iter().map(|row| row.success));
    // Of all requests, not the median, which hides rare failures.
    let success = success.map(|success| Spread { median: row.success, ..success });
    let time = |value: f64| if times.count > 0 { millis(value) } else { NONE.to_owned() };
    let others = row.failures.iter().filter(|(kind, _)| kind.as_str() != "wrong reply");
    let errors: Vec<_> =
        others.map(|(kind, count)| format!("{} {kind}", thousands(&count.to_string()))).collect();
    vec![
        rate(row.achieved),
        ranged(|row| row.intended.mean),
        time(times.p50),
        ranged(|row| row.intended.p99),
        time(times.p999),
        time(times.max),
        success.map_or(NONE.to_owned(), |success| success.words(percent)),
        errors.join(", "),
        failures(row, "wrong reply").to_string(),
        row.pace.map_or(NONE.to_owned(), |pace| format!("{:.1}", pace.mean)),
    ]
}

/// A published row's figures; the study did not publish the others.
pub fn published(row: &Published) -> Vec<String> {
    let none = || NONE.to_owned();
    vec![
        rate(row.achieved),
        millis(row.mean),
        none(),
        row.p99.map_or_else(none, millis),
        none(),
        millis(row.max),
        percent(row.success),
        none(),
        none(),
        none(),
    ]
}
