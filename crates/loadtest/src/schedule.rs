//! Computes when requests are due.

use std::time::Duration;

use crate::plan::{Arrivals, Load};

/// The times at which one worker's requests are due, counted from the start of the run. With [`Load::Open`], they do
/// not end; with [`Load::Closed`], there are none.
#[derive(Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    pieces: Vec<Piece>,
    worker: u64,
    workers: u64,
    /// How many due times the iterator has returned so far.
    count: u64,
    /// With Poisson arrivals: how many requests are due, on average and for all workers together, up to the last
    /// returned time; 0 at first. It rises in random steps.
    place: f64,
    random: fastrand::Rng,
}

/// A part of the schedule in which the rate is constant or changes evenly.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Its start in seconds.
    start: f64,
    /// The number of requests that are due before its start.
    before: f64,
    /// The number of requests that are due before its end.
    until: f64,
    /// The rate at its start, in requests per second.
    rate: f64,
    /// How much the rate rises per second.
    rise: f64,
}

impl Piece {
    /// The time, in seconds, by which this number of requests is due.
    fn time(&self, requests: f64) -> f64 {
        let inside = (requests - self.before).max(0.0);
        if inside == 0.0 {
            return self.start;
        }
        // The integral of the rate, solved for the time, in a form that also works if the rate does not rise.
        let root = (self.rate * self.rate + 2.0 * self.rise * inside).max(0.0).sqrt();
        self.start + 2.0 * inside / (self.rate + root)
    }
}

impl Schedule {
    /// The schedule of worker `worker` out of `workers`. A load with stages begins with `warmup` at its first rate.
    pub fn new(load: &Load, warmup: Duration, worker: usize, workers: usize, random: fastrand::Rng) -> Self {
        let (arrivals, pieces) = match load {
            Load::Open { rate, arrivals } => {
                let piece = Piece { start: 0.0, before: 0.0, until: f64::INFINITY, rate: *rate, rise: 0.0 };
                (*arrivals, vec![piece])
            }
            Load::Stages { stages, arrivals } => {
                let stages = stages.stages();
                let warm = stages.first().map(|first| (warmup, first.from, first.from));
                let all =
                    warm.into_iter().chain(stages.iter().map(|stage| (stage.length, stage.from, stage.to)));
                let (mut start, mut before) = (0.0, 0.0);
                let pieces = all.filter(|(length, ..)| !length.is_zero()).map(|(length, from, to)| {
                    let seconds = length.as_secs_f64();
                    let until = before + seconds * (from + to) / 2.0;
                    let piece = Piece { start, before, until, rate: from, rise: (to - from) / seconds };
                    (start, before) = (start + seconds, until);
                    piece
                });
                (*arrivals, pieces.collect())
            }
            // In a closed load, a request is due when the client's last request has ended.
            Load::Closed { .. } => (Arrivals::Constant, Vec::new()),
        };
        Schedule {
            arrivals,
            pieces,
            worker: worker as u64,
            workers: workers as u64,
            count: 0,
            place: 0.0,
            random,
        }
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let place = match self.arrivals {
            // Computed from the count each time, so that rounding errors do not add up.
            Arrivals::Constant => (self.count * self.workers + self.worker) as f64,
            Arrivals::Poisson => {
                // Together, several independent Poisson processes form one, whose rate is the sum of their rates.
                self.place -= (1.0 - self.random.f64()).ln() * self.workers as f64;
                self.place
            }
        };
        self.count += 1;
        let piece = self.pieces.iter().find(|piece| place < piece.until)?;
        Some(Duration::from_secs_f64(piece.time(place)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(rate: f64, arrivals: Arrivals, worker: usize, workers: usize) -> Schedule {
        let random = fastrand::Rng::with_seed(7);
        Schedule::new(&Load::Open { rate, arrivals }, Duration::ZERO, worker, workers, random)
    }

    #[test]
    fn workers_share_a_constant_rate_evenly() {
        let mut all: Vec<_> =
            (0..3).flat_map(|worker| constant(30.0, Arrivals::Constant, worker, 3).take(10)).collect();
        all.sort();
        for (index, time) in all.iter().enumerate() {
            assert!((time.as_secs_f64() - index as f64 / 30.0).abs() < 1e-8);
        }
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let times: Vec<_> =
            constant(100.0, Arrivals::Poisson, 0, 1).take(100_000).map(|time| time.as_secs_f64()).collect();
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 0.01 - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn stages_have_their_rates_and_a_ramp_rises_evenly() {
        let stages = "2s@100,4s@100..300,1s@0,2s@300..0".parse().unwrap();
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let load = Load::Stages { stages: Clone::clone(&stages), arrivals };
            let all: Vec<_> = (0..2)
                .flat_map(|worker| {
                    Schedule::new(
                        &load,
                        Duration::from_secs(1),
                        worker,
                        2,
                        fastrand::Rng::with_seed(worker as u64),
                    )
                })
                .map(|time| time.as_secs_f64())
                .collect();
            let between =
                |from: f64, to: f64| all.iter().filter(|time| (from..to).contains(*time)).count() as f64;
            // A second of warm-up, then 2 s at 100, 2 s from 100 to 200, 2 s from 200 to 300, a pause, and down to 0.
            let expected = [
                (0.0, 1.0, 100.0),
                (1.0, 3.0, 200.0),
                (3.0, 5.0, 300.0),
                (5.0, 7.0, 500.0),
                (8.0, 10.0, 300.0),
            ];
            for (from, to, count) in expected {
                let off = (between(from, to) - count).abs();
                let most = if arrivals == Arrivals::Constant { 1.0 } else { 4.0 * count.sqrt() };
                assert!(off <= most, "{arrivals:?} {from} to {to}: {} instead of {count}", between(from, to));
            }
            assert!(between(7.001, 8.0) == 0.0 && between(10.001, 99.0) == 0.0);
        }
    }
}
