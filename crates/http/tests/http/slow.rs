//! Clients that are slow or idle, and too many clients.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use socket2::SockRef;
use tungstenite::Message;
use tungstenite::client::{IntoClientRequest, client_with_config};
use tungstenite::protocol::WebSocketConfig;

use super::intruders::mcp;
use super::support::{PATIENCE, Reply, Server, is_closed, wait_for};
use super::until_good::until_good;

#[test]
fn a_head_that_does_not_arrive_is_408() {
    until_good(time_of_a_slow_head, |time| *time < Duration::from_secs(2));
}

/// How long it takes until a client that sends single bytes of a head gets a 408.
fn time_of_a_slow_head() -> Duration {
    let server = Server::with(|app| app.limits.head = Duration::from_millis(200));
    let mut stream = server.connect();
    let start = Instant::now();
    // Single bytes do not extend the time limit.
    let mut trickle = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        for byte in b"GET /core/getgametitle HTTP/1.1\r\nhost: localhost\r\n" {
            if trickle.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let reply = Reply::read(&mut stream);
    assert_eq!(reply.status, 408);
    let time = start.elapsed();
    assert!(time >= Duration::from_millis(200), "{time:?}");
    assert!(is_closed(&mut stream));
    drop(stream);
    writer.join().unwrap();
    time
}

#[test]
fn a_head_that_begins_together_with_an_earlier_request_and_does_not_arrive_is_408() {
    let server = Server::with(|app| app.limits.head = Duration::from_millis(200));
    let mut stream = server.connect();
    let request = b"GET /core/getgametitle HTTP/1.1\r\nhost: localhost\r\n\r\n";
    // Empty lines are not the beginning of a head.
    stream.write_all(&[&request[..], b"\r\n"].concat()).unwrap();
    assert_eq!(Reply::read(&mut stream).status, 200);
    stream.write_all(b"\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(600));
    stream.write_all(&[&request[..], b"GET /v1/emulator HTTP/1.1\r\nhost"].concat()).unwrap();
    assert_eq!(Reply::read(&mut stream).status, 200);
    let reply = Reply::read(&mut stream);
    assert_eq!((reply.status, reply.header("content-type")), (408, Some("application/problem+json")));
    assert!(is_closed(&mut stream));
}

#[test]
fn a_body_that_does_not_arrive_is_408() {
    let server = Server::with(|app| app.limits.body = Duration::from_millis(200));
    let mut stream = server.connect();
    stream
        .write_all(b"POST /mgbaendpoint HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nhalf")
        .unwrap();
    assert_eq!(Reply::read(&mut stream).status, 408);
    assert!(is_closed(&mut stream));
}

#[test]
fn an_idle_connection_is_closed_after_its_time_limit_and_not_before() {
    let server = Server::with(|app| {
        app.limits.head = Duration::from_millis(100);
        app.limits.idle = Duration::from_secs(3);
    });
    let mut stream = server.connect();
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut last_request = Instant::now();
    for _ in 0..3 {
        // Longer than the time limit for a head, which does not apply to idle connections.
        std::thread::sleep(Duration::from_millis(300));
        last_request = Instant::now();
        stream.write_all(request).unwrap();
        assert_eq!(Reply::read(&mut stream).status, 200);
    }
    assert!(is_closed(&mut stream));
    let idle = last_request.elapsed();
    assert!(idle >= Duration::from_secs(3) && idle < Duration::from_secs(10), "closed after {idle:?}");
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let server = Server::with(|app| {
        app.deadline = PATIENCE;
        app.limits.stall = Duration::from_millis(300);
        app.limits.max_connections = 1;
    });
    let mut stream = server.connect();
    let request =
        b"GET /core/readrange?address=0x02000000&length=16777216 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request).unwrap();
    wait_for("the connection to be closed", || server.get("/healthz").status == 200);
    let mut reply = Vec::new();
    assert!(stream.read_to_end(&mut reply).is_err(), "the whole reply of {} bytes arrived", reply.len());
}

/// A client that reads slowly, but without long pauses, gets the whole reply.
#[test]
fn a_client_that_reads_slowly_is_served() {
    let stall = Duration::from_secs(2);
    let server = Server::with(|app| {
        app.deadline = PATIENCE;
        app.limits.stall = stall;
    });
    let mut stream = server.connect();
    // This small buffer limits how much of the reply the server can send at once.
    SockRef::from(&stream).set_recv_buffer_size(512 * 1024).unwrap();
    stream.write_all(b"GET /core/readrange?address=0x02000000&length=16777216 HTTP/1.0\r\n\r\n").unwrap();
    let start = Instant::now();
    let mut buffer = vec![0; 256 * 1024];
    let mut total = 0;
    loop {
        std::thread::sleep(Duration::from_millis(30));
        match stream.read(&mut buffer).unwrap() {
            0 => break,
            count => total += count,
        }
    }
    // Each byte is sent as two hexadecimal digits and a comma.
    assert!(total > 3 * 16 * 1024 * 1024, "{total}");
    assert!(start.elapsed() > 2 * stall, "{:?}: the client was not slow", start.elapsed());
}

#[test]
fn the_body_of_a_request_to_mcp_must_arrive_in_time() {
    let server = Server::with(|app| {
        app.front_end = Some(mcp());
        app.limits.body = Duration::from_millis(200);
    });
    for session in ["", "mcp-session-id: none\r\n"] {
        let mut stream = server.connect();
        let head = format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\n{session}content-length: 9\r\n\r\n");
        write!(stream, "{head}{{").unwrap();
        assert_eq!(Reply::read(&mut stream).status, 408, "{session:?}");
    }
}

/// A connection that pauses before each read.
struct SlowReader(TcpStream);

impl Read for SlowReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        std::thread::sleep(Duration::from_millis(30));
        self.0.read(buffer)
    }
}

impl Write for SlowReader {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn a_websocket_client_that_reads_slowly_gets_the_whole_reply() {
    let stall = Duration::from_secs(2);
    let server = Server::with(|app| {
        app.deadline = PATIENCE;
        app.limits.stall = stall;
    });
    let stream = server.connect();
    SockRef::from(&stream).set_recv_buffer_size(512 * 1024).unwrap();
    let request = format!("ws://{}/v1/ws", server.address).into_client_request().unwrap();
    let config = WebSocketConfig::default().max_frame_size(None);
    let connected = client_with_config(request, SlowReader(stream), Some(config));
    let (mut socket, _) = connected.expect("a WebSocket");
    let params = json!({"address": 0x0200_0000, "length": 16 << 20});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "read_range", "params": params});
    socket.send(Message::text(call.to_string())).unwrap();
    let start = Instant::now();
    let reply = loop {
        let message = socket.read().expect("the whole reply");
        if message.is_text() {
            break message;
        }
    };
    assert!(reply.len() > 16 << 20, "{reply}");
    assert!(start.elapsed() > 2 * stall, "{:?}: the client was not slow", start.elapsed());
}

#[test]
fn too_many_connections_get_an_error() {
    let server = Server::with(|app| app.limits.max_connections = 3);
    let mut open: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for stream in &mut open {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        assert_eq!(Reply::read(stream).status, 200);
    }
    let reply = server.get("/healthz");
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    drop(open);
    wait_for("a free connection", || server.get("/healthz").status == 200);
}

#[test]
fn many_clients_at_once_are_all_answered() {
    let server = Server::start();
    let streams: Vec<_> = (0..300).map(|_| server.connect()).collect();
    for (number, mut stream) in streams.iter().enumerate() {
        write!(stream, "GET /mgbaendpoint?message={number} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    }
    for (number, mut stream) in streams.into_iter().enumerate() {
        assert_eq!(Reply::read(&mut stream).text(), number.to_string());
    }
}
