//! A row's figures as cells of tables.

use framewire_loadtest::report::format::{millis, percent, rate, thousands};
use framewire_loadtest::row::Row;

use super::evidence::{Measured, failures};
use crate::study::figures::Published;
use crate::study::passes::{Spread, is_timed};

/// The text of a cell if there is no figure.
pub const NONE: &str = "-";
/// The text of a cell if something is not measured yet.
pub const MISSING: &str = "not measured";

/// The column heads for the cells of [`figures`]. A `<` is not shown: it marks a column of text.
pub const FIGURES: [&str; 10] =
    ["achieved", "mean", "p50", "p99", "p99.9", "max", "success", "<errors", "wrong", "frames/s"];

/// The cells of a row's figures. The mean, the 99th percentile and the share of correct replies show the range of the
/// passes.
pub fn figures(measured: &Measured) -> Vec<String> {
    let Some(row) = measured.row else { return vec![MISSING.to_owned()] };
    let times = &row.intended;
    let spread = |value: fn(&Row) -> f64| Spread::of(measured.passes.iter().filter(is_timed).map(value));
    let ranged =
        |value: fn(&Row) -> f64| spread(value).map_or(NONE.to_owned(), |spread| spread.words(millis));
    let success = Spread::of(measured.passes.iter().map(|row| row.success));
    // This is the share of all requests. The median of the passes would hide rare failures.
    let success = success.map(|success| Spread { median: row.success, ..success });
    let time = |value: f64| if times.count > 0 { millis(value) } else { NONE.to_owned() };
    let others = row.failures.iter().filter(|(kind, _)| kind.as_str() != "wrong reply");
    let errors: Vec<_> = others.map(|(kind, count)| format!("{} {kind}", thousands(count))).collect();
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

/// The cells of a published row's figures. Figures that the study did not publish are [`NONE`].
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
