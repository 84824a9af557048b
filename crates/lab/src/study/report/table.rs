//! A row's figures as cells of tables.

use framewire_loadtest::report::format::{millis, percent, rate, thousands};
use framewire_loadtest::row::Row;

use super::evidence::failures;
use crate::study::figures::Published;

/// Shown where there is no figure.
pub const NONE: &str = "-";
/// Shown where something is not measured yet.
pub const MISSING: &str = "not measured";

/// Heads of [`figures`].
pub const FIGURES: [&str; 10] =
    ["achieved", "mean", "p50", "p99", "p99.9", "max", "success", "<errors", "wrong", "frames/s"];

/// A row's figures.
pub fn figures(row: Option<&Row>) -> Vec<String> {
    let Some(row) = row else { return vec![MISSING.to_owned()] };
    let times = &row.intended;
    let time = |value: f64| if times.count > 0 { millis(value) } else { NONE.to_owned() };
    let others = row.failures.iter().filter(|(kind, _)| kind.as_str() != "wrong reply");
    let errors: Vec<_> =
        others.map(|(kind, count)| format!("{} {kind}", thousands(&count.to_string()))).collect();
    vec![
        rate(row.achieved),
        time(times.mean),
        time(times.p50),
        time(times.p99),
        time(times.p999),
        time(times.max),
        percent(row.success),
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
