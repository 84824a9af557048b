//! The schedule of frames: when the next frame is due.

use std::time::{Duration, Instant};

pub use crate::SetSpeed as Speed;

/// The [`Speed`] is out of range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the speed is {0} times the console's rate; use 0.01 to 1000 times, or unlimited")]
pub struct SpeedError(pub f64);

impl Speed {
    /// The speed, if it is in range.
    pub(super) fn checked(self) -> Result<Speed, SpeedError> {
        match self {
            Speed::Times(times) if !(0.01..=1000.0).contains(&times) => Err(SpeedError(times)),
            speed => Ok(speed),
        }
    }

    /// The speed of this many thousandths of the console's rate; 0 is unlimited.
    pub(super) fn from_thousandths(thousandths: u32) -> Result<Speed, SpeedError> {
        match thousandths {
            0 => Ok(Speed::Unlimited),
            _ => Speed::Times(f64::from(thousandths) / 1000.0).checked(),
        }
    }
}

/// Frames that are late by more than this are skipped. Otherwise, after the computer has been suspended, the game would
/// run for minutes as fast as the processor allows.
const MAX_CATCH_UP: Duration = Duration::from_millis(200);

/// The schedule of frames.
#[derive(Debug)]
pub(super) struct Pace {
    period: Duration,
    speed: Speed,
    paused: bool,
    due: Instant,
}

/// When the next frame runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Now.
    Now,
    /// At this time.
    At(Instant),
    /// Not until a request resumes the game, which is paused.
    Never,
}

impl Pace {
    /// A schedule whose first frame is due at `now`. `period` is the length of a frame at normal speed.
    pub fn new(period: Duration, speed: Speed, now: Instant) -> Self {
        Pace { period, speed, paused: false, due: now }
    }

    /// Decides at the time `now` when the next frame runs.
    pub fn next(&self, now: Instant) -> Next {
        match self.speed {
            _ if self.paused => Next::Never,
            Speed::Unlimited => Next::Now,
            Speed::Times(_) if self.due <= now => Next::Now,
            Speed::Times(_) => Next::At(self.due),
        }
    }

    /// Records that a frame runs at `now`.
    pub fn ran(&mut self, now: Instant) {
        if let Speed::Times(times) = self.speed {
            self.due += self.period.div_f64(times);
            if now.saturating_duration_since(self.due) > MAX_CATCH_UP {
                self.due = now;
            }
        }
    }

    /// Changes the speed from `now` on.
    pub fn set_speed(&mut self, speed: Speed, now: Instant) {
        self.speed = speed;
        self.due = now;
    }

    /// Stops frames, or lets them run.
    pub fn set_paused(&mut self, paused: bool, now: Instant) {
        self.paused = paused;
        self.due = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_micros(16_743);

    #[test]
    fn short_delays_are_caught_up_and_long_ones_are_skipped() {
        let start = Instant::now();
        let mut pace = Pace::new(PERIOD, Speed::Times(1.0), start);
        assert_eq!(pace.next(start), Next::Now);
        pace.ran(start);
        assert_eq!(pace.next(start), Next::At(start + PERIOD));
        let late = start + 3 * PERIOD;
        pace.ran(late);
        assert_eq!(pace.next(late), Next::Now);
        let asleep = start + Duration::from_secs(60);
        pace.ran(asleep);
        pace.ran(asleep);
        assert_eq!(pace.next(asleep), Next::At(asleep + PERIOD));
    }

    #[test]
    fn speed_and_pause_change_the_schedule() {
        let start = Instant::now();
        let mut pace = Pace::new(PERIOD, Speed::Times(2.0), start);
        pace.ran(start);
        assert_eq!(pace.next(start), Next::At(start + PERIOD / 2));
        pace.set_speed(Speed::Unlimited, start);
        assert_eq!(pace.next(start), Next::Now);
        pace.set_paused(true, start);
        assert_eq!(pace.next(start), Next::Never);
    }
}
