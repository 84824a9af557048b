//! Measures text messages that are sent on a raw socket, one after the other.

use std::time::{Duration, Instant};

use framewire_loadtest::record::Latencies;
use framewire_loadtest::row::Summary;

use super::sample::{Latency, Sample};
use crate::frames::FrameMeter;
use crate::setup::Setup;

/// The longest wait for a reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends messages for `length`, each after the reply to the previous one.
///
/// # Errors
/// If a message gets no correct reply.
pub fn run(setup: &Setup, length: Duration) -> anyhow::Result<Sample> {
    let prefix = setup.script().echo_prefix();
    let mut client = setup.client(PATIENCE)?;
    let mut latencies = Latencies::default();
    let meter = FrameMeter::start(setup.frames());
    let start = Instant::now();
    while start.elapsed() < length {
        latencies.record(client.echo(prefix)?);
    }
    let seconds = start.elapsed().as_secs_f64();
    let answered = latencies.count();
    Ok(Sample {
        seconds,
        requests: answered,
        correct: answered,
        rate: Some(answered as f64 / seconds),
        latency: Latency::of(&Summary::of(&latencies, 0)),
        frames: meter.stop(),
        ..Sample::of(
            "a blocking TCP client; each message is a new UUID, sent after the reply to the previous one",
        )
    })
}
