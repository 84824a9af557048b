//! The frame rate, from frame numbers that arrive now and then.

use std::time::{Duration, Instant};

/// Shortest time over which a rate is worth stating.
const SPAN: Duration = Duration::from_millis(900);

/// Frame numbers of about the last second.
#[derive(Debug, Default)]
pub struct Pulse {
    heard: std::collections::VecDeque<(Instant, u32)>,
}

impl Pulse {
    /// Notes a frame number; returns the rate once it is known.
    pub fn beat(&mut self, now: Instant, frame: u32) -> Option<f64> {
        if self.heard.back().is_some_and(|(_, last)| frame < *last) {
            // A reset or an older state: the counter starts again.
            self.heard.clear();
        }
        self.heard.push_back((now, frame));
        while self.heard.get(1).is_some_and(|(time, _)| now - *time >= SPAN) {
            self.heard.pop_front();
        }
        let (time, first) = *self.heard.front()?;
        let elapsed = now - time;
        if elapsed < SPAN / 2 {
            return None;
        }
        Some(f64::from(frame - first) / elapsed.as_secs_f64())
    }

    /// Forgets everything, after an interruption.
    pub fn clear(&mut self) {
        self.heard.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_frames_in_a_second_are_sixty_a_second() {
        let start = Instant::now();
        let mut pulse = Pulse::default();
        assert_eq!(pulse.beat(start, 0), None);
        for quarter in 1..=8 {
            pulse.beat(start + Duration::from_millis(250 * quarter), 15 * quarter as u32);
        }
        let rate = pulse.beat(start + Duration::from_millis(2250), 135).expect("known");
        assert!((rate - 60.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn a_reset_starts_anew() {
        let start = Instant::now();
        let mut pulse = Pulse::default();
        pulse.beat(start, 1000);
        assert_eq!(pulse.beat(start + Duration::from_secs(1), 5), None);
    }
}
