//! Clients that disconnect during a request, and clients that only close their sending side.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;
use socket2::SockRef;

use super::intruders::{mcp, mcp_listen};
use super::support::{PATIENCE, Reply, Server, open_streams, wait_for};
use super::until_good::until_good;

/// How a client disconnects.
#[derive(Debug, Clone, Copy)]
enum Leaving {
    /// It closes the connection.
    Close,
    /// It closes only its sending side.
    HalfClose,
    /// It resets the connection.
    Reset,
}

const LEAVING: [Leaving; 3] = [Leaving::Close, Leaving::HalfClose, Leaving::Reset];

/// Sends a request, and returns the connection without reading the reply.
fn send(server: &Server, head: &str, body: &str) -> TcpStream {
    let mut stream = server.connect();
    let length = body.len();
    // In one piece, because one of the servers allows only 400 ms from the first byte of a head to its end.
    let request = format!("{head} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Disconnects. If the connection is half-closed, the result keeps it open.
fn leave(stream: TcpStream, how: Leaving) -> Option<TcpStream> {
    match how {
        Leaving::Close => None,
        Leaving::HalfClose => {
            stream.shutdown(Shutdown::Write).unwrap();
            Some(stream)
        }
        Leaving::Reset => {
            SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
            None
        }
    }
}

#[test]
fn a_wait_whose_client_disconnects_frees_its_slot() {
    let server = Server::with(|app| app.deadline = Duration::from_secs(3));
    for how in LEAVING {
        let measure = || (how, wait_and_leave(&server, how));
        until_good(measure, |(_, (slot, all))| {
            *slot < Duration::from_secs(5) && *all < Duration::from_secs(15)
        });
    }
}

/// Lets 130 clients disconnect during a wait. Returns the time from then until a slot was free, and the time that
/// everything took.
fn wait_and_leave(server: &Server, how: Leaving) -> (Duration, Duration) {
    let forever = json!({"until": "0", "frames": 216_000}).to_string();
    let begun = Instant::now();
    // One address may have 128 streams open, so the waits use all of them.
    let sent: Vec<_> = (0..130).map(|_| send(server, "POST /v1/wait", &forever)).collect();
    // The server must read all requests first, because a reset discards those that it has not read yet.
    wait_for("the waits to use all slots", || open_streams(server, "wait") == 128);
    let left: Vec<_> = sent.into_iter().map(|stream| leave(stream, how)).collect();
    let leaving = Instant::now();
    wait_for("a free slot", || server.request("POST", "/v1/wait", br#"{"until":"1"}"#).status == 200);
    let slot_is_free = leaving.elapsed();
    wait_for("all slots to be free", || open_streams(server, "wait") == 0);
    drop(left);
    (slot_is_free, begun.elapsed())
}

#[test]
fn endless_requests_end_when_their_client_disconnects() {
    let server = Server::with(|app| app.deadline = Duration::from_millis(1500));
    let targets = [
        ("GET /v1/screen?frame=4000000000&timeout=60000", "wait"),
        ("GET /v1/events", "events"),
        ("GET /v1/watch?watch=1", "events"),
        ("GET /v1/video.mjpeg", "mjpeg"),
    ];
    for (head, kind) in targets {
        for how in LEAVING {
            let sent: Vec<_> = (0..4).map(|_| send(&server, head, "")).collect();
            wait_for(&format!("{head} to begin, {how:?}"), || open_streams(&server, kind) == 4);
            let left: Vec<_> = sent.into_iter().map(|stream| leave(stream, how)).collect();
            wait_for(&format!("{head} to end, {how:?}"), || open_streams(&server, kind) == 0);
            drop(left);
        }
    }
}

/// The server has at most 16 such streams. If they did not end, clients that have left could prevent others from
/// listening.
#[test]
fn an_mcp_stream_without_notifications_ends_when_its_client_disconnects() {
    let server = Server::with(|app| {
        app.deadline = Duration::from_millis(500);
        app.front_end = Some(mcp());
    });
    // The picture of a paused game does not change.
    assert_eq!(server.request("POST", "/v1/pause", b"").status, 200);
    let (stream, mut read) = mcp_listen(&server);
    let mut stream = leave(stream, Leaving::HalfClose).unwrap();
    // The MCP library sends a comment on the stream every 15 s, which would restart a longer time-out.
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.read_to_end(&mut read).unwrap();
}

/// For example, `nc -N` closes its sending side at the end of its input.
#[test]
fn a_client_that_closes_only_its_sending_side_still_gets_its_reply() {
    // A half-closed client gets its reply only within the deadline, so the frames of the wait must run within it.
    let server = Server::with(|app| app.deadline = PATIENCE);
    let wait = json!({"until": "0", "frames": 120}).to_string();
    let large = "GET /core/readrange?address=0x02000000&length=262144";
    for (head, body, text) in
        [("POST /v1/wait", wait.as_str(), "\"frames\":120"), ("GET /healthz", "", "ok"), (large, "", "00,")]
    {
        let mut stream = leave(send(&server, head, body), Leaving::HalfClose).unwrap();
        let reply = Reply::read(&mut stream);
        assert!(reply.status == 200 && reply.text().contains(text), "{head}: {}", reply.status);
    }
}

#[test]
fn a_connected_client_can_wait_longer_than_the_deadline() {
    let server = Server::with(|app| app.deadline = Duration::from_millis(1500));
    let reply = server.request("POST", "/v1/wait", br#"{"until":"0","frames":200}"#);
    assert!(reply.text().contains("\"frames\":200"), "{}", reply.text());
}

#[test]
fn the_deadline_begins_when_a_client_closes_its_sending_side() {
    let server = Server::with(|app| {
        app.deadline = Duration::from_secs(4);
        // The shortest time limit determines how often the server checks whether a client has left.
        app.limits.head = Duration::from_millis(400);
    });
    let mut stream = send(&server, "POST /v1/wait", r#"{"until":"0","frames":360}"#);
    wait_for("the wait to begin", || open_streams(&server, "wait") == 1);
    // This takes longer than the deadline. If the deadline had begun with the first request, that request would have
    // ended without its reply by now.
    let between = server.request("POST", "/v1/wait", br#"{"until":"0","frames":300}"#);
    assert!(between.text().contains("\"frames\":300"), "{}", between.text());
    stream.shutdown(Shutdown::Write).unwrap();
    let reply = Reply::read(&mut stream);
    assert!(reply.status == 200 && reply.text().contains("\"frames\":360"), "{}", reply.text());
}
