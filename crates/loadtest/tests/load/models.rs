//! Tests of load models, warm-up, connections, and stopping.

use std::thread;
use std::time::{Duration, Instant};

use framewire_loadtest::http::Reuse;
use framewire_loadtest::payload::Payload;
use framewire_loadtest::row::Row;
use framewire_loadtest::stages::Stages;
use framewire_loadtest::{Arrivals, Load, Plan};

use crate::server::{Action, Server};
use crate::until_good::until_good;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_constant_rate_is_held_and_every_reply_is_checked() {
    let achieved = || {
        let server = Server::start(|_| Action::Echo);
        let row = crate::run(server.port, Reuse::default(), &crate::plan(500.0, 2 * SECOND));
        assert_eq!((row.requests, row.correct, server.requests()), (1000, 1000, 1000));
        row.achieved
    };
    until_good(achieved, |rate| (rate / 500.0 - 1.0).abs() < 0.01);
}

#[test]
fn chunked_replies_of_five_thousand_bytes_are_correct() {
    let server = Server::start(|_| Action::Chunked);
    let mut plan = crate::plan(50.0, SECOND);
    plan.payload = Payload::Bytes(5000);
    assert_eq!(crate::run(server.port, Reuse::default(), &plan).correct, 50);
}

#[test]
fn workers_share_the_rate() {
    let server = Server::start(|_| Action::Echo);
    let mut plan = crate::plan(301.0, SECOND);
    plan.workers = 2;
    assert_eq!(crate::run(server.port, Reuse::default(), &plan).correct, 301);
}

#[test]
fn poisson_arrivals_have_the_rate_and_come_in_bursts() {
    let server = Server::start(|_| Action::Silence(Duration::from_millis(2)));
    let mut plan = crate::plan(400.0, 2 * SECOND);
    plan.load = Load::Open { rate: 400.0, arrivals: Arrivals::Poisson };
    let row = crate::run(server.port, Reuse::default(), &plan);
    // The range is five standard deviations to either side.
    assert!((659..=941).contains(&row.requests), "{}", row.requests);
    assert_eq!(row.correct, row.requests);
    assert!(row.most_in_flight >= 3, "{}", row.most_in_flight);
}

#[test]
fn stages_change_the_rate_during_a_run() {
    let _alone = crate::alone();
    let errors = || {
        let server = Server::start(|_| Action::Echo);
        let stages: Stages = "1s@50,2s@50..250,1s@400".parse().unwrap();
        let mut plan = crate::plan(1.0, stages.length());
        plan.load = Load::Stages { stages, arrivals: Arrivals::Constant };
        plan.warmup = SECOND / 2;
        let row = crate::run(server.port, Reuse::default(), &plan);
        assert_eq!((row.requests, row.correct, server.requests()), (750, 750, 775), "{row:?}");
        assert_eq!((row.load().as_str(), row.asked), ("1s@50,2s@50..250,1s@400", None));
        let between = |from: f64, to: f64| {
            row.series.iter().filter(move |point| point.at > from && point.at <= to + 1e-9)
        };
        let mean = |from, to| {
            between(from, to).map(|point| point.rate).sum::<f64>() / between(from, to).count() as f64
        };
        assert!(
            between(1.0, 3.0).all(|point| point.asked.is_some_and(|asked| (50.0..=250.0).contains(&asked)))
        );
        let seconds = [(0.0, 1.0, 50.0), (1.0, 2.0, 100.0), (2.0, 3.0, 200.0), (3.0, 4.0, 400.0)];
        seconds.map(|(from, to, asked)| mean(from, to) / asked - 1.0)
    };
    // On a busy machine, some replies are counted in the next second.
    until_good(errors, |errors| errors.iter().all(|error| error.abs() < 0.15));
}

#[test]
fn a_closed_load_keeps_its_clients_busy() {
    let server = Server::start(|_| Action::Silence(Duration::from_millis(20)));
    let mut plan = crate::plan(1.0, SECOND);
    plan.load = Load::Closed { concurrency: 8 };
    let correct = || {
        let row = crate::run(server.port, Reuse::default(), &plan);
        assert_eq!((row.connections, row.most_in_flight, row.success), (8, 8, 100.0), "{row:?}");
        row.correct
    };
    until_good(correct, |correct| (300..=400).contains(correct));
}

#[test]
fn cold_by_default_and_warm_when_asked() {
    let server = Server::start(|_| Action::Echo);
    let mut plan = crate::plan(50.0, SECOND);
    assert!(crate::run(server.port, Reuse::default(), &plan).connections >= 1);
    let before = server.requests();
    plan.warmup = SECOND / 2;
    let row = crate::run(server.port, Reuse::default(), &plan);
    assert_eq!((row.requests, server.requests() - before), (50, 75), "25 warm-up requests are not counted");
}

#[test]
fn a_connection_is_kept_or_each_request_has_its_own() {
    let server = Server::start(|_| Action::Echo);
    let mut plan = crate::plan(50.0, SECOND);
    plan.connections = 1;
    assert_eq!(crate::run(server.port, Reuse::default(), &plan).connections, 1);
    assert_eq!(server.connections(), 1);
    let reuse = Reuse { keep_alive: false, ..Reuse::default() };
    let row = crate::run(server.port, reuse, &plan);
    assert_eq!((row.correct, row.connections), (50, 50));
    assert_eq!(server.connections(), 51);
}

/// Runs this plan against this server, and stops the run after a second.
fn stopped(server: &Server, plan: &Plan) -> Row {
    crate::run_until(server.port, Reuse::default(), plan, &crate::stop_soon())
}

#[test]
fn a_run_that_is_stopped_reports_what_it_measured() {
    let server = Server::start(|_| Action::Echo);
    let measure = || {
        let start = Instant::now();
        let row = stopped(&server, &crate::plan(100.0, 60 * SECOND));
        let elapsed = start.elapsed();
        assert!(row.cut_short && row.warnings.iter().any(|warning| warning.starts_with("cut short")));
        (row, elapsed)
    };
    // On a busy machine, the stop comes late.
    until_good(measure, |(row, elapsed)| {
        *elapsed < 3 * SECOND
            && (80..=120).contains(&row.correct)
            && (row.seconds - 1.0).abs() < 0.3
            && (row.achieved - 100.0).abs() < 5.0
    });
}

#[test]
fn requests_that_a_stop_cut_off_are_not_time_outs() {
    // Neither a reply nor a time-out comes before the stop, however late that is.
    let server = Server::start(|_| Action::Silence(30 * SECOND));
    let mut plan = crate::plan(50.0, 60 * SECOND);
    plan.timeout = 60 * SECOND;
    let measure = || {
        let row = stopped(&server, &plan);
        assert_eq!((row.requests, row.failures.len()), (0, 0), "{row:?}");
        assert!(row.warnings[0].contains("still open are not counted"), "{:?}", row.warnings);
        row.cut_off
    };
    // On a busy machine, the stop comes late.
    until_good(measure, |cut_off| (30..=60).contains(cut_off));
}

#[test]
fn a_stop_ends_the_wait_for_the_last_replies() {
    // The window ends before the stop. Without the stop, the wait would end with the replies.
    let server = Server::start(|_| Action::Silence(30 * SECOND));
    let mut plan = crate::plan(50.0, SECOND / 2);
    plan.timeout = 60 * SECOND;
    let measure = || {
        let row = stopped(&server, &plan);
        assert_eq!((row.cut_short, row.requests, row.failures.len()), (true, 0, 0), "{row:?}");
        (row.seconds, row.cut_off)
    };
    // On a busy machine, the window ends late.
    until_good(measure, |measured| *measured == (0.5, 25));
}

#[test]
fn the_last_piece_of_a_series_ends_with_the_window() {
    let stages: Stages = "1s50ms@200".parse().unwrap();
    let mut plan = crate::plan(1.0, stages.length());
    plan.load = Load::Stages { stages, arrivals: Arrivals::Constant };
    let measure = || {
        let server = Server::start(|_| Action::Echo);
        let row = crate::run(server.port, Reuse::default(), &plan);
        row.series.into_iter().find(|point| (point.at - 1.05).abs() < 1e-9)
    };
    // On a busy machine, some replies are counted in another piece.
    until_good(measure, |last| {
        last.is_some_and(|last| (150.0..=250.0).contains(&last.rate) && last.asked == Some(200.0))
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_tester_that_shares_its_core_says_that_it_was_the_limit() {
    let _alone = crate::alone();
    use std::sync::Arc;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let server = Server::start(|_| Action::Echo);
    let allowed = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|processor| allowed.is_set(*processor)).unwrap());
    // Threads that this thread starts from now on, such as the tester's, inherit this affinity. The server's threads
    // do not, because they were started before.
    sched_setaffinity(None, &one).unwrap();
    // The other thread ends when this test drops its reference, even if the test panics.
    let running = Arc::new(());
    let other = {
        let running = Arc::clone(&running);
        thread::spawn(move || while Arc::strong_count(&running) > 1 {})
    };
    let run = |rate| crate::run(server.port, Reuse::default(), &crate::plan(rate, SECOND / 2));
    let starved = || {
        let row = run(100_000.0);
        let blames_target = row.warnings.iter().any(|text| text.contains("the target was too slow"));
        let busy = row.tester_busy.unwrap();
        assert!(busy <= 0.9 || (row.tester_limited() && !blames_target), "{busy}: {:?}", row.warnings);
        busy
    };
    until_good(starved, |busy| *busy > 0.9);
    until_good(|| run(20.0).tester_busy.unwrap(), |busy| *busy < 0.5);
    drop(running);
    other.join().unwrap();
}
