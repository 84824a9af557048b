//! HTTP itself: pipelining, requests that arrive in pieces, bodies that are used or ignored, and requests that are too
//! large.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use framewire_http::{Limits, Token, Tokens};

use super::support::{Closing, Reply, Server, closing, is_closed, sample, wait_for};

const TITLE: &[u8] = b"GET /core/getgametitle HTTP/1.1\r\nhost: localhost\r\n\r\n";

fn assert_title(stream: &mut TcpStream) {
    let reply = Reply::read(stream);
    assert_eq!((reply.status, reply.text().as_str()), (200, "FRAMEWIRE"));
}

#[test]
fn a_connection_serves_many_requests() {
    let server = Server::start();
    let mut stream = server.connect();
    for _ in 0..50 {
        stream.write_all(TITLE).unwrap();
        assert_title(&mut stream);
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::start();
    let mut stream = server.connect();
    let requests: String = (0..200)
        .map(|number| format!("GET /mgbaendpoint?message={number} HTTP/1.1\r\nhost: localhost\r\n\r\n"))
        .collect();
    stream.write_all(requests.as_bytes()).unwrap();
    for number in 0..200 {
        assert_eq!(Reply::read(&mut stream).text(), number.to_string());
    }
}

#[test]
fn a_request_may_arrive_in_pieces() {
    let server = Server::start();
    let mut stream = server.connect();
    stream.set_nodelay(true).unwrap();
    for byte in TITLE {
        stream.write_all(&[*byte]).unwrap();
    }
    assert_title(&mut stream);
}

#[test]
fn a_client_may_close_its_side_early() {
    let server = Server::start();
    let mut stream = server.connect();
    stream.write_all(b"GET /core/getgametitle HTTP/1.0\r\n\r\n").unwrap();
    assert_title(&mut stream);
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(is_closed(&mut stream));

    let mut stream = server.connect();
    stream.write_all(&TITLE.repeat(3)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    for _ in 0..3 {
        assert_title(&mut stream);
    }
    assert!(is_closed(&mut stream));
}

/// If a route ignores the body of a request, the server still reads the body, so that it finds the next request.
#[test]
fn an_ignored_body_does_not_end_the_connection() {
    let server = Server::start();
    let mut stream = server.connect();
    for route in ["POST /core/step", "POST /v1/resume", "DELETE /v1/freeze"] {
        let head = format!("{route} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length");
        write!(stream, "{head}: 100000\r\n\r\n").unwrap();
        // The server has read the head and waits for the body. Many clients send the body only now.
        assert_eq!(Reply::read(&mut stream).status, 100);
        stream.write_all(&[b'x'; 100_000]).unwrap();
        assert_eq!(Reply::read(&mut stream).status, 200);
        stream.write_all(TITLE).unwrap();
        assert_title(&mut stream);
    }
}

/// The server may read any part of a body together with its head. In each case, it finds the next request.
#[test]
fn large_bodies_follow_each_other_on_one_connection() {
    let server = Server::start();
    let mut stream = server.connect();
    let body = vec![b'x'; 900_000];
    let head =
        format!("POST /mgbaendpoint HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    let request = [head.as_bytes(), &body].concat();
    for _ in 0..20 {
        stream.write_all(&request).unwrap();
        assert_eq!(Reply::read(&mut stream).body, body);
    }
}

#[test]
fn a_chunked_body_is_read() {
    let server = Server::start();
    let mut stream = server.connect();
    let request = b"POST /mgbaendpoint HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n\
        5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n";
    stream.write_all(request).unwrap();
    assert_eq!(Reply::read(&mut stream).text(), "hello, world");
    stream.write_all(TITLE).unwrap();
    assert_title(&mut stream);
}

/// A client that sends all of its request before it reads anything still gets the reply.
#[test]
fn a_body_that_is_too_large_is_413() {
    let server = Server::with(|app| app.limits.max_body = 1000);
    let body = vec![b' '; 20 * 1024 * 1024];
    for path in ["/core/loadstatebuffer", "/core/step", "/mgbaendpoint"] {
        let reply = server.request("POST", path, &body);
        assert_eq!((reply.status, reply.header("connection")), (413, Some("close")), "{path}");
        assert!(reply.text().contains("bytes"), "{}", reply.text());
    }
    assert_eq!(server.request("POST", "/core/step", &[b'x'; 1000]).status, 200);
}

/// The reply to a request whose body is not read arrives even if the client sends all of the body first.
#[test]
fn a_request_that_is_refused_before_its_body_is_read_gets_its_reply() {
    let token = Token::random().unwrap();
    let guarded = Server::with(|app| app.access.tokens = Tokens::new(Some(token), None).unwrap());
    let server = Server::start();
    let body = vec![b' '; 8 * 1024 * 1024];
    for (server, method, target, status) in [
        (&guarded, "POST", "/v1/batch", 401),
        (&server, "PUT", "/v1/rom?name=a.txt", 400),
        (&server, "POST", "/v1/batch?emulator=other", 404),
        (&server, "POST", "/v1/nothing", 404),
        (&server, "POST", "/nothing", 404),
        (&server, "PUT", "/v1/batch", 405),
        (&server, "POST", "/healthz", 405),
        (&server, "POST", "/v1/login", 415),
    ] {
        let mut stream = server.connect();
        let length = body.len();
        write!(stream, "{method} {target} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n")
            .unwrap();
        stream.write_all(&body).unwrap();
        let reply = Reply::read(&mut stream);
        assert_eq!((reply.status, reply.header("connection")), (status, Some("close")), "{method} {target}");
        assert_eq!(closing(&mut stream), Some(Closing::Closed), "{method} {target}");
    }
}

/// If the body has arrived together with the head, it is skipped, and the connection serves further requests.
#[test]
fn a_small_body_of_a_refused_request_does_not_end_the_connection() {
    let server = Server::start();
    let mut stream = server.connect();
    for _ in 0..3 {
        let refused = b"POST /v1/nothing HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(&[refused, TITLE].concat()).unwrap();
        let reply = Reply::read(&mut stream);
        assert_eq!((reply.status, reply.header("connection")), (404, None));
        assert_title(&mut stream);
    }
}

/// Many clients send the head and the body in two pieces.
#[test]
fn a_small_body_that_arrives_after_the_head_of_a_refused_request_does_not_end_the_connection() {
    let server = Server::start();
    let mut stream = server.connect();
    for (route, status) in
        [("POST /v1/nothing", 404), ("POST /v1/tap?emulator=other", 404), ("PUT /v1/batch", 405)]
    {
        write!(stream, "{route} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n").unwrap();
        // The server reads the two pieces separately.
        wait_for("the head to arrive", || {
            sample(&server.text("/metrics"), "framewire_http_requests_in_flight") == Some(2.0)
        });
        stream.write_all(b"{}").unwrap();
        let reply = Reply::read(&mut stream);
        assert_eq!((reply.status, reply.header("connection")), (status, None), "{route}");
        stream.write_all(TITLE).unwrap();
        assert_title(&mut stream);
    }
}

/// The next request arrives together with this one, but without the end of its body. The connection still serves both.
#[test]
fn a_request_before_an_incomplete_one_does_not_end_the_connection() {
    let server = Server::start();
    let mut stream = server.connect();
    let head = b"POST /mgbaendpoint HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n";
    stream.write_all(&[TITLE, head, b"01234"].concat()).unwrap();
    assert_title(&mut stream);
    stream.write_all(b"56789").unwrap();
    assert_eq!(Reply::read(&mut stream).text(), "0123456789");
}

#[test]
fn a_chunked_body_that_is_too_large_is_413() {
    let server = Server::with(|app| app.limits.max_body = 1000);
    let mut stream = server.connect();
    stream
        .write_all(b"POST /core/step HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        .unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..100 {
        stream.write_all(chunk.as_bytes()).unwrap();
    }
    assert_eq!(Reply::read(&mut stream).status, 413);
}

#[test]
fn a_client_that_sends_expect_gets_a_413_before_it_sends_a_body_that_is_too_large() {
    let server = Server::start();
    let mut stream = server.connect();
    let expect = "HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length";
    write!(stream, "POST /core/loadstatebuffer {expect}: 999999999\r\n\r\n").unwrap();
    assert_eq!(Reply::read(&mut stream).status, 413);

    let mut stream = server.connect();
    write!(stream, "POST /mgbaendpoint {expect}: 5\r\n\r\n").unwrap();
    assert_eq!(Reply::read(&mut stream).status, 100);
    stream.write_all(b"hello").unwrap();
    assert_eq!(Reply::read(&mut stream).text(), "hello");
}

#[test]
fn a_message_in_the_url_may_fill_the_longest_request_line() {
    let server = Server::start();
    let head =
        |message: &str| format!("GET /mgbaendpoint?message={message} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let longest = "x".repeat(Limits::MAX_HEAD - head("").len());
    let mut stream = server.connect();
    stream.write_all(head(&longest).as_bytes()).unwrap();
    assert_eq!(Reply::read(&mut stream).text(), longest);
}

#[test]
fn a_request_line_that_is_too_long_is_413() {
    let server = Server::start();
    for length in [65_530, 70_000, 200_000, 5_000_000] {
        let reply = server.get(&format!("/mgbaendpoint?message={}", "x".repeat(length)));
        assert_eq!((reply.status, reply.header("connection")), (413, Some("close")), "{length}");
        for words in ["POST /mgbaendpoint", &Limits::MAX_HEAD.to_string()] {
            assert!(reply.text().contains(words), "{}", reply.text());
        }
    }
}

#[test]
fn headers_that_are_too_large_are_431() {
    let server = Server::start();
    for (count, length) in [(1, 70_000), (10, 10_000), (1, 3_000_000)] {
        let mut stream = server.connect();
        let header = format!("x-filler: {}\r\n", "x".repeat(length)).repeat(count);
        write!(stream, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n{header}\r\n").unwrap();
        assert_eq!(Reply::read(&mut stream).status, 431, "{count} headers of {length}");
    }
}

#[test]
fn too_many_headers_are_431() {
    let server = Server::start();
    let mut stream = server.connect();
    write!(stream, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "a: b\r\n".repeat(2000)).unwrap();
    assert_eq!(Reply::read(&mut stream).status, 431);
}

/// After any nonsense, the server still answers the next client.
#[test]
fn nonsense_is_refused_and_disturbs_no_other_client() {
    let server = Server::start();
    let nonsense: [&[u8]; 6] = [
        b"\r\n\r\n\r\n",
        b"core.getGameTitle<|END|>\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /core/getgametitle HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /core/step HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ];
    for bytes in nonsense {
        let mut stream = server.connect();
        stream.write_all(bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        assert!(
            reply.is_empty() || reply.starts_with(b"HTTP/1.1 400"),
            "{:?}",
            String::from_utf8_lossy(&reply)
        );
    }
    assert_eq!(server.text("/core/getgametitle"), "FRAMEWIRE");
}
