//! The results of the study that are not reports of `framewire bench`. Times are in milliseconds unless a comment says
//! otherwise.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::window::millis;
use crate::stampede;

/// The result of a stampede: clients connected at once and sent one request each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stampede {
    /// The number of clients.
    pub clients: usize,
    /// The time limit for a client's connection. The same limit applies again to its reply.
    pub patience: f64,
    /// For each client that got its reply, the time from the common start to the reply. The fastest client comes first.
    pub answered: Vec<f64>,
    /// How many of the other clients failed, by the kind of failure.
    pub failed: BTreeMap<String, usize>,
}

impl Stampede {
    /// Makes the result from the outcomes that [`stampede::run`] returned.
    pub fn of(outcomes: Vec<Result<Duration, &'static str>>) -> Stampede {
        let mut result = Stampede {
            clients: outcomes.len(),
            patience: millis(stampede::PATIENCE),
            answered: Vec::new(),
            failed: BTreeMap::new(),
        };
        for outcome in outcomes {
            match outcome {
                Ok(time) => result.answered.push(millis(time)),
                Err(problem) => *result.failed.entry(problem.to_owned()).or_default() += 1,
            }
        }
        result.answered.sort_by(f64::total_cmp);
        result
    }
}

/// The system's counters for a run under a changed condition, such as with Lua's garbage collector off.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemCounters {
    /// How many TCP segments this machine sent. `None` if something else was measured at the same time.
    pub packets: Option<u64>,
    /// How many connections to the script were in the state TIME_WAIT, before and after the run.
    pub waiting: [usize; 2],
    /// How many bytes of garbage Lua made per request, not counting the garbage that it makes even when there are no
    /// requests. `None` if this was not counted.
    pub garbage: Option<f64>,
}

/// A run during which mGBA ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndedRun {
    /// How mGBA ended, with the end of its output.
    pub how: String,
    /// The number of requests of that run.
    pub requests: u64,
    /// How many of these got a correct reply.
    pub correct: u64,
}

/// The allocations of `framewire serve` at its start, and in two runs at different rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allocations {
    /// The allocations before the first run: those of the start and of the first answered request.
    pub start: Allocated,
    /// The runs.
    pub runs: Vec<AllocatedIn>,
}

/// The allocations in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllocatedIn {
    /// The rate in requests per second.
    pub rate: u32,
    /// The number of requests.
    pub requests: u64,
    /// How many of these got a correct reply.
    pub correct: u64,
    /// The allocations.
    pub allocated: Allocated,
}

/// Counts of allocations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Allocated {
    /// How many times memory was allocated.
    pub times: u64,
    /// How many bytes were allocated in total.
    pub bytes: u64,
    /// How many times memory was freed.
    pub freed: u64,
}

/// What happened to a script when its client ended or its network failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// The client that ended or lost its network: a bridge, or a program that sends requests itself.
    pub client: String,
    /// How it ended, as text.
    pub ended: String,
    /// The time from the signal to the end of the client.
    pub ending: Option<f64>,
    /// The lines that the script wrote to its console during the whole step. Lines of the study's script about new
    /// clients are left out.
    pub console: Vec<String>,
    /// The time from the signal, or from the return of the network, to the first correct answer to a new client. If
    /// there was neither a signal nor a return of the network, the time for which the new client waited.
    pub new_client: Option<f64>,
    /// The time from the signal, or from the return of the network, to the first correct answer through the client.
    /// After a signal, the client is started again as soon as the new client has its answer.
    pub through_client: Option<f64>,
    /// How long the network was silent.
    pub silence: Option<f64>,
    /// The time from the beginning of the silence to the first error of a request.
    pub noticed: Option<f64>,
    /// The text of that error.
    pub error: Option<String>,
    /// How many connections the script still held at the end, not counting the one that the study itself keeps idle.
    pub connections_left: usize,
}

impl Ending {
    /// A result with nothing measured yet.
    pub fn of(client: &str, ended: String) -> Ending {
        Ending { client: client.to_owned(), ended, ..Ending::default() }
    }

    /// Whether the script wrote neither a warning nor an error.
    pub fn quiet(&self) -> bool {
        !self.console.iter().any(|line| line.starts_with("warn") || line.starts_with("error"))
    }
}

/// The result for a connection that was left idle and then used again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// How long it was idle, in seconds.
    pub seconds: f64,
    /// The latency of the request before the idle time.
    pub before: f64,
    /// The latency of the first request after the idle time, if its reply was correct.
    pub after: Option<f64>,
    /// The error of that request, if it failed.
    pub error: Option<String>,
    /// The latencies of the following requests.
    pub then: Vec<f64>,
}
