//! The results of the steps that are not runs of requests. Times are in milliseconds unless said otherwise.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::window::millis;
use crate::stampede;

/// Clients that connected at once and sent one request each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stampede {
    /// How many.
    pub clients: usize,
    /// How long each was ready to wait.
    pub patience: f64,
    /// From the common start to the reply, of those that got theirs, fastest first.
    pub answered: Vec<f64>,
    /// The others, by what became of them.
    pub failed: BTreeMap<String, usize>,
}

impl Stampede {
    /// Of what [`stampede::run`] returns.
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

/// What the system counted during a run with something changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct System {
    /// TCP segments that this machine sent, if nothing else was measured at the same time.
    pub packets: Option<u64>,
    /// Connections to the script in the state TIME_WAIT, before and after.
    pub waiting: [usize; 2],
    /// Bytes of garbage in Lua for each request, without those of frames that have no request, where they were counted.
    pub garbage: Option<f64>,
}

/// mGBA ended during a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// How, with its last words.
    pub how: String,
    /// Requests of that run, and how many had a right reply.
    pub requests: u64,
    /// See above.
    pub correct: u64,
}

/// Allocations of `framewire serve` in two runs of different rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allocations {
    /// Of its start.
    pub start: Allocated,
    /// The runs.
    pub runs: Vec<AllocatedIn>,
}

/// Allocations in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllocatedIn {
    /// Requests per second.
    pub rate: u32,
    /// Requests.
    pub requests: u64,
    /// Those with a right reply.
    pub correct: u64,
    /// Its allocations.
    pub allocated: Allocated,
}

/// How much was allocated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Allocated {
    /// How many times.
    pub times: u64,
    /// How many bytes in sum.
    pub bytes: u64,
    /// How many times memory was given back.
    pub freed: u64,
}

/// How a script handled the end of its client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// The program that ended, or whose network did.
    pub client: String,
    /// How it ended, in words.
    pub ended: String,
    /// From the signal to its end.
    pub ending: Option<f64>,
    /// What the script wrote to its console because of it.
    pub console: Vec<String>,
    /// From the signal, or from the network's return, to the first right answer to a new client.
    pub new_client: Option<f64>,
    /// From the signal, or from the network's return, to the first right answer through the program, which was started
    /// again at once after a signal.
    pub through_client: Option<f64>,
    /// How long the network was silent.
    pub silence: Option<f64>,
    /// From the beginning of the silence to the first error that a caller was given.
    pub noticed: Option<f64>,
    /// That error in words.
    pub error: Option<String>,
    /// Connections that the script still held after all, the one that is kept idle left out.
    pub connections_left: usize,
}

impl Ending {
    /// The end of `client`, with nothing measured yet.
    pub fn of(client: &str, ended: String) -> Ending {
        Ending {
            client: client.to_owned(),
            ended,
            ending: None,
            console: Vec::new(),
            new_client: None,
            through_client: None,
            silence: None,
            noticed: None,
            error: None,
            connections_left: 0,
        }
    }

    /// Whether the script wrote neither a warning nor an error.
    pub fn quiet(&self) -> bool {
        !self.console.iter().any(|line| line.starts_with("warn") || line.starts_with("error"))
    }
}

/// An idle connection, used again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// Seconds it was kept.
    pub seconds: f64,
    /// The first request on it, before that.
    pub before: f64,
    /// The first request on it after that, if it was answered rightly.
    pub after: Option<f64>,
    /// Why it was not.
    pub error: Option<String>,
    /// The ones after that.
    pub then: Vec<f64>,
}
