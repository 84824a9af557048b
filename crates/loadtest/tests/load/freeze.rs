//! Tests with a server that freezes while requests are due at a constant rate. The tester must also report the latency
//! of the requests that were due during the freeze.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use framewire_loadtest::http::Reuse;
use framewire_loadtest::row::Summary;

use crate::server::{Action, Server};
use crate::until_good::until_good;

const RATE: f64 = 200.0;
const SECONDS: f64 = 5.0;
const FREEZE_AT: Duration = Duration::from_secs(2);
const FREEZE: f64 = 1.0;

/// The milliseconds that `percent` % of the latencies should not exceed. A request that is due during the freeze waits
/// until the freeze ends. All other requests are answered at once.
fn expected(percent: f64) -> f64 {
    let frozen = FREEZE * RATE;
    let above = (1.0 - percent / 100.0) * RATE * SECONDS;
    1000.0 * FREEZE * (1.0 - above / frozen).max(0.0)
}

/// A server that freezes for a second, two seconds after the first request.
fn freezing() -> Server {
    let first = Mutex::new(None::<Instant>);
    Server::start(move |_| {
        let first = *first.lock().unwrap().get_or_insert_with(Instant::now);
        let (start, end) = (first + FREEZE_AT, first + FREEZE_AT + Duration::from_secs_f64(FREEZE));
        let now = Instant::now();
        if (start..end).contains(&now) {
            thread::sleep(end - now);
        }
        Action::Echo
    })
}

#[test]
fn percentiles_are_as_calculated_from_the_freeze() {
    let _alone = crate::alone();
    let mut plan = crate::plan(RATE, Duration::from_secs_f64(SECONDS));
    // With few connections, the tester must still count the requests that are due while all connections wait.
    plan.connections = 4;
    let measure = || {
        let row = crate::run(freezing().port, Reuse::default(), &plan);
        assert_eq!((row.requests, row.correct), (1000, 1000), "{row:?}");
        assert!(
            row.waited >= 180,
            "nearly all of 200 requests waited for one of 4 connections: {}",
            row.waited
        );
        [row.intended, row.sent]
    };
    until_good(measure, is_as_calculated);
}

/// Whether the latencies from the intended send time and from the actual send are as calculated from the freeze.
fn is_as_calculated([intended, sent]: &[Summary; 2]) -> bool {
    let figures = [
        ("p90", intended.p90, expected(90.0)),
        ("p95", intended.p95, expected(95.0)),
        ("p99", intended.p99, expected(99.0)),
        ("p99.9", intended.p999, expected(99.9)),
        ("max", intended.max, expected(100.0)),
    ];
    let off = figures.map(|(name, measured, expected)| {
        let off = measured / expected - 1.0;
        println!("{name}: measured {measured:.1} ms, calculated {expected:.1} ms, {:+.2} %", 100.0 * off);
        off.abs()
    });
    // The waits during the freeze, spread over all requests, give this mean. The latency of the replies adds to it.
    let mean = 1000.0 * FREEZE / 2.0 * FREEZE / SECONDS;
    println!("from the actual send: p90 {:.3}, p99 {:.3}, mean {:.3}", sent.p90, sent.p99, sent.mean);
    off.iter().all(|off| *off < 0.02)
        && (0.98 * mean..1.1 * mean).contains(&intended.mean)
        && intended.p50 < 20.0
        && sent.p99 < intended.p99 / 20.0
        && sent.mean < intended.mean / 10.0
}

#[test]
fn with_enough_connections_both_latencies_show_the_freeze() {
    let _alone = crate::alone();
    let mut plan = crate::plan(RATE, Duration::from_secs_f64(SECONDS));
    plan.connections = 1000;
    let measure = || {
        let row = crate::run(freezing().port, Reuse::default(), &plan);
        assert_eq!(row.waited, 0);
        ([row.intended.p95, row.sent.p95], row.most_in_flight)
    };
    until_good(measure, |(latencies, most_in_flight)| {
        latencies.iter().all(|p95| (p95 / expected(95.0) - 1.0).abs() < 0.02)
            && (195..=240).contains(most_in_flight)
    });
}
