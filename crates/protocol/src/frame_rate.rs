//! Computes the frame rate from frame numbers that arrive at irregular times.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time over which the rate is computed. Half of it is enough for a first value.
const SPAN: Duration = Duration::from_millis(900);

/// The frame numbers of about the last second. The rate is computed from them.
#[derive(Debug, Default)]
pub struct FrameRate {
    noted: VecDeque<(Instant, u32)>,
}

impl FrameRate {
    /// Adds a frame number. Returns the rate in frames per second, if it is known.
    pub fn note(&mut self, now: Instant, frame: u32) -> Option<f64> {
        if self.noted.back().is_some_and(|(_, last)| frame < *last) {
            // The counter went back, because of a reset or an older state. The measurement starts again.
            self.noted.clear();
        }
        self.noted.push_back((now, frame));
        while self.noted.get(1).is_some_and(|(time, _)| now - *time >= SPAN) {
            self.noted.pop_front();
        }
        let (time, first) = *self.noted.front()?;
        let elapsed = now - time;
        if elapsed < SPAN / 2 {
            return None;
        }
        Some(f64::from(frame - first) / elapsed.as_secs_f64())
    }

    /// Forgets all frame numbers. Call this after an interruption.
    pub fn clear(&mut self) {
        self.noted.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_frames_in_each_quarter_of_a_second_are_a_rate_of_sixty() {
        let start = Instant::now();
        let mut frame_rate = FrameRate::default();
        assert_eq!(frame_rate.note(start, 0), None);
        for quarter in 1..=8 {
            frame_rate.note(start + Duration::from_millis(250 * quarter), 15 * quarter as u32);
        }
        let rate =
            frame_rate.note(start + Duration::from_millis(2250), 135).expect("a rate after two seconds");
        assert!((rate - 60.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn the_measurement_starts_again_after_a_reset() {
        let start = Instant::now();
        let mut frame_rate = FrameRate::default();
        frame_rate.note(start, 1000);
        assert_eq!(frame_rate.note(start + Duration::from_secs(1), 5), None);
    }
}
