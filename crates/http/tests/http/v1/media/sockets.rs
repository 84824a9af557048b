//! How every WebSocket handles clients that break the rules of RFC 6455.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{KEY, Server};
use crate::v1::problems::problem;

const SOCKETS: [&str; 3] = ["/v1/ws", "/v1/video", "/v1/audio"];

/// Reads until the close frame arrives, and returns its code. Returns `None` if the connection ends without a code.
fn close_code(stream: &mut TcpStream) -> Option<u16> {
    loop {
        let mut head = [0; 2];
        stream.read_exact(&mut head).ok()?;
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                stream.read_exact(&mut length).ok()?;
                u16::from_be_bytes(length).into()
            }
            127 => {
                let mut length = [0; 8];
                stream.read_exact(&mut length).ok()?;
                u64::from_be_bytes(length) as usize
            }
            length => usize::from(length),
        };
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).ok()?;
        if head[0] == 0x88 {
            return payload.first_chunk().map(|code| u16::from_be_bytes(*code));
        }
    }
}

#[test]
fn a_client_with_another_version_of_websockets_learns_the_right_one() {
    let server = Server::start();
    for target in SOCKETS {
        let headers = format!(
            "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 8\r\nsec-websocket-key: {KEY}\r\n"
        );
        let reply = server.request_with("GET", target, &headers, b"");
        problem(&reply, 400);
        assert_eq!(reply.header("sec-websocket-version"), Some("13"), "{target}");
    }
}

#[test]
fn a_websocket_key_that_is_not_16_bytes_is_refused() {
    let server = Server::start();
    for target in SOCKETS {
        for key in
            ["", "x", "dGhlIHNhbXBsZSBub25j", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZSEh", "!!!"]
        {
            let (_, reply) = server.upgrade(target, key);
            let error = problem(&reply, 400);
            assert!(error["detail"].as_str().unwrap().contains("16 random bytes"), "{target} {key}: {error}");
        }
        assert_eq!(server.upgrade(target, KEY).1.status, 101, "{target}");
    }
}

#[test]
fn invalid_frames_are_answered_with_a_close_frame() {
    let server = Server::start();
    // The masks are zero, so that they do not change the payload.
    let faults: [(&str, &[u8], u16); 8] = [
        ("a frame without a mask", b"\x81\x01x", 1002),
        ("a reserved bit", b"\xC1\x81\0\0\0\0x", 1002),
        ("an unknown kind of frame", b"\x83\x81\0\0\0\0x", 1002),
        ("a ping in parts", b"\x09\x81\0\0\0\0x", 1002),
        ("a long ping", b"\x89\xFE\x00\x80\0\0\0\0", 1002),
        ("the end of a message that has no beginning", b"\x80\x81\0\0\0\0x", 1002),
        ("text that is not UTF-8", b"\x81\x82\0\0\0\0\xFF\xFE", 1007),
        ("text in parts that is not UTF-8", b"\x01\x81\0\0\0\0\xFF\x80\x81\0\0\0\0\xFE", 1007),
    ];
    for target in SOCKETS {
        for (name, bytes, code) in faults {
            let (mut stream, reply) = server.upgrade(target, KEY);
            assert_eq!(reply.status, 101);
            let padding = if name == "a long ping" { 128 } else { 0 };
            stream.write_all(&[bytes, &vec![b'x'; padding]].concat()).unwrap();
            assert_eq!(close_code(&mut stream), Some(code), "{name} at {target}");
        }
    }
}
