//! The time source of the console's clock, which is the real-time clock that some cartridges have.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// The time source of the console's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clock {
    /// The host's clock, whatever the emulator's speed is. During a recording, the clock advances with the frames
    /// instead. It also does so during a replay, unless the replay is set to use the emulator's own time source.
    #[default]
    Wall,
    /// The clock starts at the host's time and advances with the frames.
    Frames,
    /// The clock starts at this time and advances with the frames.
    At(ClockTime),
}

/// A time and a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockTime {
    /// Unix time in milliseconds.
    pub unix_ms: i64,
    /// The time zone of the calendar that the game sees, in seconds east of UTC.
    pub zone: i32,
}

impl fmt::Display for ClockTime {
    /// In the format of RFC 3339.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The last millisecond of the year 9999. The format cannot express later times.
        const LAST: i64 = 253_402_300_799_999;
        let local = self.unix_ms.saturating_add(i64::from(self.zone) * 1000).clamp(0, LAST);
        let local = SystemTime::UNIX_EPOCH + Duration::from_millis(local.unsigned_abs());
        let text = humantime::format_rfc3339_millis(local).to_string();
        let minutes = self.zone.abs() / 60;
        let sign = if self.zone < 0 { '-' } else { '+' };
        write!(f, "{}{sign}{:02}:{:02}", text.trim_end_matches('Z'), minutes / 60, minutes % 60)
    }
}

/// The text is not a [`Clock`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a clock; use wall, frames, or a time such as 2026-01-31T12:00:00Z or 2026-01-31T12:00:00+01:00, from \
     1970 to 2099"
)]
pub struct ClockError(String);

impl FromStr for Clock {
    type Err = ClockError;

    fn from_str(text: &str) -> Result<Clock, ClockError> {
        match text {
            "wall" => Ok(Clock::Wall),
            "frames" => Ok(Clock::Frames),
            time => self::time(time).map(Clock::At).ok_or_else(|| ClockError(text.to_owned())),
        }
    }
}

/// Reads a time in the format of RFC 3339.
fn time(text: &str) -> Option<ClockTime> {
    const DIGITS: usize = "2026-01-31T12:00:00".len();
    /// The beginning of the year 2100. The calendars of cartridges end in 2099.
    const LATEST: i64 = 4_102_444_800_000;
    let (zone, end) = match text.strip_suffix(['Z', 'z']) {
        Some(text) => (0, text.len()),
        None => (offset(text.get(text.len().checked_sub("+01:00".len())?..)?)?, text.len() - "+01:00".len()),
    };
    let local = text.get(..end).filter(|local| local.len() >= DIGITS)?;
    let local = humantime::parse_rfc3339(&format!("{}Z", local.to_ascii_uppercase())).ok()?;
    let local = local.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let local = i64::try_from(local.as_millis()).ok()?;
    let unix_ms = local - i64::from(zone) * 1000;
    if local < LATEST && unix_ms >= 0 { Some(ClockTime { unix_ms, zone }) } else { None }
}

/// Reads an offset such as `+01:00`. Returns it in seconds east of UTC.
fn offset(text: &str) -> Option<i32> {
    let (sign, digits) = text.split_at_checked(1)?;
    let sign = match sign {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = digits.split_once(':')?;
    let number = |text: &str, limit: i32| {
        let all_digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| all_digits && *number < limit)
    };
    Some(sign * (number(hours, 24)? * 3600 + number(minutes, 60)? * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<(i64, i32)> {
        match text.parse() {
            Ok(Clock::At(ClockTime { unix_ms, zone })) => Some((unix_ms, zone)),
            _ => None,
        }
    }

    #[test]
    fn a_time_that_was_read_is_written_as_the_same_text() {
        for text in [
            "2026-01-31T12:00:00.250-09:30",
            "1970-01-01T01:00:00.000+01:00",
            "2099-12-31T23:59:59.999+00:00",
            "2099-12-31T23:30:00.000-01:00",
        ] {
            let Ok(Clock::At(time)) = text.parse() else { panic!("{text}") };
            assert_eq!(time.to_string(), text);
        }
    }

    #[test]
    fn clocks_are_parsed() {
        assert_eq!(("wall".parse(), "frames".parse()), (Ok(Clock::Wall), Ok(Clock::Frames)));
        assert_eq!(at("1970-01-02T00:00:00Z"), Some((86_400_000, 0)));
        assert_eq!(at("2026-01-31T12:00:00+01:00"), Some((1_769_857_200_000, 3600)));
        assert_eq!(at("2026-01-31T12:00:00.250-09:30"), Some((1_769_895_000_250, -34_200)));
        for text in [
            "",
            "Wall",
            "now",
            "2026-01-31",
            "2026-01-31T12:00:00",
            "2026-02-30T12:00:00Z",
            "2026-01-31T12:00:00+1:00",
            "2026-01-31T12:00:00+24:00",
            "2026-01-31T12:00:00+é:0",
            "1969-12-31T23:59:59Z",
            "2100-01-01T00:00:00Z",
            "2100-01-01T00:30:00+01:00",
        ] {
            let error = text.parse::<Clock>().unwrap_err().to_string();
            assert!(error.contains("is not a clock; use wall"), "{error}");
        }
    }
}
