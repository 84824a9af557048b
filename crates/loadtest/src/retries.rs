//! Retries of failed requests.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The largest number of retries of a request.
const MOST: usize = 20;
/// The longest wait before a retry.
const LONGEST: Duration = Duration::from_secs(60);

/// The waits before the retries of a request, one for each retry. Without waits, a request is not tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retries(Vec<Duration>);

/// The error for a text that is not a list of waits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a list of waits; write the wait before each retry, such as 50ms,100ms (up to {MOST} waits of up to \
     {LONGEST:?} each)"
)]
pub struct RetriesError(String);

impl Retries {
    /// Retries with these waits.
    pub fn new(waits: impl Into<Vec<Duration>>) -> Retries {
        Retries(waits.into())
    }

    /// The waits in order.
    pub fn waits(&self) -> &[Duration] {
        &self.0
    }

    /// The longest time for a request with all of its attempts, if each attempt may take `timeout`.
    pub fn longest(&self, timeout: Duration) -> Duration {
        let tries = u32::try_from(self.0.len()).unwrap_or(u32::MAX).saturating_add(1);
        timeout.saturating_mul(tries).saturating_add(self.0.iter().sum())
    }
}

impl fmt::Display for Retries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits: Vec<_> = self.0.iter().map(|wait| format!("{wait:?}")).collect();
        f.write_str(&waits.join(","))
    }
}

impl FromStr for Retries {
    type Err = RetriesError;

    fn from_str(text: &str) -> Result<Self, RetriesError> {
        let wait = |word: &str| humantime::parse_duration(word.trim()).ok().filter(|wait| *wait <= LONGEST);
        let waits: Option<Vec<_>> = text.split(',').map(wait).collect();
        let waits = waits.filter(|waits| waits.len() <= MOST);
        waits.map(Retries).ok_or_else(|| RetriesError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_and_shown() {
        let retries: Retries = "400ms, 1200ms".parse().unwrap();
        assert_eq!(retries.waits(), [400, 1200].map(Duration::from_millis));
        assert_eq!(retries.to_string(), "400ms,1.2s");
        assert_eq!(retries.to_string().parse(), Ok(retries.clone()));
        assert_eq!(retries.longest(Duration::from_secs(10)), Duration::from_millis(31_600));
        assert_eq!(Retries::default().longest(Duration::from_secs(10)), Duration::from_secs(10));
    }

    #[test]
    fn texts_that_are_not_lists_of_waits_are_refused() {
        let many = ["1ms"; MOST + 1].join(",");
        for text in ["", "soon", "50", "50ms,,1s", "2h", &many] {
            let error = text.parse::<Retries>().unwrap_err().to_string();
            assert!(error.contains("such as 50ms,100ms"), "{error}");
        }
    }
}
