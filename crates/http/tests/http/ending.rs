//! How the server stops.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::failures::{attached, silent_port};
use super::intruders::{MCP_INITIALIZE, mcp, mcp_listen};
use super::support::{Closing, Reply, Server, closing, is_closed, open_streams, sample, wait_for};
use super::until_good::until_good;

/// A shutdown that nothing delays takes less time than this.
const PROMPT: Duration = Duration::from_secs(2);

/// Waits until the server has begun to answer this many requests.
fn wait_for_requests(server: &Server, count: usize) {
    // The request for the metrics is one more.
    let wanted = Some((count + 1) as f64);
    let in_flight = || sample(&server.text("/metrics"), "framewire_http_requests_in_flight");
    wait_for("the requests to begin", || in_flight() == wanted);
}

#[test]
fn a_stopping_server_answers_open_requests() {
    // The emulator does not answer, so each request is open until its deadline.
    let (_listener, address) = silent_port();
    let mut server = attached(address, |app| app.deadline = Duration::from_secs(3));
    let mut streams: Vec<TcpStream> = (0..20).map(|_| server.connect()).collect();
    for stream in &mut streams {
        stream.write_all(b"GET /core/getgametitle HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    }
    wait_for_requests(&server, 20);
    server.stop();
    for stream in &mut streams {
        assert_eq!(Reply::read(stream).status, 504);
        assert!(is_closed(stream));
    }
    wait_for("the shutdown", || server.has_stopped());
    assert!(TcpStream::connect(server.address).is_err());
}

#[test]
fn idle_connections_do_not_delay_the_shutdown() {
    until_good(stop_with_idle_connections, |time| *time < PROMPT);
}

/// How long the shutdown takes while ten connections are idle.
fn stop_with_idle_connections() -> Duration {
    let mut server = Server::start();
    let mut idle: Vec<TcpStream> = (0..10).map(|_| server.connect()).collect();
    for stream in idle.iter_mut().take(5) {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        assert_eq!(Reply::read(stream).status, 200);
    }
    let start = Instant::now();
    server.stop();
    for stream in &mut idle {
        assert!(is_closed(stream));
    }
    wait_for("the shutdown", || server.has_stopped());
    start.elapsed()
}

/// When the server stops, a stream of MCP subscriptions ends as the protocol requires: its last message is the result
/// of the request that opened it.
#[test]
fn mcp_subscriptions_do_not_delay_the_shutdown() {
    until_good(stop_with_mcp_subscriptions, |time| *time < PROMPT);
}

/// How long the shutdown takes while a stream of MCP subscriptions is open.
fn stop_with_mcp_subscriptions() -> Duration {
    let mut server = Server::with(|app| app.front_end = Some(mcp()));
    let (mut stream, mut read) = mcp_listen(&server);
    let start = Instant::now();
    server.stop();
    stream.read_to_end(&mut read).unwrap();
    let text = String::from_utf8_lossy(&read);
    assert!(text.contains(r#""id":1,"result""#), "{text}");
    wait_for("the shutdown", || server.has_stopped());
    start.elapsed()
}

/// The event stream of an MCP session never ends by itself, so the server has to end it.
#[test]
fn mcp_sessions_do_not_delay_the_shutdown() {
    until_good(stop_with_an_mcp_session, |time| *time < PROMPT);
}

/// How long the shutdown takes while the event stream of an MCP session is open.
fn stop_with_an_mcp_session() -> Duration {
    let mut server = Server::with(|app| app.front_end = Some(mcp()));
    let usual = "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";
    let opened = server.request_with("POST", "/mcp", usual, MCP_INITIALIZE.as_bytes());
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    let mut stream = server.connect();
    let head = format!("GET /mcp HTTP/1.1\r\nhost: localhost\r\n{usual}mcp-session-id: {id}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains("\r\n\r\n") {
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "{text}");
        text += &String::from_utf8_lossy(&buffer[..count]);
    }
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("text/event-stream"), "{text}");
    let start = Instant::now();
    server.stop();
    stream.read_to_end(&mut Vec::new()).unwrap();
    wait_for("the shutdown", || server.has_stopped());
    start.elapsed()
}

/// A stopping server does not wait for the rest of a request, but answers 408. Requests that wait for a condition get a
/// 503.
#[test]
fn requests_that_are_still_arriving_do_not_delay_the_shutdown() {
    until_good(stop_with_arriving_requests, |time| *time < PROMPT);
}

/// How long the shutdown takes while three requests arrive and one waits for a condition.
fn stop_with_arriving_requests() -> Duration {
    // The server must read the first bytes of the head within twice `last_call`. Otherwise, it treats the connection as
    // idle and closes it without a reply.
    let mut server = Server::with(|app| app.limits.last_call = Duration::from_millis(400));
    let (mut body, mut head, mut message) = (server.connect(), server.connect(), server.connect());
    body.write_all(b"POST /v1/batch HTTP/1.1\r\nhost: localhost\r\ncontent-length: 30\r\n\r\n{\"un").unwrap();
    head.write_all(b"GET /core/getgametitle HTTP/1.1\r\nho").unwrap();
    message
        .write_all(b"POST /mgbaendpoint HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n")
        .unwrap();
    let mut wait = server.connect();
    let condition = br#"{"until": "frame < 0", "frames": 216000}"#;
    let line =
        format!("POST /v1/wait HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", condition.len());
    wait.write_all(line.as_bytes()).unwrap();
    wait.write_all(condition).unwrap();
    wait_for("the wait to begin", || open_streams(&server, "wait") == 1);
    // The request whose head is not complete is not counted.
    wait_for_requests(&server, 3);
    let start = Instant::now();
    server.stop();
    for stream in [&mut body, &mut head, &mut message] {
        let reply = Reply::read(stream);
        assert_eq!((reply.status, reply.header("connection")), (408, Some("close")), "{}", reply.text());
        assert!(reply.text().contains("the server is stopping"), "{}", reply.text());
    }
    assert_eq!(Reply::read(&mut wait).status, 503);
    wait_for("the shutdown", || server.has_stopped());
    start.elapsed()
}

/// A client that continues to send requests gets a reply to each, until a reply has `connection: close`. Then the
/// server closes the connection without a reset.
#[test]
fn a_busy_client_loses_no_request() {
    let mut server = Server::with(|app| app.limits.last_call = Duration::from_secs(1));
    let mut stream = server.connect();
    let answered = Arc::new(AtomicU32::new(0));
    let counter = answered.clone();
    let client = std::thread::spawn(move || {
        loop {
            stream.write_all(b"GET /core/currentFrame HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            let reply = Reply::read(&mut stream);
            assert_eq!(reply.status, 200);
            counter.fetch_add(1, Relaxed);
            if reply.header("connection") == Some("close") {
                let last_reply = Instant::now();
                assert_eq!(closing(&mut stream), Some(Closing::Closed));
                return last_reply;
            }
        }
    });
    wait_for("some replies", || answered.load(Relaxed) > 20);
    let stop = Instant::now();
    server.stop();
    let last_reply = client.join().unwrap();
    assert!(last_reply > stop, "no request was answered after the server began to stop");
    wait_for("the shutdown", || server.has_stopped());
}

#[test]
fn a_stopping_server_answers_pipelined_requests() {
    let mut server = Server::with(|app| app.limits.last_call = Duration::from_secs(1));
    let mut stream = server.connect();
    stream.write_all(&b"GET /core/currentFrame HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100)).unwrap();
    server.stop();
    for _ in 0..100 {
        assert_eq!(Reply::read(&mut stream).status, 200);
    }
    assert!(is_closed(&mut stream));
}

#[test]
fn the_shutdown_does_not_wait_forever() {
    until_good(stop_during_a_long_request, |time| *time < Duration::from_secs(3));
}

/// How long the shutdown takes during a request that would take a minute.
fn stop_during_a_long_request() -> Duration {
    let (_listener, address) = silent_port();
    let mut server = attached(address, |app| {
        app.deadline = Duration::from_secs(60);
        app.limits.grace = Duration::from_millis(300);
    });
    let mut stream = server.connect();
    stream.write_all(b"GET /core/getgametitle HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    wait_for_requests(&server, 1);
    let start = Instant::now();
    server.stop();
    wait_for("the shutdown", || server.has_stopped());
    let time = start.elapsed();
    assert!(time >= Duration::from_millis(300), "{time:?}");
    assert!(is_closed(&mut stream));
    time
}
