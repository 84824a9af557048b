//! Large replies, and the limit on the memory that they use.

use std::io::{Read, Write};

use super::support::{PATIENCE, Server, wait_for};

const MIB: usize = 1024 * 1024;

/// The server sends a large text in pieces. Together, they must be the whole text.
#[test]
fn a_large_range_arrives_complete() {
    let server = Server::start();
    // Lengths around multiples of the size of a piece, 16 KiB, and a larger one.
    for length in [16_383, 16_384, 16_385, 32_768, 32_769, 300_000] {
        let text = server.text(&format!("/core/readrange?address=0x08000000&length={length}"));
        assert_eq!(text.len(), 3 * length - 1);
        let rom = std::fs::read(super::support::repository("rom/framewire-demo.gba")).unwrap();
        let bytes = framewire_protocol::marker::parse_hex_pairs(&text).unwrap();
        let known = length.min(rom.len());
        assert!(bytes[..known] == rom[..known], "{length} bytes");
    }
}

/// A reply uses memory until its client has read it. If there is not enough memory, other large requests get a 503, but
/// smaller ones are still answered.
#[test]
fn large_replies_together_have_a_memory_limit() {
    let server = Server::with(|app| {
        app.deadline = PATIENCE;
        app.limits.max_replies = 20 * MIB;
    });
    let large = "/core/readrange?address=0&length=16777216";
    let mut stream = server.connect();
    write!(stream, "GET {large} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    // The first bytes have arrived, so the reply is being sent; the test does not read the rest yet.
    stream.read_exact(&mut [0; 12]).unwrap();
    let reply = server.get(large);
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{}", reply.text());
    assert!(reply.text().contains("ask for less"), "{}", reply.text());
    assert_eq!(server.get("/core/readrange?address=0&length=16384").status, 200);
    assert_eq!(server.post("/core/savestatebuffer").status, 200);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.len() > 3 * 16 * MIB);
    wait_for("free memory", || server.get(large).status == 200);
}

#[test]
fn pictures_count_as_large_replies() {
    let server = Server::with(|app| app.limits.max_replies = 100_000);
    for target in ["/v1/screen?scale=4&format=rgba", "/screen.png"] {
        let reply = server.get(target);
        assert_eq!(reply.status, 503, "{target}: {}", reply.text());
    }
    assert_eq!(server.get("/v1/screen?scale=0.25").status, 200);
}

#[test]
fn the_list_of_frozen_values_counts_as_a_large_reply() {
    let server = Server::with(|app| app.limits.max_replies = 100_000);
    assert_eq!(server.get("/v1/freeze").status, 503);
}
