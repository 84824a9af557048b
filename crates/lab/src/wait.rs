//! Waiting for conditions, with deadlines.

use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// How often a condition is checked.
const STEP: Duration = Duration::from_millis(10);

/// Asks again and again until `condition` holds.
///
/// # Errors
///
/// [`Error::Timeout`] with `what` when it does not within `limit`, and the condition's own errors at once.
pub fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    until_some(what, limit, || Ok(condition()?.then_some(())))
}

/// Asks again and again until there is a value, and returns it.
///
/// # Errors
///
/// Those of [`until`].
pub fn until_some<T>(
    what: &str,
    limit: Duration,
    mut attempt: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = attempt()? {
            return Ok(value);
        }
        if start.elapsed() >= limit {
            return Err(Error::Timeout { what: what.into(), after: limit, detail: String::new() });
        }
        thread::sleep(STEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_comes_true_ends_the_wait() {
        let mut asked = 0;
        let value = until_some("three", Duration::from_secs(5), || {
            asked += 1;
            Ok((asked == 3).then_some("yes"))
        });
        assert_eq!(value.unwrap(), "yes");
    }

    #[test]
    fn a_condition_that_never_comes_true_is_named() {
        let error = until("pigs flew", Duration::from_millis(30), || Ok(false)).unwrap_err();
        assert_eq!(error.to_string(), "waited 30ms without success until pigs flew");
    }

    #[test]
    fn an_error_is_not_waited_out() {
        let start = Instant::now();
        until("never", Duration::from_secs(60), || Err(Error::X11("gone".into()))).unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
