//! Formats numbers for people.

use std::time::SystemTime;

/// Milliseconds with about three digits: `0.062`, `4.91`, `17.5`, `1,465`.
pub fn millis(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.9995 => 2,
        _ => 3,
    };
    thousands(format!("{value:.decimals$}"))
}

/// A number per second: `0.0050`, `0.50`, `63.31`, `1,200`, `112,700`.
pub fn rate(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 999.95 || (value - value.round()).abs() < 1e-9 => 0,
        value if value >= 99.995 => 1,
        value if value >= 0.0995 => 2,
        // Two significant digits.
        value => (1.0 - value.log10().floor()) as usize,
    };
    thousands(format!("{value:.decimals$}"))
}

/// Percent, never rounded up to 100 or down to 0: `100%`, `99.97%`, `0.1%`.
pub fn percent(value: f64) -> String {
    if value <= 0.0 || value >= 100.0 || (value - value.round()).abs() < 1e-9 {
        return format!("{value:.0}%");
    }
    let decimals = if value > 99.0 { 2 } else { 1 };
    let shown = format!("{value:.decimals$}");
    match shown.as_str() {
        "100.00" => "99.99%".to_owned(),
        "0.0" => "0.1%".to_owned(),
        _ => shown + "%",
    }
}

/// A number with commas between groups of three digits.
pub fn thousands(number: impl ToString) -> String {
    let number = number.to_string();
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let (sign, digits) = whole.split_at(whole.len() - whole.trim_start_matches('-').len());
    let mut grouped = String::with_capacity(number.len() + 4);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{fraction}")
}

/// The present time in the format of RFC 3339, in UTC and to the second. If the clock is set before 1970, this is the
/// beginning of 1970.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now().max(SystemTime::UNIX_EPOCH)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits_and_commas() {
        assert_eq!(
            [0.0617, 4.913, 17.54, 99.96, 1465.2, 87501.0].map(millis),
            ["0.062", "4.91", "17.5", "100", "1,465", "87,501"]
        );
        assert_eq!(
            [0.5, 5.0, 63.314, 999.97, 112700.4].map(rate),
            ["0.50", "5", "63.31", "1,000", "112,700"]
        );
        assert_eq!(
            [100.0, 99.9999, 99.5, 97.0, 0.0001, 0.0].map(percent),
            ["100%", "99.99%", "99.50%", "97%", "0.1%", "0%"]
        );
        assert_eq!(thousands("-1234567.89"), "-1,234,567.89");
    }

    #[test]
    fn small_rates_are_not_shown_as_0() {
        assert_eq!([0.001, 0.002, 0.0167, 0.0996, 0.0].map(rate), ["0.0010", "0.0020", "0.017", "0.10", "0"]);
    }
}
