//! Emulators that do not exist or do not answer.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_emulator::Attached;
use framewire_emulator::history::DEFAULT_HISTORY;
use framewire_http::{
    App,
    compat::{ROUTES, Verb},
};
use framewire_link::Config;

use super::reserved_port::reserved_port;
use super::support::{Reply, Server};
use super::until_good::until_good;

/// A server that attaches to `address`.
pub fn attached(address: String, change: impl FnOnce(&mut App)) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { address, ..Config::default() };
    Server::over(folder, move |runtime| Arc::new(Attached::start(config, runtime, DEFAULT_HISTORY)), change)
}

/// Opens a port where the operating system accepts connections, but no program answers, as with a paused mGBA. Returns
/// the listener, which keeps the port open, and its address.
pub fn silent_port() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

fn assert_text(reply: &Reply, status: u16, words: &[&str]) {
    let text = reply.text();
    assert_eq!(reply.status, status, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[test]
fn no_emulator_is_502_and_says_how_to_start_one() {
    let (_socket, address) = reserved_port();
    let server = attached(address.to_string(), |_| {});
    for target in ["/core/getgametitle", "/core/read8?address=0", "/mgbaendpoint?message=x", "/screen.png"] {
        assert_text(&server.get(target), 502, &["mGBA", "framewire script"]);
    }
    assert_text(&server.post("/mgba-http/button/tap?button=A"), 502, &["mGBA", "framewire script"]);
    // Errors in a request are reported even without an emulator.
    assert_eq!(server.get("/core/read8").status, 400);
    assert_eq!(server.get("/healthz").status, 200);
    let state = server.text("/v1/emulator");
    assert!(state.contains("\"connected\":false"), "{state}");
}

#[test]
fn a_stalled_emulator_is_504_soon_after_the_deadline_and_says_so() {
    let (_listener, address) = silent_port();
    let server = attached(address, |app| app.deadline = Duration::from_millis(400));
    let ask = || {
        let start = Instant::now();
        assert_text(&server.get("/core/getgametitle"), 504, &["paused", "no ROM"]);
        let waited = start.elapsed();
        assert!(waited >= Duration::from_millis(350), "{waited:?}");
        waited
    };
    for _ in 0..2 {
        until_good(ask, |waited| *waited < Duration::from_millis(2500));
    }
}

#[test]
fn without_an_emulator_every_route_without_parameters_is_502() {
    let (_socket, address) = reserved_port();
    let server = attached(address.to_string(), |_| {});
    for route in ROUTES.iter().filter(|route| route.params.is_empty()) {
        let method = if route.verb == Verb::Get { "GET" } else { "POST" };
        assert_eq!(server.request(method, route.path, b"").status, 502, "{}", route.path);
    }
}
