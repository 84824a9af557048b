//! How long a request with many operations takes.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use super::measure_alone;
use crate::support::{Reply, Server};

/// The longest accepted median. The goal is 2 ms for a release build on an idle machine. A test build is slower, and
/// the machine is busy during the tests.
const LONGEST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 400 } else { 10 });

#[test]
fn a_batch_of_many_reads_a_tap_and_a_picture_is_fast() {
    measure_alone(median_of_batches, |median| *median < LONGEST);
}

/// Sends batches of 64 scattered reads, a tap and a picture, on one connection. `FRAMEWIRE_BATCHES` sets the number of
/// batches. Returns the median of their times.
fn median_of_batches() -> Duration {
    let rounds = std::env::var("FRAMEWIRE_BATCHES").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(40);
    let server = Server::start();
    let addresses: Vec<u32> = (0..64).map(|number| 0x0200_0000 + number * 0x0FEC).collect();
    let body = json!({"ops": [
        {"op": "read_many", "addresses": addresses},
        {"op": "tap", "keys": ["L"]},
        {"op": "screenshot"},
    ]})
    .to_string();
    let mut stream = server.connect();
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let length = body.len();
            // The request is written in one piece. TCP would hold a second piece back until the first is acknowledged.
            let request = format!(
                "POST /v1/batch HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            let start = Instant::now();
            stream.write_all(request.as_bytes()).unwrap();
            let reply = Reply::read(&mut stream);
            let time = start.elapsed();
            assert_eq!(reply.status, 200, "{}", reply.text());
            let frame = || server.number("/core/currentFrame");
            // The key can be tapped again only when this tap is over.
            let now = frame();
            crate::support::wait_for("three frames", || frame() > now + 2);
            time
        })
        .collect();
    times.sort();
    let median = times[times.len() / 2];
    eprintln!("64 reads, a tap and a picture: median {median:?} of {rounds}");
    median
}
