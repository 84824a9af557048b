//! Compares the tester's figures with those of a server that records its own times. Tests without the lock `alone` run
//! at the same time and delay some requests, so only the medians have an upper limit here. `benches/testers.py`
//! compares the high percentiles, on an idle machine.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use framewire_loadtest::http::Reuse;
use framewire_loadtest::row::Row;

use crate::server::{Action, Server};
use crate::until_good::until_good;

/// How much the tester's median may be above the server's.
const ABOVE: f64 = 0.02;
/// How much a percentile of the tester may be below the server's: the precision of the histograms.
const BELOW: f64 = 0.001;

/// A server that answers after `time` and records how long that took, in milliseconds. If `fault` returns an action
/// for a request, the server performs that action instead.
fn recording(time: Duration, fault: fn(usize) -> Option<Action>) -> (Server, Arc<Mutex<Vec<f64>>>) {
    let times = Arc::<Mutex<Vec<f64>>>::default();
    let recorded = Arc::clone(&times);
    let server = Server::start(move |number| {
        if let Some(fault) = fault(number) {
            return fault;
        }
        let start = Instant::now();
        thread::sleep(time);
        recorded.lock().unwrap().push(1000.0 * start.elapsed().as_secs_f64());
        Action::Echo
    });
    (server, times)
}

fn percentile(times: &mut [f64], percent: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    let place = (percent / 100.0 * times.len() as f64).ceil() as usize;
    times[place.clamp(1, times.len()) - 1]
}

/// Measures until the medians agree. `counts` checks the counts of requests in each row.
fn agree(time: Duration, fault: fn(usize) -> Option<Action>, counts: fn(&Row) -> bool) {
    let _alone = crate::alone();
    let measure = || {
        let (server, times) = recording(time, fault);
        let plan = crate::plan(100.0, Duration::from_secs(3));
        let row = crate::run(server.port, Reuse::default(), &plan);
        let mut times = times.lock().unwrap();
        assert!(counts(&row) && row.correct as usize == times.len(), "{row:?}");
        let figures = [(50.0, row.sent.p50), (90.0, row.sent.p90), (99.0, row.sent.p99)];
        let off = figures.map(|(percent, measured)| measured / percentile(&mut times, percent) - 1.0);
        println!("{:?} off the server's own times", off.map(|off| format!("{:+.2} %", 100.0 * off)));
        // A request cannot be faster for the tester than for the server.
        assert!(off.iter().all(|off| *off > -BELOW), "{off:?}");
        off
    };
    until_good(measure, |off| off[0] < ABOVE);
}

#[test]
fn a_delay_of_twenty_milliseconds_is_measured_correctly() {
    agree(Duration::from_millis(20), |_| None, |row| row.correct == 300);
}

#[test]
fn one_percent_of_faults_is_counted_exactly_and_leaves_the_others_alone() {
    let fault = |number: usize| match number % 300 {
        50 => Some(Action::Status(500)),
        150 => Some(Action::Close),
        250 => Some(Action::Reply("another's")),
        _ => None,
    };
    agree(Duration::from_millis(20), fault, |row| {
        let kinds = ["status", "reset", "wrong reply"].map(|kind| row.failures.get(kind).copied());
        row.correct == 297 && kinds == [Some(1); 3]
    });
}
