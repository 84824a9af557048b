//! Checks that the tester distinguishes the kinds of failures.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use framewire_loadtest::Retries;
use framewire_loadtest::goal::Goal;
use framewire_loadtest::http::request::{Method, Request};
use framewire_loadtest::http::template::Template;
use framewire_loadtest::http::{HttpOptions, HttpTarget, Reuse};
use framewire_loadtest::row::{Phase, Row};
use framewire_loadtest::{Check, Plan, Stop};

use crate::reserved_port::reserved_port;
use crate::server::{Action, Server};
use crate::until_good::until_good;

const SECOND: Duration = Duration::from_secs(1);

fn failures(row: &Row) -> BTreeMap<&str, u64> {
    row.failures.iter().map(|(kind, count)| (kind.as_str(), *count)).collect()
}

/// Sends 40 requests, each with this time limit. Every fourth fails.
fn every_fourth_within(timeout: Duration, fault: fn() -> Action) -> Row {
    let server = Server::start(move |number| if number % 4 == 3 { fault() } else { Action::Echo });
    let mut plan = crate::plan(40.0, SECOND);
    plan.timeout = timeout;
    crate::run(server.port, Reuse::default(), &plan)
}

/// Sends 40 requests, of which every fourth fails.
fn every_fourth(fault: fn() -> Action) -> Row {
    let row = every_fourth_within(5 * SECOND, fault);
    assert_eq!((row.requests, row.correct, row.success), (40, 30, 75.0), "{row:?}");
    assert_eq!(row.intended.count, 30, "only correct replies have a latency");
    row
}

#[test]
fn a_closed_port_counts_as_refused() {
    let (_bound, address) = reserved_port();
    let row = crate::run(address.port(), Reuse::default(), &crate::plan(40.0, SECOND));
    assert_eq!(failures(&row), BTreeMap::from([("refused", 40)]));
    assert_eq!((row.achieved, row.success, row.intended.count), (0.0, 0.0, 0));
}

#[test]
fn a_close_counts_as_a_reset_before_and_within_a_reply() {
    assert_eq!(failures(&every_fourth(|| Action::Close)), BTreeMap::from([("reset", 10)]));
    assert_eq!(failures(&every_fourth(|| Action::Partial)), BTreeMap::from([("reset", 10)]));
}

#[test]
fn a_connection_with_bytes_after_a_reply_is_not_used_again() {
    let server = Server::start(|_| Action::Surplus);
    let row = crate::run(server.port, Reuse::default(), &crate::plan(40.0, SECOND));
    assert_eq!((row.correct, server.connections()), (40, 40), "{row:?}");
}

#[test]
fn a_reply_before_the_end_of_a_long_request_is_read() {
    // More than the buffers of both sockets hold.
    const SIZE: usize = 16 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {SIZE}\r\n\r\n");
            let reply = head + &"x".repeat(SIZE);
            // Both fail if the tester gives up.
            let _ = stream.write_all(reply.as_bytes());
            let _ = io::copy(&mut stream, &mut io::sink());
        }
    });
    let body = Some(Template::new(&vec![b'x'; SIZE]));
    let request = Request { method: Method::POST, body, ..Request::get("/") };
    let target = HttpTarget::new(&url, &[request], &HttpOptions::default()).unwrap();
    let plan = Plan { timeout: 20 * SECOND, ..crate::plan(2.0, SECOND) };
    let outcome =
        framewire_loadtest::run(&Arc::new(target), &plan, &mut None, &Stop::default(), &mut |_| {}).unwrap();
    let row = Row::new(&plan, &outcome, Phase::Measure);
    assert_eq!((row.requests, row.correct), (2, 2), "{:?}", row.failures);
}

#[test]
fn a_reply_after_the_timeout_counts_as_timed_out() {
    let measure = || {
        let row = every_fourth_within(Duration::from_millis(300), || Action::Silence(SECOND));
        assert_eq!((row.requests, row.intended.count), (40, row.correct), "{row:?}");
        assert!(row.correct <= 30, "{row:?}");
        assert_eq!(failures(&row), BTreeMap::from([("timed out", 40 - row.correct)]));
        row
    };
    let missed = |row: &Row, goal: &str| goal.parse::<Goal>().unwrap().missed(row).len();
    // On a busy machine, other replies can be late, too.
    until_good(measure, |row| {
        (row.requests, row.correct, row.success, row.intended.count) == (40, 30, 75.0, 30)
            // A quarter is slower than any limit.
            && (missed(row, "p50<300ms"), missed(row, "p90<300ms")) == (0, 1)
            && failures(row) == BTreeMap::from([("timed out", 10)])
            // A late reply is not taken for the reply to another request.
            && row.intended.max < 300.0
    });
}

#[test]
fn an_error_status_counts_as_status() {
    let row = every_fourth(|| Action::Status(503));
    assert_eq!(failures(&row), BTreeMap::from([("status", 10)]));
    assert_eq!(row.failure_texts.get("status 503"), Some(&10));
}

#[test]
fn another_text_counts_as_a_wrong_reply() {
    let row = every_fourth(|| Action::Reply("somebody else's"));
    assert_eq!(failures(&row), BTreeMap::from([("wrong reply", 10)]));
}

#[test]
fn without_the_check_any_reply_is_correct() {
    let server = Server::start(|_| Action::Reply("static"));
    let run = |check| {
        let plan = crate::plan(40.0, SECOND);
        crate::run_checked(server.port, Reuse::default(), &plan, &Stop::default(), check).success
    };
    assert_eq!((run(Check::Echo), run(Check::Success)), (0.0, 100.0));
}

#[test]
fn requests_are_not_sent_when_no_connection_became_free() {
    let server = Server::start(|_| Action::Silence(Duration::from_secs(20)));
    let mut plan = crate::plan(40.0, SECOND);
    plan.connections = 2;
    plan.timeout = Duration::from_millis(400);
    let measure = || {
        let row = crate::run(server.port, Reuse::default(), &plan);
        assert_eq!(row.requests, 40, "all requests are counted: {row:?}");
        assert_eq!(row.correct, 0);
        assert!(
            row.warnings.iter().any(|warning| warning.contains("had to wait for one of the 2 connections"))
        );
        row
    };
    // On a busy machine, both connections can become free before the next requests are due.
    until_good(measure, |row| {
        let count = |kind: &str| row.failures.get(kind).copied().unwrap_or_default();
        // Requests that were never sent have waited, too.
        count("not sent") >= 30 && count("timed out") >= 4 && row.waited == 38
    });
}

#[test]
fn the_warning_about_waiting_for_the_only_connection_names_the_strategy() {
    let server = Server::start(|_| Action::Silence(Duration::from_secs(20)));
    let mut plan = crate::plan(40.0, SECOND);
    plan.connections = 1;
    plan.timeout = Duration::from_millis(400);
    let row = crate::run(server.port, Reuse::default(), &plan);
    let warning = row.warnings.iter().find(|warning| warning.contains("had to wait for the only connection"));
    let warning = warning.expect("most requests have waited");
    // If this machine is busy, the warning is about the tester instead.
    assert!(row.tester_limited() || warning.contains("a --strategy other than single"), "{warning}");
}

#[test]
fn each_connection_of_a_retried_request_has_a_time() {
    let server = Server::start(|number| if number % 2 == 0 { Action::Close } else { Action::Echo });
    let retries = Retries::new([Duration::from_millis(1)]);
    let reuse = Reuse { keep_alive: false, retries, ..Reuse::default() };
    let row = crate::run(server.port, reuse, &crate::plan(20.0, SECOND));
    assert_eq!((row.requests, row.connections), (20, row.connect.count), "{row:?}");
    assert!(row.retries > 0);
}

#[test]
fn three_tries_hide_two_failures() {
    let server = Server::start(|number| if number % 3 < 2 { Action::Close } else { Action::Echo });
    let retries = Retries::new([Duration::from_millis(1); 2]);
    let reuse = Reuse { retries, ..Reuse::default() };
    let mut plan = crate::plan(20.0, SECOND);
    // The requests are sent one after the other, so that two failures and a success always belong to one request.
    plan.connections = 1;
    let row = crate::run(server.port, reuse, &plan);
    assert_eq!((row.correct, row.connections), (20, 41), "{row:?}");
    assert_eq!(server.requests(), 60);
    assert_eq!((row.requests, row.retries), (20, 40), "the server got the sum of both");
}

#[test]
fn a_try_without_a_reply_is_followed_by_another() {
    let retries = Retries::new([Duration::from_millis(1); 2]);
    let limit = SECOND / 2;
    let mut plan = crate::plan(10.0, SECOND);
    plan.timeout = retries.longest(limit);
    let measure = || {
        let server = Server::start(|number| match number {
            0 => Action::Silence(30 * SECOND),
            _ => Action::Echo,
        });
        let reuse = Reuse { retries: retries.clone(), attempt_timeout: Some(limit), ..Reuse::default() };
        let row = crate::run(server.port, reuse, &plan);
        (row.correct, row.retries)
    };
    // On a busy machine, other replies can be late, too.
    until_good(measure, |counts| *counts == (10, 1));
}
