//! The plan of one run.

use std::time::Duration;

use crate::payload::Payload;
use crate::stages::Stages;

/// The highest rate that is accepted, in requests per second.
pub const MOST_RATE: f64 = 10_000_000.0;
/// The longest duration, warm-up and time-out.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// How the requests of an open load are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// All gaps are equal.
    Constant,
    /// Gaps are exponentially distributed, as from many independent users. There are bursts and lulls, but the mean gap
    /// is the same as with [`Constant`](Arrivals::Constant).
    Poisson,
}

/// What decides when the next request is due.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    /// The clock decides: each request is due at its time, whatever happened to earlier requests.
    Open {
        /// Requests per second over all workers.
        rate: f64,
        /// How the requests are spread over time.
        arrivals: Arrivals,
    },
    /// The clock decides, with rates that change during the run.
    Stages {
        /// The rates.
        stages: Stages,
        /// How the requests are spread over time.
        arrivals: Arrivals,
    },
    /// The replies decide: each client sends its next request after the reply to its last one.
    Closed {
        /// The number of clients over all workers.
        concurrency: usize,
    },
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What decides when requests are due.
    pub load: Load,
    /// The length of the window. The window is the part of the run that is measured.
    pub duration: Duration,
    /// How long load is sent before the window, without measuring it. Zero means a cold start: the first measured
    /// request opens the first connection.
    pub warmup: Duration,
    /// The payload of each request.
    pub payload: Payload,
    /// The number of threads that send, each with its own runtime.
    pub workers: usize,
    /// The largest number of requests in flight at a time, over all workers. If more requests are due, they wait, and
    /// their latency includes the wait. A closed load has as many requests in flight as it has clients, and ignores
    /// this number. But [`check`](Plan::check) refuses a number below `workers` for a closed load
    /// too.
    pub connections: usize,
    /// The longest time that a request may take. It counts from the time at which a client begins the request to
    /// the end of the reply. It includes the time to connect and all retries. This is also the longest time that
    /// the run waits for replies after the window.
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
    /// The rate is not a positive number, or is too high.
    #[error("a rate of {0} requests/s; give a number above 0 and up to {MOST_RATE}, such as 10 or 0.5")]
    Rate(f64),
    /// There are no clients.
    #[error("a concurrency of 0; give at least 1")]
    Concurrency,
    /// The window has no length.
    #[error("a duration of 0; give a time such as 5s or 500ms")]
    Duration,
    /// The window is so short that no second request is due in it.
    #[error("at {rate} requests/s no second request is due within {duration:?}; give a longer duration")]
    TooShort {
        /// Requests per second.
        rate: f64,
        /// The window.
        duration: Duration,
    },
    /// The stages have less than one request on average.
    #[error("the stages {0} have less than one request; give a higher rate or a longer time")]
    NoRequests(String),
    /// The time-out is zero.
    #[error("a time-out of 0; give a time such as 10s")]
    Timeout,
    /// A time is longer than 366 days.
    #[error("{0:?} is too long; give a duration, a warm-up and a time-out of at most 366 days each")]
    TooLong(Duration),
    /// There are no workers, or more workers than connections or than clients of a closed load.
    #[error("{workers} workers with {connections} connections; each worker needs at least one connection")]
    Workers {
        /// The number of threads.
        workers: usize,
        /// The largest number of requests in flight, or the number of clients of a closed load.
        connections: usize,
    },
}

impl Plan {
    /// Checks that the plan can be run.
    pub fn check(&self) -> Result<(), PlanError> {
        if let Some(time) =
            [self.duration, self.warmup, self.timeout].into_iter().find(|time| *time > LONGEST)
        {
            return Err(PlanError::TooLong(time));
        }
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
