//! Sends the hostile requests in `tests/data/hostile-http.json`, where the fields are explained. The tests of the Lua
//! server use the same list.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Server, repository};

/// The status in the list that stands for a connection which is closed without an answer.
const SILENCE: u64 = 0;

/// What the server sent on a connection.
struct Reaction {
    statuses: Vec<u64>,
    closed: bool,
}

fn bytes_of(send: &Value) -> Vec<u8> {
    let part = |value: &Value| match value {
        // Each character is one byte.
        Value::String(text) => text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect(),
        other => {
            let times = other["times"].as_u64().unwrap() as usize;
            other["repeat"].as_str().unwrap().as_bytes().repeat(times)
        }
    };
    let bytes: Vec<u8> = match send {
        Value::Array(parts) => parts.iter().flat_map(part).collect(),
        one => part(one),
    };
    // `/echo` is a route of the Lua server. The echo route of this server also reads the body.
    match bytes.strip_prefix(b"POST /echo ") {
        Some(rest) => [b"POST /mgbaendpoint ", rest].concat(),
        None => bytes,
    }
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().into_iter().flatten().map(|status| status.as_u64().unwrap()).collect()
}

/// Reads one answer. Returns `None` if the connection ends first.
fn read_answer(stream: &mut TcpStream) -> std::io::Result<Option<(u64, Vec<u8>)>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(error),
            Ok(_) => head.push(byte[0]),
        }
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some((status, body)))
}

/// Whether the connection may stay open after this status, if the list has it under `also`.
fn is_harmless(status: u64) -> bool {
    status < 300 || matches!(status, 404 | 405)
}

/// Sends a request of the list, and reads what the server sends on this connection.
fn react(server: &Server, case: &Value) -> std::io::Result<Reaction> {
    let must_close = case["closed"].as_bool().unwrap();
    let also = numbers(&case["also"]);
    let mut stream = server.connect();
    stream.set_read_timeout(Some(Duration::from_secs(8)))?;
    // A server that refuses early may close before the client has sent everything.
    let _ = stream.write_all(&bytes_of(&case["send"]));
    let mut statuses = Vec::new();
    // An interim reply (1xx) comes before the final one.
    while let Some((status, _)) = read_answer(&mut stream)? {
        if status >= 200 {
            statuses.push(status);
            break;
        }
    }
    let mut closed = statuses.is_empty();
    let may_stay = statuses.first().is_some_and(|status| also.contains(status) && is_harmless(*status));
    if !closed && must_close && !may_stay {
        while let Some((status, _)) = read_answer(&mut stream)? {
            statuses.push(status);
        }
        closed = true;
    } else if !closed {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
        match read_answer(&mut stream)? {
            Some((status, _)) => statuses.push(status),
            None => closed = true,
        }
    }
    Ok(Reaction { statuses, closed })
}

/// Sends a request of the list, and returns what is wrong with the reply, if anything.
fn fault(server: &Server, case: &Value) -> Option<String> {
    let (expect, also) = (numbers(&case["expect"]), numbers(&case["also"]));
    let must_close = case["closed"].as_bool().unwrap();
    let reaction = match react(server, case) {
        Ok(reaction) => reaction,
        Err(error) => return Some(format!("the connection stays open, or there is no answer: {error}")),
    };
    let first = reaction.statuses.first().copied().unwrap_or(SILENCE);
    if !expect.contains(&first) && !also.contains(&first) {
        return Some(format!("answered {first} instead of {expect:?} or {also:?}"));
    }
    let tolerated = !expect.contains(&first);
    if must_close && !(tolerated && is_harmless(first)) {
        if reaction.statuses.len() > 1 {
            return Some(format!("answered more than once: {:?}", reaction.statuses));
        }
    } else if !(tolerated && reaction.closed) && reaction.statuses.get(1) != Some(&200) {
        return Some("the next request is lost".to_owned());
    }
    None
}

#[test]
fn hostile_requests_are_refused_or_understood_in_exactly_one_way() {
    let text = std::fs::read_to_string(repository("tests/data/hostile-http.json")).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let cases = list["requests"].as_array().unwrap();
    assert!(cases.len() >= 60, "{} requests", cases.len());
    let server = Server::with(|app| {
        // Most requests in the list have `Host: a`.
        app.access.pages.allow_host("*").unwrap();
        app.limits.head = Duration::from_secs(4);
        app.limits.body = Duration::from_secs(4);
    });
    let work = |part: &[Value]| -> Vec<String> {
        let name = |case: &Value| case["name"].as_str().unwrap().to_owned();
        part.iter().filter_map(|case| Some(format!("{}: {}", name(case), fault(&server, case)?))).collect()
    };
    let faults: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = cases.chunks(20).map(|part| scope.spawn(|| work(part))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), cases.len(), faults.join("\n"));
    assert_eq!(server.get("/healthz").status, 200);
}

/// A proxy might use the length, and then another request could be hidden after the last chunk.
#[test]
fn a_request_with_a_length_and_chunks_is_400_and_the_request_after_it_is_not_answered() {
    let server = Server::start();
    let (length, coding) = ("content-length: 4\r\n", "transfer-encoding: chunked\r\n");
    let hidden = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for lines in [format!("{length}{coding}"), format!("{coding}{length}")] {
        let mut stream = server.connect();
        let head = format!("POST /mgbaendpoint HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n");
        stream.write_all(format!("{head}0\r\n\r\n{hidden}").as_bytes()).unwrap();
        let (status, body) = read_answer(&mut stream).unwrap().expect("an answer");
        let text = String::from_utf8(body).unwrap();
        assert!(status == 400 && text.contains("Content-Length and Transfer-Encoding"), "{status} {text}");
        assert!(read_answer(&mut stream).unwrap().is_none(), "{lines}");
    }
}

/// Sends a head and reads the status and text of the answer.
fn answer(server: &Server, head: &str) -> (u64, String) {
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).unwrap();
    let (status, body) = read_answer(&mut stream).unwrap().expect("an answer");
    (status, String::from_utf8(body).unwrap())
}

#[test]
fn an_impossible_content_length_is_413_with_a_reason() {
    let server = Server::start();
    let zeros = format!("{}5", "0".repeat(64));
    for length in ["18446744073709551615", "18446744073709551614", "99999999999999999999999", &zeros] {
        for path in ["/v1/batch", "/mgbaendpoint"] {
            let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
            let (status, text) = answer(&server, &head);
            assert!(status == 413 && text.contains("8388608 bytes"), "{length} at {path}: {status} {text}");
            assert_eq!(text.starts_with('{'), path.starts_with("/v1"), "{text}");
        }
    }
}

#[test]
fn a_header_that_may_occur_only_once_is_refused_if_it_is_repeated() {
    let server = Server::start();
    let twice = |line: &str| format!("{line}\r\n{line}\r\n");
    for (name, lines) in [
        ("Content-Length", twice("content-length: 2")),
        ("Content-Length", "Content-Length: 2\r\ncontent-length: 2\r\n".to_owned()),
        ("Origin", twice("origin: http://localhost")),
        ("Origin", "origin: http://localhost\r\norigin: http://evil.example\r\n".to_owned()),
    ] {
        let before = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let head = format!("POST /v1/reset HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n{{}}");
        let (status, text) = answer(&server, &head);
        assert!(status == 400 && text.contains(name), "{name}: {status} {text}");
        // The same on a connection that has served a request before.
        let mut stream = server.connect();
        for (request, expected) in [(before, 200), (&head, 400)] {
            stream.write_all(request.as_bytes()).unwrap();
            assert_eq!(read_answer(&mut stream).unwrap().unwrap().0, expected, "{name}");
        }
    }
}
