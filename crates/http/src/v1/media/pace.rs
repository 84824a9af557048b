use std::time::Duration;

use tokio::time::Instant;

/// How many pictures in a row may come early because those before came late.
const EARLY: u32 = 2;

/// Limits pictures each second, however unevenly they come.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    /// When the next picture would be due if all came evenly.
    due: Instant,
}

impl Pace {
    /// `rate` pictures a second.
    pub fn new(rate: u32, now: Instant) -> Pace {
        Pace { interval: Duration::from_secs(1) / rate, due: now }
    }

    /// From when on a picture may go.
    pub fn opens(&self) -> Instant {
        self.due.checked_sub(self.interval * EARLY).unwrap_or(self.due)
    }

    /// A picture goes at `now`.
    pub fn went(&mut self, now: Instant) {
        self.due = self.due.max(now) + self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of pictures that come at these microseconds go at once.
    fn count(rate: u32, times: impl Iterator<Item = u64>) -> usize {
        let start = Instant::now();
        let mut pace = Pace::new(rate, start);
        times
            .filter(|micros| {
                let now = start + Duration::from_micros(*micros);
                let goes = pace.opens() <= now;
                if goes {
                    pace.went(now);
                }
                goes
            })
            .count()
    }

    #[test]
    fn a_console_s_rate_goes_through_whole_however_unevenly() {
        assert_eq!(count(60, (0..6000).map(|frame| frame * 16_743)), 6000);
        assert_eq!(count(60, (0..6000).map(|frame| frame * 16_743 + frame % 3 * 8_000)), 6000);
    }

    #[test]
    fn more_than_the_rate_does_not() {
        let fast = count(60, (0..10_000).map(|millisecond| millisecond * 1000));
        assert!((598..=605).contains(&fast), "{fast} in ten seconds");
        let half = count(30, (0..600).map(|frame| frame * 16_743));
        assert!((300..=304).contains(&half), "{half} in ten seconds");
    }
}
