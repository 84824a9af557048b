//! Points in time as text.

use std::time::{Duration, SystemTime};

/// RFC 3339 in UTC, to the millisecond. A time before 1970 or after 9999 is shown as the first or last time of that
/// range.
pub fn millis(time: SystemTime) -> String {
    /// The last second that `humantime` can format.
    const LAST: Duration = Duration::from_secs(253_402_300_799);
    let shown = time.clamp(SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + LAST);
    humantime::format_rfc3339_millis(shown).to_string()
}

/// The time in a text from [`millis`], or in an older one without milliseconds; `None` if the text is not a time.
pub fn parse(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_or_after_9999_does_not_panic() {
        let day = Duration::from_secs(86_400);
        let epoch = SystemTime::UNIX_EPOCH;
        assert_eq!(millis(epoch - day), "1970-01-01T00:00:00.000Z");
        assert_eq!(millis(epoch + day), "1970-01-02T00:00:00.000Z");
        assert_eq!(millis(epoch + day * 365 * 9000), "9999-12-31T23:59:59.000Z");
    }
}
