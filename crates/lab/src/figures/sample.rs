//! The result of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use framewire_loadtest::record::Latencies;
use framewire_loadtest::row::{Row, Summary};
use serde::{Deserialize, Serialize};

use crate::bench::Bench;
use crate::frames::Frames;

/// One run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The client that sent the requests, as text. Without requests, the program that ran the frames.
    pub client: String,
    /// The length of the run.
    pub seconds: f64,
    /// The requested rate, in requests per second; `None` if the load had no fixed rate.
    pub asked: Option<f64>,
    /// How many requests the load had.
    pub requests: u64,
    /// How many requests got a correct reply.
    pub correct: u64,
    /// How many requests got no correct reply, by the kind of failure.
    pub failures: BTreeMap<String, u64>,
    /// Correct replies per second. Without requests, frames per second. `None` for a stampede, in which many clients
    /// connect at once.
    pub rate: Option<f64>,
    /// The latencies of correct replies. If the client is wrk, they include those of other replies. At a fixed rate,
    /// latencies are measured from the intended send time.
    pub latency: Option<Latency>,
    /// The frame rate during the run.
    pub frames: Option<Frames>,
}

/// Latencies in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest latency.
    pub max: f64,
}

impl Sample {
    /// A sample without measurements.
    pub fn of(client: &str) -> Sample {
        Sample { client: client.to_owned(), ..Sample::default() }
    }

    /// The sample of a stampede that took `length`. In a stampede, many clients connect at once.
    pub fn of_stampede(outcomes: &[Result<Duration, &'static str>], length: Duration) -> Sample {
        let mut sample = Sample {
            seconds: length.as_secs_f64(),
            requests: outcomes.len() as u64,
            ..Sample::of(
                "blocking TCP clients, a thread each, released together; timed from their release to the reply",
            )
        };
        let mut latencies = Latencies::default();
        for outcome in outcomes {
            match outcome {
                Ok(time) => latencies.record(*time),
                Err(problem) => *sample.failures.entry((*problem).to_owned()).or_default() += 1,
            }
        }
        sample.correct = latencies.count();
        sample.latency = Latency::of(&Summary::of(&latencies, 0));
        sample
    }

    /// The sample of a row of `framewire bench`.
    pub fn of_row(row: &Row, bench: &Bench) -> Sample {
        let command = bench.command().into_iter().map(|word| without_port(&word)).collect::<Vec<_>>();
        Sample {
            seconds: row.seconds,
            asked: row.asked,
            requests: row.requests,
            correct: row.correct,
            failures: row.failures.clone(),
            rate: Some(row.achieved),
            latency: Latency::of(&row.intended),
            ..Sample::of(&format!("framewire {}", command.join(" ")))
        }
    }
}

impl Latency {
    /// The statistics of latencies, if there are any.
    pub fn of(summary: &Summary) -> Option<Latency> {
        let Summary { count, mean, p50, p99, max, .. } = *summary;
        (count > 0).then_some(Latency { mean, p50, p99, max })
    }
}

/// Replaces the port in a URL with `PORT`, because each run has a different free port. Other words are unchanged.
fn without_port(word: &str) -> String {
    if !word.contains("://") {
        return word.to_owned();
    }
    let (front, rest) = word.rsplit_once(':').unwrap_or((word, ""));
    format!("{front}:PORT{}", rest.trim_start_matches(|character: char| character.is_ascii_digit()))
}
