//! What one run does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::payload::Payload;
use crate::stages::Stages;

/// The highest rate that is accepted.
pub const MOST_RATE: f64 = 10_000_000.0;

/// How the gaps between requests of an open load are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// All gaps are equal.
    Constant,
    /// Gaps are exponentially distributed, as from many independent users: bursts and lulls with the same mean.
    Poisson,
}

/// What decides when the next request is due.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    /// The clock: requests are due at their times, whatever happened to the ones before.
    Open {
        /// Requests per second over all workers.
        rate: f64,
        /// How they are spread.
        arrivals: Arrivals,
    },
    /// The clock, with rates that change.
    Stages {
        /// What they are.
        stages: Stages,
        /// How requests are spread.
        arrivals: Arrivals,
    },
    /// The replies: each of this many clients sends its next request after the reply to the last.
    Closed {
        /// Number of clients over all workers.
        concurrency: usize,
    },
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What decides when requests are due.
    pub load: Load,
    /// Length of the measured window.
    pub duration: Duration,
    /// Load before the window that is not measured. Zero is a cold start: the first connection is made by the first
    /// measured request.
    pub warmup: Duration,
    /// What a request carries.
    pub payload: Payload,
    /// Threads that send, each with a runtime of its own.
    pub workers: usize,
    /// The largest number of exchanges under way at a time over all workers; requests that are due beyond it wait, clock running.
    pub connections: usize,
    /// Longest a request may take from its send, and longest the run waits for replies after the window.
    pub timeout: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            load: Load::Open { rate: 1.0, arrivals: Arrivals::Constant },
            duration: Duration::from_secs(10),
            warmup: Duration::ZERO,
            payload: Payload::Uuid,
            workers: 1,
            connections: 256,
            timeout: Duration::from_secs(10),
        }
    }
}

/// Why a plan cannot be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A rate that is not a positive number.
    #[error("a rate of {0} requests/s; give a number above 0 and up to {MOST_RATE}, such as 10 or 0.5")]
    Rate(f64),
    /// No client at all.
    #[error("a concurrency of 0; give at least 1")]
    Concurrency,
    /// A window of no length.
    #[error("a duration of 0; give a time such as 5s or 500ms")]
    Duration,
    /// A window so short that no request is due in it.
    #[error("at {rate} requests/s no second request is due within {duration:?}; give a longer duration")]
    TooShort {
        /// Requests per second.
        rate: f64,
        /// The window.
        duration: Duration,
    },
    /// Stages without a request.
    #[error("in the stages {0} no request is due; give a higher rate or a longer time")]
    NoRequests(String),
    /// No time to answer.
    #[error("a timeout of 0; give a time such as 10s")]
    Timeout,
    /// No worker, or more workers than connections.
    #[error("{workers} workers with {connections} connections; each worker needs at least one connection")]
    Workers {
        /// Threads.
        workers: usize,
        /// The largest number of exchanges under way.
        connections: usize,
    },
}

impl Plan {
    /// Refuses what cannot be run.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.duration.is_zero() {
            return Err(PlanError::Duration);
        }
        if self.timeout.is_zero() {
            return Err(PlanError::Timeout);
        }
        if self.workers == 0 || self.connections < self.workers {
            return Err(PlanError::Workers { workers: self.workers, connections: self.connections });
        }
        match self.load {
            Load::Open { rate, .. } if !(rate > 0.0 && rate <= MOST_RATE) => Err(PlanError::Rate(rate)),
            Load::Open { rate, .. } if rate * self.duration.as_secs_f64() < 1.0 => {
                Err(PlanError::TooShort { rate, duration: self.duration })
            }
            Load::Stages { ref stages, .. } if stages.requests() < 1.0 => {
                Err(PlanError::NoRequests(stages.to_string()))
            }
            Load::Closed { concurrency: 0 } => Err(PlanError::Concurrency),
            Load::Closed { concurrency } if concurrency < self.workers => {
                Err(PlanError::Workers { workers: self.workers, connections: concurrency })
            }
            _ => Ok(()),
        }
    }
}
