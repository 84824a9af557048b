//! Parses lists and ranges of rates, as users type them.

/// Why a text is not a list of rates.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RatesError {
    /// A part between commas that is neither a number nor a range.
    #[error(
        "{0:?} is not a rate; use numbers above 0 such as 1,5,10, a range such as 10..100/10, or 1..1000*2"
    )]
    Malformed(String),
    /// A range that never ends or is empty.
    #[error(
        "the range {0:?} does not lead from its start to its end; write for example 10..100/10 or 1..1000*2"
    )]
    Range(String),
    /// Too many rates.
    #[error("more than {MOST} rates; choose a larger step")]
    TooMany,
}

/// The largest number of rates in a list.
pub const MOST: usize = 1000;

/// Parses `1,5,10`, `10..100/10` (from, to, step) and `1..1000*2` (from, to, factor), in any combination.
pub fn parse(text: &str) -> Result<Vec<f64>, RatesError> {
    let mut rates = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once("..") {
            None => rates.push(number(part, part)?),
            Some((from, rest)) => range(part, from, rest, &mut rates)?,
        }
        if rates.len() > MOST {
            return Err(RatesError::TooMany);
        }
    }
    Ok(rates)
}

fn number(text: &str, part: &str) -> Result<f64, RatesError> {
    match text.trim().parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err(RatesError::Malformed(part.to_owned())),
    }
}

fn range(part: &str, from: &str, rest: &str, rates: &mut Vec<f64>) -> Result<(), RatesError> {
    let from = number(from, part)?;
    let (to, step, grows) = if let Some((to, step)) = rest.split_once('/') {
        (number(to, part)?, number(step, part)?, false)
    } else if let Some((to, factor)) = rest.split_once('*') {
        (number(to, part)?, number(factor, part)?, true)
    } else {
        return Err(RatesError::Malformed(part.to_owned()));
    };
    if to < from || (grows && step <= 1.0) {
        return Err(RatesError::Range(part.to_owned()));
    }
    // The limit is slightly above the end, so that 0.1..0.3/0.1 contains 0.3.
    let end = to * (1.0 + 1e-9);
    for index in 0..=MOST {
        let rate = if grows { from * step.powi(index as i32) } else { from + step * index as f64 };
        if rate > end {
            return Ok(());
        }
        // 0.1 + 0.2 is 0.30000000000000004, and would not be the same load as 0.3.
        rates.push((rate * 1e9).round() / 1e9);
    }
    Err(RatesError::TooMany)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_ranges_and_mixtures_are_read() {
        assert_eq!(parse("1, 5,10").unwrap(), [1.0, 5.0, 10.0]);
        assert_eq!(parse("10..30/10").unwrap(), [10.0, 20.0, 30.0]);
        assert_eq!(parse("0.5,1..8*2").unwrap(), [0.5, 1.0, 2.0, 4.0, 8.0]);
        assert_eq!(parse("0.1..0.3/0.1").unwrap().len(), 3);
    }

    #[test]
    fn the_rates_of_a_range_are_the_same_as_those_of_a_list() {
        assert_eq!(parse("0.1..0.3/0.1"), parse("0.1,0.2,0.3"));
        assert_eq!(parse("1..1.4*1.1"), parse("1,1.1,1.21,1.331"));
        assert_eq!(parse("2500000..10000000/2500000"), parse("2500000,5000000,7500000,10000000"));
    }

    #[test]
    fn refuses_an_invalid_rate() {
        for text in ["", "0", "-1", "1,", "nan", "inf", "x", "1..10", "1..10/0", "10..0/0"] {
            assert!(matches!(parse(text), Err(RatesError::Malformed(_))), "{text:?}");
        }
        assert!(matches!(parse("10..1/1"), Err(RatesError::Range(_))));
        assert!(matches!(parse("1..10*1"), Err(RatesError::Range(_))));
        assert_eq!(parse("1..100000/0.1"), Err(RatesError::TooMany));
    }
}
