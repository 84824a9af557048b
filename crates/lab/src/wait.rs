//! Waiting for conditions, with deadlines.

use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// The time between two checks of a condition.
const STEP: Duration = Duration::from_millis(10);

/// Checks `condition` repeatedly until it holds.
///
/// # Errors
/// [`Error::Timeout`] with `what` if the condition does not hold within `limit`. Errors of the condition itself are
/// returned at once.
pub fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    until_some(what, limit, || Ok(condition()?.then_some(())))
}

/// Calls `attempt` repeatedly until it returns a value, and returns that value.
///
/// # Errors
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
            return Err(Error::Timeout { what: what.into(), after: limit });
        }
        thread::sleep(STEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_ends_when_the_condition_holds() {
        let mut asked = 0;
        let value = until_some("three", Duration::from_secs(5), || {
            asked += 1;
            Ok((asked == 3).then_some("yes"))
        });
        assert_eq!(value.unwrap(), "yes");
    }

    #[test]
    fn the_timeout_error_names_the_condition() {
        let error = until("pigs flew", Duration::from_millis(30), || Ok(false)).unwrap_err();
        assert_eq!(error.to_string(), "timed out after 30ms while waiting until pigs flew");
    }

    #[test]
    fn an_error_ends_the_wait_at_once() {
        let start = Instant::now();
        until("never", Duration::from_secs(60), || Err(Error::X11("gone".into()))).unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
