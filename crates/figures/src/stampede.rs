//! Clients that all connect at once.

use std::io::ErrorKind;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::sample::{Latencies, Sample};
use crate::stand::Stand;
use crate::text::Client;

/// How long each client waits, to connect and for its reply.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lets so many clients connect at the same moment and send a request each.
pub fn stampede(stand: &Stand, clients: usize) -> Sample {
    let barrier = Barrier::new(clients);
    let start = Instant::now();
    let outcomes: Vec<Result<Duration, ErrorKind>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    let start = Instant::now();
                    let answer = Client::connect(stand.address(), stand.script(), PATIENCE)
                        .and_then(|mut client| client.echo());
                    answer.map(|_| start.elapsed()).map_err(|error| error.kind())
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let mut sample = Sample {
        seconds: start.elapsed().as_secs_f64(),
        requests: clients as u64,
        ..Sample::of("blocking TCP clients, a thread each, released together; timed from there to the reply")
    };
    let mut latencies = Latencies::new();
    for outcome in outcomes {
        match outcome {
            Ok(time) => latencies.note(time),
            // A blocking socket reports its time-out as either.
            Err(ErrorKind::WouldBlock | ErrorKind::TimedOut) => fail(&mut sample, "timed out"),
            Err(kind) => fail(&mut sample, &kind.to_string()),
        }
    }
    sample.correct = latencies.count();
    sample.latency = latencies.summary();
    sample
}

fn fail(sample: &mut Sample, why: &str) {
    *sample.failures.entry(why.to_owned()).or_default() += 1;
}
