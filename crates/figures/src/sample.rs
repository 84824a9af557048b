//! What a run gave.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::frames::Frames;

/// One run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// What asked, and how.
    pub client: String,
    /// Its length.
    pub seconds: f64,
    /// Requests a second that were asked for; none where each waited for the one before.
    pub asked: Option<f64>,
    /// Requests that were due.
    pub requests: u64,
    /// Those that were answered rightly.
    pub correct: u64,
    /// The others, by what became of them.
    pub failures: BTreeMap<String, u64>,
    /// Right replies, or frames where nothing is asked, a second.
    pub rate: Option<f64>,
    /// From the intended send to the right reply.
    pub latency: Option<Latency>,
    /// How the emulation went on meanwhile.
    pub frames: Option<Frames>,
}

/// Latencies in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Half were not above this.
    pub p50: f64,
    /// 99 % were not above this.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl Sample {
    /// An empty one.
    pub fn of(client: &str) -> Sample {
        Sample { client: client.to_owned(), ..Sample::default() }
    }
}

/// Collects latencies.
#[derive(Debug)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// None yet. To the microsecond, up to a minute.
    pub fn new() -> Latencies {
        Latencies(Histogram::new_with_bounds(1, 60_000_000, 3).expect("bounds and digits that are allowed"))
    }

    /// One more.
    pub fn note(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// What they were, if there are any.
    pub fn summary(&self) -> Option<Latency> {
        let millis = |micros: u64| micros as f64 / 1e3;
        (self.count() > 0).then(|| Latency {
            mean: self.0.mean() / 1e3,
            p50: millis(self.0.value_at_quantile(0.5)),
            p99: millis(self.0.value_at_quantile(0.99)),
            max: millis(self.0.max()),
        })
    }
}
