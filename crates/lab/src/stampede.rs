//! Clients that all connect at once.

use std::io::ErrorKind;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use framewire_lab::Error;

use crate::setup::Setup;

/// How long each client waits for its connection, and then for its reply.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Makes this many clients connect at the same moment and send a request each. Returns for each client the time from
/// that moment to its reply, or the kind of its failure.
pub fn run(setup: &Setup, clients: usize) -> Vec<Result<Duration, &'static str>> {
    let barrier = Barrier::new(clients);
    let ask = || {
        barrier.wait();
        let start = Instant::now();
        let answer = setup.client(PATIENCE).and_then(|mut client| client.echo(setup.script.echo_prefix()));
        answer.map(|_| start.elapsed()).map_err(|error| failure_kind(&error))
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

fn failure_kind(error: &Error) -> &'static str {
    let Error::Io { source, .. } = error else { return "other" };
    match source.kind() {
        // A blocking socket reports a time-out as one of these two.
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "timed out",
        ErrorKind::ConnectionRefused => "refused",
        ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe => "reset",
        _ => "other",
    }
}
