//! The routes that write to mGBA's script console, and the echo route `/mgbaendpoint`.

use std::sync::Mutex;

use framewire_libmgba::Level;

use super::support::{Server, encoded};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Receives the console lines of every emulator in these tests.
pub fn collect(level: Level, line: &str) {
    LINES.lock().unwrap().push(format!("{level:?} {line}"));
}

/// Texts that break programs which split, end or quote messages wrongly.
const AWKWARD: [&str; 6] = [
    "",
    "a,b,,c",
    "x<|END|>core.reset,,,<|END|>",
    "\u{e9}\u{4e16}\u{1f600}",
    "a+b c&d=e%f#g;h",
    "tab\tquote\"[d3,00]",
];

#[test]
fn lines_reach_the_console_unchanged() {
    let server = Server::start();
    for (route, level) in [("log", "Info"), ("warn", "Warn"), ("error", "Error")] {
        for text in AWKWARD {
            let line = format!("{route}: {text}");
            server.post_ok(&format!("/console/{route}?message={}", encoded(&line)), "");
            let expected = format!("{level} {line}");
            assert!(LINES.lock().unwrap().contains(&expected), "{expected:?}");
        }
    }
}

#[test]
fn the_echo_returns_messages_unchanged() {
    let server = Server::start();
    let long = "0123456789".repeat(5000);
    for text in AWKWARD.iter().copied().chain([long.as_str()]) {
        assert_eq!(server.text(&format!("/mgbaendpoint?message={}", encoded(text))), text);
        assert_eq!(server.text(&format!("/MgbaEndpoint/?other=1&MESSAGE={}", encoded(text))), text);
        let reply = server.request("POST", "/mgbaendpoint", text.as_bytes());
        assert_eq!((reply.status, reply.text().as_str()), (200, text));
    }
    let reply = server.request("POST", "/mgbaendpoint", &[0xff, 0x00, 0x80]);
    assert_eq!(reply.body, [0xff, 0x00, 0x80]);
}

#[test]
fn the_largest_message_comes_back_and_a_larger_one_is_413() {
    let server = Server::start();
    let largest = vec![b'x'; 1024 * 1024];
    assert_eq!(server.request("POST", "/mgbaendpoint", &largest).body, largest);
    assert_eq!(server.request("POST", "/mgbaendpoint", &[&largest[..], b"x"].concat()).status, 413);
}

#[test]
fn each_client_gets_the_replies_to_its_own_requests() {
    let server = Server::start();
    std::thread::scope(|scope| {
        for client in 0..8 {
            let server = &server;
            scope.spawn(move || {
                for number in 0..100 {
                    let message = format!("{client}-{number}<|END|>");
                    assert_eq!(server.text(&format!("/mgbaendpoint?message={}", encoded(&message))), message);
                }
            });
        }
    });
}
