//! Clients that all connect at once.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::clients::TextClient;
use super::results::Stampede;
use super::steps::Script;
use super::window::millis;

/// How long each client waits, to connect and for the reply.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lets `clients` connect at the same moment and send a request each.
pub fn run(address: SocketAddr, script: Script, clients: usize) -> Stampede {
    let barrier = Barrier::new(clients);
    let outcomes: Vec<Result<Duration, ErrorKind>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    let start = Instant::now();
                    let mut client = TextClient::connect(address, script, PATIENCE)?;
                    client.echo()?;
                    Ok(start.elapsed())
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).map(of_io).collect()
    });
    let mut result =
        Stampede { clients, patience: millis(PATIENCE), answered: Vec::new(), failed: BTreeMap::new() };
    for outcome in outcomes {
        match outcome {
            Ok(time) => result.answered.push(millis(time)),
            Err(kind) => *result.failed.entry(words(kind).to_owned()).or_default() += 1,
        }
    }
    result.answered.sort_by(f64::total_cmp);
    result
}

fn of_io(outcome: std::io::Result<Duration>) -> Result<Duration, ErrorKind> {
    outcome.map_err(|error| error.kind())
}

fn words(kind: ErrorKind) -> &'static str {
    match kind {
        // A blocking socket reports its time-out as either.
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "timed out",
        ErrorKind::ConnectionRefused => "refused",
        ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe => "reset",
        _ => "other",
    }
}
