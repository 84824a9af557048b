//! Samples a counter during a run, and computes how fast it rose.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::http::{HttpClient, HttpTarget};
use crate::target::{Call, Client, Session, Target};

/// The time between two samples.
const PERIOD: Duration = Duration::from_millis(250);
/// The shortest time over which a rate is computed. Rates over shorter times would mostly show the jitter of the
/// sampling.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest time that a sample may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads a counter.
pub trait Probe: Send + 'static {
    /// The counter's present value, or `None` if it cannot be read.
    fn read(&mut self) -> Option<f64>;
}

/// How fast the counter rose, per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// From the start of the window, which is the measured part of the run, to the end of the run.
    pub mean: f64,
    /// In the slowest period of about one second.
    pub min: f64,
    /// In the fastest period of about one second.
    pub max: f64,
    /// How many times the counter was read.
    pub samples: usize,
}

impl Pace {
    /// Computes the pace from times and values, in order of time. If the counter went back between two samples, because
    /// of a reset or a loaded state, the time between them is left out. Returns `None` if no time remains, for example
    /// with fewer than two samples.
    pub fn of(samples: &[(Instant, f64)]) -> Option<Pace> {
        let (mut rise, mut time) = (0.0, 0.0);
        for pair in samples.windows(2) {
            if pair[1].1 >= pair[0].1 {
                rise += pair[1].1 - pair[0].1;
                time += (pair[1].0 - pair[0].0).as_secs_f64();
            }
        }
        if time == 0.0 {
            return None;
        }
        let mean = rise / time;
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut from = 0;
        for to in 1..samples.len() {
            if samples[to].1 < samples[to - 1].1 {
                from = to;
            }
            // `from` becomes the latest sample that is at least `SHORTEST` before `to`.
            while from + 1 < to && samples[to].0 - samples[from + 1].0 >= SHORTEST {
                from += 1;
            }
            let span = samples[to].0 - samples[from].0;
            if span >= SHORTEST {
                let pace = (samples[to].1 - samples[from].1) / span.as_secs_f64();
                (min, max) = (min.min(pace), max.max(pace));
            }
        }
        // The mean can be outside of this range if the run is shorter than `SHORTEST`, or if the counter rises in
        // steps. Then the range is extended.
        (min, max) = (min.min(mean), max.max(mean));
        Some(Pace { mean, min, max, samples: samples.len() })
    }
}

/// Samples a probe on a separate thread until it is stopped.
pub(crate) struct Sampler {
    stop: mpsc::Sender<()>,
    thread: thread::JoinHandle<(Box<dyn Probe>, Option<Pace>)>,
}

impl Sampler {
    /// Starts a sampler that takes its first sample at `start`.
    pub(crate) fn start(mut probe: Box<dyn Probe>, start: Instant) -> Sampler {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut samples = Vec::new();
            let mut next = start;
            let mut last = false;
            while !last {
                let wait = next.saturating_duration_since(Instant::now());
                // The probe is read once more at the end, so that the whole run is covered.
                last = stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
                let before = Instant::now();
                let value = probe.read();
                let after = Instant::now();
                // The counter had this value at some time in between.
                samples.extend(value.map(|value| (before + (after - before) / 2, value)));
                next = (next + PERIOD).max(after);
            }
            (probe, Pace::of(&samples))
        });
        Sampler { stop, thread }
    }

    /// Ends the sampling. Returns the probe, which can be used again, and the pace; `None` if the probe panicked.
    pub(crate) fn stop(self) -> Option<(Box<dyn Probe>, Option<Pace>)> {
        let _ = self.stop.send(());
        self.thread.join().ok()
    }
}

/// A probe for a number in a JSON document that an HTTP server returns.
#[derive(Debug)]
pub struct JsonProbe {
    runtime: Runtime,
    client: HttpClient,
    pointer: String,
}

impl JsonProbe {
    /// Creates a probe that gets the document from `target`. `field` is the number's name or, for a nested number, the
    /// names that lead to it, joined by dots.
    ///
    /// # Errors
    /// If the system does not provide an event queue.
    pub fn new(target: &HttpTarget, field: &str) -> std::io::Result<JsonProbe> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = target.session().client();
        Ok(JsonProbe { runtime, client, pointer: format!("/{}", field.replace('.', "/")) })
    }
}

impl Probe for JsonProbe {
    fn read(&mut self) -> Option<f64> {
        let mut document = Vec::new();
        let mut call = Call::new(&[], &mut document);
        let client = &mut self.client;
        let exchange = async { tokio::time::timeout(PROBE_TIMEOUT, client.exchange(&mut call)).await };
        self.runtime.block_on(exchange).ok()?.ok()?;
        let json: serde_json::Value = serde_json::from_slice(&document).ok()?;
        json.pointer(&self.pointer)?.as_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Vec<(Instant, f64)> {
        let start = Instant::now();
        values
            .iter()
            .enumerate()
            .map(|(index, value)| (start + Duration::from_millis(500) * index as u32, *value))
            .collect()
    }

    #[test]
    fn a_steady_counter_has_equal_mean_minimum_and_maximum() {
        let pace = Pace::of(&samples(&[100.0, 130.0, 160.0, 190.0])).unwrap();
        assert_eq!((pace.mean, pace.min, pace.max), (60.0, 60.0, 60.0));
        assert_eq!(Pace::of(&samples(&[1.0])), None);
    }

    #[test]
    fn a_lull_shows_in_the_minimum_and_a_reset_is_left_out() {
        let pace = Pace::of(&samples(&[0.0, 30.0, 60.0, 60.0, 60.0, 90.0])).unwrap();
        assert_eq!((pace.mean, pace.min, pace.max), (36.0, 0.0, 60.0));
        let pace = Pace::of(&samples(&[1000.0, 1030.0, 5.0, 35.0, 65.0])).unwrap();
        assert_eq!((pace.mean, pace.min, pace.max), (60.0, 60.0, 60.0));
    }
}
