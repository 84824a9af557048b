//! Savestates: as bytes, in files, in slots.

use std::io::{Read, Write};

use framewire_files::UNFINISHED;
use framewire_protocol::marker::{hex_pairs, parse_hex_pairs};

use super::support::{Server, encoded, wait_for};

const WRITE: &str = "/core/write32?address=0x02000100&value=";
const READ: &str = "/core/read32?address=0x02000100";

fn save(server: &Server, query: &str) -> Vec<u8> {
    let reply = server.post(&format!("/core/savestatebuffer{query}"));
    assert_eq!(reply.status, 200);
    parse_hex_pairs(&reply.text()).unwrap()
}

fn load(server: &Server, query: &str, body: &str) -> (u16, String) {
    let reply = server.request("POST", &format!("/core/loadstatebuffer{query}"), body.as_bytes());
    (reply.status, reply.text())
}

fn succeeded() -> (u16, String) {
    (200, "true".to_owned())
}

#[test]
fn flags_choose_the_format() {
    let server = Server::start();
    assert_eq!(save(&server, "?flags=0").len(), 0x61000);
    for query in ["", "?flags=31", "?flags=", "?FLAGS=1"] {
        assert!(save(&server, query).starts_with(b"\x89PNG"), "{query}");
    }
}

#[test]
fn a_state_restores_memory() {
    let server = Server::start();
    for flags in ["?flags=0", "?flags=31", ""] {
        server.post_ok(&format!("{WRITE}4026531841"), "");
        let state = save(&server, flags);
        server.post_ok(&format!("{WRITE}5"), "");
        assert_eq!(load(&server, "", &format!("[{}]", hex_pairs(&state))), succeeded());
        assert_eq!(server.text(READ), "4026531841");
    }
}

/// A client that reads in small pieces gets the whole state. The core is paused so that its state does not change
/// during the test.
#[test]
fn a_state_comes_back_byte_for_byte() {
    let server = Server::paused();
    let state = || {
        let mut stream = server.connect();
        write!(stream, "POST /core/savestatebuffer?flags=0 HTTP/1.0\r\ncontent-length: 0\r\n\r\n").unwrap();
        let (mut reply, mut piece) = (Vec::new(), [0; 100]);
        while let count @ 1.. = stream.read(&mut piece).unwrap() {
            reply.extend(&piece[..count]);
        }
        let text = String::from_utf8(reply).unwrap();
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let before = state();
    assert_eq!(before.len(), 3 * 0x61000 - 1);
    server.post_ok(&format!("{WRITE}5"), "");
    assert!(state() != before);
    assert_eq!(load(&server, "", &before), succeeded());
    assert!(state() == before, "another state came back");
}

#[test]
fn a_state_may_be_spelled_in_many_ways() {
    let server = Server::start();
    let pairs = hex_pairs(&save(&server, "?flags=0"));
    let spellings = [
        pairs.clone(),
        format!("[{pairs}]"),
        format!(" [ {} ]\r\n", pairs.replace(',', ",\n\t ")),
        pairs.to_uppercase(),
    ];
    for (number, body) in spellings.iter().enumerate() {
        assert_eq!(load(&server, "?flags=29", body), succeeded(), "spelling {number}");
    }
}

#[test]
fn any_content_type_or_none_is_accepted() {
    let server = Server::start();
    let body = format!("[{}]", hex_pairs(&save(&server, "?flags=0")));
    for header in ["", "content-type: application/json\r\n", "content-type: nonsense\r\n"] {
        let mut stream = server.connect();
        let length = body.len();
        let head = format!(
            "POST /core/loadstatebuffer HTTP/1.1\r\nhost: localhost\r\n{header}content-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let reply = super::support::Reply::read(&mut stream);
        assert_eq!((reply.status, reply.text()), succeeded(), "{header:?}");
    }
}

#[test]
fn a_malformed_body_is_400_and_changes_nothing() {
    let server = Server::start();
    server.post_ok(&format!("{WRITE}77"), "");
    for body in ["", " ", "[]", "[d3", "d3]", "[d3,zz]", "[d3,,00]", "[d3 00 ea,]", "hello", "\u{e9}"] {
        let (status, text) = load(&server, "", body);
        assert_eq!(status, 400, "{body:?}");
        assert!(text.contains("[d3,00,ea]"), "{text}");
    }
    assert_eq!(server.request("POST", "/core/loadstatebuffer", b"[\xff]").status, 400);
    assert_eq!(server.text(READ), "77");
}

#[test]
fn loading_bytes_that_are_not_a_state_returns_false() {
    let server = Server::start();
    server.post_ok(&format!("{WRITE}78"), "");
    assert_eq!(load(&server, "", "[d3,00,ea]"), (200, "false".to_owned()));
    assert_eq!(server.text(READ), "78");
}

#[test]
fn states_are_saved_to_and_loaded_from_files() {
    let server = Server::start();
    let path = encoded(&server.file("a state + more, 100%.ss"));
    server.post_ok(&format!("{WRITE}11"), "");
    server.post_ok(&format!("/core/savestatefile?path={path}"), "true");
    server.post_ok(&format!("{WRITE}12"), "");
    server.post_ok(&format!("/core/loadstatefile?path={path}&flags=29"), "true");
    assert_eq!(server.text(READ), "11");
    server.post_ok(&format!("/core/loadstatefile?path={}", encoded(&server.file("nothing"))), "false");
    server.post_ok(&format!("/core/savestatefile?path={}", encoded(&server.file("no folder/x"))), "false");
}

#[test]
fn states_are_saved_to_and_loaded_from_slots() {
    let server = Server::start();
    server.post_ok(&format!("{WRITE}21"), "");
    server.post_ok("/core/savestateslot?slot=3&flags=31", "true");
    server.post_ok(&format!("{WRITE}22"), "");
    server.post_ok("/core/loadstateslot?slot=0x3", "true");
    assert_eq!(server.text(READ), "21");
    server.post_ok("/core/loadstateslot?slot=8&flags=29", "false");
}

#[test]
fn a_state_may_overwrite_the_file_with_the_games_save_data() {
    let server = Server::start();
    let path = server.file("both");
    std::fs::write(server.folder.path().join("both"), vec![0; 0x8000]).unwrap();
    for _ in 0..2 {
        server.post_ok(&format!("/core/loadsavefile?path={}&temporary=false", encoded(&path)), "true");
        server.post_ok(&format!("/core/savestatefile?path={}", encoded(&path)), "true");
        assert_eq!(server.post("/core/savestatebuffer").status, 200);
    }
    // The thread that writes battery saves also makes an unfinished file for a moment, possibly after the reply.
    wait_for("the end of all unfinished files", || {
        let mut names = std::fs::read_dir(server.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        !names.any(|name| name.starts_with(UNFINISHED))
    });
}
