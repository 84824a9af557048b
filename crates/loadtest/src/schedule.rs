//! When requests are due.

use std::time::Duration;

use crate::plan::Arrivals;

/// The times at which one worker's requests are due, counted from the start of the run; endless.
#[derive(Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    /// Seconds between two requests of all workers together.
    gap: f64,
    worker: u64,
    workers: u64,
    /// Requests given out.
    count: u64,
    /// Seconds at which the last Poisson request was due.
    last: f64,
    random: fastrand::Rng,
}

impl Schedule {
    /// The share of worker `worker` out of `workers` in `rate` requests a second.
    pub fn new(rate: f64, arrivals: Arrivals, worker: usize, workers: usize, random: fastrand::Rng) -> Self {
        Schedule {
            arrivals,
            gap: 1.0 / rate,
            worker: worker as u64,
            workers: workers as u64,
            count: 0,
            last: 0.0,
            random,
        }
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let seconds = match self.arrivals {
            // From the count each time, so that no rounding adds up.
            Arrivals::Constant => (self.count * self.workers + self.worker) as f64 * self.gap,
            Arrivals::Poisson => {
                // Several independent Poisson processes together are one with the sum of their rates.
                self.last -= (1.0 - self.random.f64()).ln() * self.gap * self.workers as f64;
                self.last
            }
        };
        self.count += 1;
        Some(Duration::from_secs_f64(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_a_constant_rate_evenly() {
        let mut all: Vec<_> = (0..3)
            .flat_map(|worker| {
                Schedule::new(30.0, Arrivals::Constant, worker, 3, fastrand::Rng::new()).take(10)
            })
            .collect();
        all.sort();
        for (index, time) in all.iter().enumerate() {
            assert!((time.as_secs_f64() - index as f64 / 30.0).abs() < 1e-8);
        }
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let times: Vec<_> = Schedule::new(100.0, Arrivals::Poisson, 0, 1, fastrand::Rng::with_seed(7))
            .take(100_000)
            .map(|time| time.as_secs_f64())
            .collect();
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 0.01 - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{variance}");
    }
}
