//! Limits on the memory for bodies and WebSocket messages that clients send.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use framewire_http::{Token, Tokens};
use serde_json::json;

use super::support::{KEY, Reply, Server, is_closed, sample, wait_for};
use super::v1::live::client::Rpc;

const MIB: usize = 1024 * 1024;

/// A server with small limits.
fn small() -> Server {
    Server::with(|app| {
        app.limits.max_incoming = 4 * MIB;
        app.limits.max_incoming_per_address = 2 * MIB;
        app.limits.max_incoming_limited = MIB;
        app.limits.max_incoming_limited_per_address = MIB / 2;
    })
}

/// Sends the head of a request, without its body.
fn begin(server: &Server, length: usize, headers: &str) -> TcpStream {
    let mut stream = server.connect();
    write!(stream, "POST /v1/batch HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{headers}\r\n")
        .unwrap();
    stream
}

/// The body of a batch, padded with spaces to this length.
fn batch(length: usize) -> Vec<u8> {
    let mut body = br#"{"ops":[{"op":"current_frame"}]"#.to_vec();
    body.resize(length - 1, b' ');
    body.push(b'}');
    body
}

#[test]
fn a_body_above_the_memory_limit_of_an_address_is_503_and_accepted_later() {
    let server = small();
    let body = batch(MIB + MIB / 2);
    assert_eq!(server.request("POST", "/v1/batch", &body).status, 200);
    let mut slow = begin(&server, body.len(), "expect: 100-continue\r\n");
    assert_eq!(Reply::read(&mut slow).status, 100, "its memory is reserved");
    slow.write_all(&body[..1000]).unwrap();
    let refused = server.request("POST", "/v1/batch", &body);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.text());
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert!(refused.text().contains("send it again"), "{}", refused.text());
    // Meanwhile, small requests are served.
    assert_eq!(server.request("POST", "/v1/batch", &batch(4000)).status, 200);
    assert_eq!(server.post("/core/write8?address=0x02000100&value=1").status, 200);
    slow.write_all(&body[1000..]).unwrap();
    assert_eq!(Reply::read(&mut slow).status, 200);
    assert_eq!(server.request("POST", "/v1/batch", &body).status, 200);
}

#[test]
fn a_body_without_a_length_is_counted_as_it_arrives() {
    let server = small();
    let mut stream = server.connect();
    stream
        .write_all(b"POST /v1/batch HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        .unwrap();
    let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
    for _ in 0..64 {
        // The server may close the connection before all chunks are written.
        let _ = stream.write_all(&chunk);
    }
    let reply = Reply::read(&mut stream);
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(is_closed(&mut stream));
    assert_eq!(server.request("POST", "/v1/batch", &batch(MIB)).status, 200, "the memory was not released");
}

#[test]
fn the_memory_of_a_body_is_released_when_its_client_disconnects() {
    let server = small();
    for _ in 0..10 {
        let mut stream = begin(&server, MIB + MIB / 2, "");
        stream.write_all(&[b' '; 100_000]).unwrap();
        drop(stream);
        let body = batch(MIB + MIB / 2);
        wait_for("free memory", || server.request("POST", "/v1/batch", &body).status == 200);
    }
}

#[test]
fn a_request_with_an_idempotency_key_keeps_its_memory_after_its_client_disconnects() {
    let server = Server::with(|app| {
        app.deadline = Duration::from_secs(2);
        app.limits.max_incoming_per_address = 2 * MIB;
    });
    let connections = || sample(&server.text("/metrics"), "framewire_http_connections");
    let mut body = br#"{"keys":["A"],"frames":600"#.to_vec();
    body.resize(MIB + MIB / 2, b' ');
    body.push(b'}');
    let large = || server.request("POST", "/v1/batch", &batch(MIB + MIB / 2)).status;
    let mut stream = server.connect();
    let head =
        "POST /v1/tap?wait=true HTTP/1.1\r\nhost: localhost\r\nidempotency-key: left\r\ncontent-length";
    write!(stream, "{head}: {}\r\n\r\n", body.len()).unwrap();
    stream.write_all(&body).unwrap();
    wait_for("the press", || server.number("/core/getkeys") == 1);
    assert_eq!(large(), 503);
    drop(stream);
    wait_for("the client's connection to end", || connections() == Some(1.0));
    assert_eq!(large(), 503, "the request still runs, so its memory still counts");
    wait_for("the end of the request", || large() == 200);
}

#[test]
fn read_only_callers_have_smaller_limits_of_their_own() {
    let (full, read) = (Token::random().unwrap(), Token::random().unwrap());
    let tokens = Tokens::new(Some(full.clone()), Some(read.clone())).unwrap();
    let server = Server::with(|app| {
        app.access.tokens = tokens;
        app.limits.max_incoming_limited = MIB;
        app.limits.max_incoming_limited_per_address = MIB;
    });
    let authorization = |token: &Token| format!("authorization: Bearer {}\r\n", token.reveal());
    let body = batch(2 * MIB);
    let ask = |token: &Token, body: &[u8]| {
        server.request_with("POST", "/v1/batch", &authorization(token), body).status
    };
    assert_eq!(ask(&read, &batch(MIB / 2)), 200);
    assert_eq!(ask(&read, &body), 503);
    // The memory of read-only callers does not count towards the limits of other callers.
    let mut held = begin(&server, MIB, &format!("expect: 100-continue\r\n{}", authorization(&read)));
    assert_eq!(Reply::read(&mut held).status, 100, "its memory is reserved");
    assert_eq!(ask(&read, &batch(MIB / 2)), 503);
    assert_eq!(ask(&full, &body), 200);
    drop(held);
    wait_for("free memory", || ask(&read, &batch(MIB / 2)) == 200);
}

/// A ping frame from a client, with a mask of zeros.
const PING: [u8; 10] = [0x89, 0x80 | 4, 0, 0, 0, 0, b'p', b'i', b'n', b'g'];

/// Opens a WebSocket, and sends about this many bytes of a message that does not end, in fragments with `between` after
/// each.
fn unfinished(server: &Server, bytes: usize, between: &[u8]) -> TcpStream {
    let (mut stream, reply) = server.upgrade("/v1/ws", KEY);
    assert_eq!(reply.status, 101);
    const FRAGMENT: usize = 60_000;
    for number in 0..bytes / FRAGMENT {
        let opcode = if number == 0 { 1 } else { 0 };
        let mut frame = vec![opcode, 0x80 | 126];
        frame.extend((FRAGMENT as u16).to_be_bytes());
        frame.extend([0; 4]);
        frame.resize(frame.len() + FRAGMENT, b' ');
        frame.extend(between);
        if stream.write_all(&frame).is_err() {
            break;
        }
    }
    stream
}

/// Reads frames until one has this opcode, and returns its data.
fn frame(stream: &mut TcpStream, opcode: u8) -> Vec<u8> {
    let mut head = [0; 2];
    loop {
        stream.read_exact(&mut head).unwrap();
        let mut data = vec![0; usize::from(head[1])];
        stream.read_exact(&mut data).unwrap();
        if head[0] == 0x80 | opcode {
            return data;
        }
    }
}

/// Asserts that the server closes the WebSocket with the code 1013, because there is not enough memory.
fn assert_out_of_memory(stream: &mut TcpStream) {
    let data = frame(stream, 8);
    assert_eq!(data[..2], 1013_u16.to_be_bytes(), "{}", String::from_utf8_lossy(&data[2..]));
}

#[test]
fn unfinished_websocket_messages_count_as_memory() {
    let server = small();
    let mut first = unfinished(&server, MIB + MIB / 2, b"");
    first.write_all(&PING).unwrap();
    assert_eq!(frame(&mut first, 10), b"ping", "everything before the ping has arrived");
    assert_eq!(server.request("POST", "/v1/batch", &batch(MIB)).status, 503);
    let mut second = unfinished(&server, MIB + MIB / 2, b"");
    assert_out_of_memory(&mut second);
    drop((first, second));
    wait_for("free memory", || server.request("POST", "/v1/batch", &batch(MIB)).status == 200);
    // The memory of a message is released when it is answered.
    let mut rpc = Rpc::open(&server);
    let data = "ab".repeat(MIB / 8);
    for _ in 0..20 {
        rpc.result("write_range", json!({"address": 0x0200_0000, "data": data}));
    }
}

#[test]
fn pings_between_the_fragments_of_a_message_do_not_bypass_the_limit() {
    let server = small();
    assert_out_of_memory(&mut unfinished(&server, 3 * MIB, &PING));
    wait_for("free memory", || server.request("POST", "/v1/batch", &batch(MIB)).status == 200);
    // Unsolicited pongs do not count. The loop sends 2 MiB of them.
    let mut stream = unfinished(&server, 0, b"");
    let pong = [&[0x8a, 0x80 | 125, 0, 0, 0, 0][..], &[0; 125]].concat();
    for _ in 0..64 {
        stream.write_all(&pong.repeat(256)).unwrap();
    }
    stream.write_all(&PING).unwrap();
    assert_eq!(frame(&mut stream, 10), b"ping", "the connection still works");
}

/// How many times the server called `release_memory`.
static RELEASED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn the_memory_is_released_after_large_requests() {
    let server = Server::with(|app| {
        app.limits.max_incoming_per_address = 24 * MIB;
        app.release_memory = Some(|| {
            RELEASED.fetch_add(1, Relaxed);
        });
    });
    let body = batch(6 * MIB);
    let mut open: Vec<TcpStream> =
        (0..4).map(|_| begin(&server, body.len(), "expect: 100-continue\r\n")).collect();
    for stream in &mut open {
        assert_eq!(Reply::read(stream).status, 100, "its memory is reserved");
    }
    assert_eq!(server.request("POST", "/v1/batch", &batch(MIB)).status, 503);
    for stream in &mut open {
        stream.write_all(&body).unwrap();
        assert_eq!(Reply::read(stream).status, 200);
    }
    wait_for("the memory to be released", || RELEASED.load(Relaxed) > 0);
}
