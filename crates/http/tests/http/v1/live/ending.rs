//! What happens to open streams and waits when the server stops.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{Events, Rpc, wait_for_waiters};
use crate::support::{Reply, Server, wait_for};
use crate::until_good::until_good;
use crate::v1::problems::problem_says;

#[test]
fn open_streams_end_cleanly_and_at_once() {
    until_good(time_of_shutdown, |time| *time < Duration::from_secs(3));
}

/// How long a server with open streams takes to stop.
fn time_of_shutdown() -> Duration {
    let mut server = Server::start();
    let mut events = Events::open(&server, "/v1/events");
    let mut watch = Events::open(&server, "/v1/watch?watch=frame");
    let mut rpc = Rpc::open(&server);
    rpc.result("subscribe", json!({"events": true}));
    wait_for("frames", || watch.next().is_some_and(|event| event.name == "change"));
    let begun = Instant::now();
    server.stop();
    assert_eq!(events.wait_for("end").data["detail"], "the server is stopping");
    assert_eq!(events.next(), None);
    watch.wait_for("end");
    while rpc.receive().is_some() {}
    wait_for("the shutdown", || server.has_stopped());
    begun.elapsed()
}

#[test]
fn a_wait_is_answered_when_the_server_stops() {
    let mut server = Server::start();
    let mut stream = server.connect();
    let body = json!({"until": "false", "frames": 100_000}).to_string();
    write!(
        stream,
        "POST /v1/wait HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    wait_for_waiters(&server, 1);
    server.stop();
    problem_says(&Reply::read(&mut stream), 503, "stopping");
}
