//! Scripts that send wrong results, events or replies. Each request must still get a reply, and not a 500.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use framewire_http::compat::{ECHO, ROUTES, Verb};
use framewire_protocol::event::NewValue;
use framewire_protocol::{EventFrame, EventItem, Frame, Op, Outcome, Reply, Request, Value, marker};

use super::bad_input::good;
use super::failures::attached;
use super::peer::{Connection, Peer};
use super::support::{Server, wait_for};

/// The result of each operation, and how many results are added to, or left out of, the right number of them.
type Results = (Value, isize);

/// Answers the messages of one link as mGBA-http's script does, all with the same text.
fn serve_text(mut link: Connection, text: &Mutex<String>) -> Option<()> {
    link.greet_as_mgba_http()?;
    loop {
        link.message()?;
        let text = text.lock().unwrap().clone();
        link.reply(&text)?;
    }
}

/// Answers the requests of one link.
fn serve(mut link: Connection, results: &Mutex<Results>) -> Option<()> {
    link.greet()?;
    link.frame = u32::MAX;
    let mut watched = Vec::new();
    loop {
        let Request { id, batch, .. } = link.request()?;
        let watches = batch.ops.iter().filter_map(|op| match op {
            Op::Watch { id, .. } => Some(*id),
            _ => None,
        });
        watched.extend(watches);
        let (value, more) = results.lock().unwrap().clone();
        let count = batch.ops.len().saturating_add_signed(more);
        let outcome = Outcome { frame: u32::MAX, results: vec![Ok(value); count] };
        // With two writes, the second one could wait 40 ms for an acknowledgement of the first one.
        let mut bytes = Vec::new();
        Frame::Reply(Reply { id, outcome }).encode(&mut bytes);
        Frame::Event(events(&watched)).encode(&mut bytes);
        link.send(&bytes)?;
    }
}

/// Events with impossible values, about these watches and about things that do not exist.
fn events(watched: &[u32]) -> EventFrame {
    let value = |(range, length)| NewValue { range, bytes: vec![0xFF; length] };
    let changed = |&watch| EventItem::Changed {
        watch,
        ticks: u32::MAX,
        values: [(0, 0), (0, 1), (0, 9), (7, 4), (u16::MAX, 0), (u16::MAX, 3), (u16::MAX - 1, 0)]
            .map(value)
            .into(),
    };
    let mut items: Vec<EventItem> = watched.iter().chain(&[u32::MAX]).map(changed).collect();
    items.extend([EventItem::Reset, EventItem::State, EventItem::LockstepOver]);
    items.extend([0, 1, u32::MAX].map(|id| EventItem::TimelineOver { id, cancelled: true }));
    EventFrame { frame: u32::MAX, items }
}

/// A method, a path, and a body.
type HttpRequest = (&'static str, String, &'static str);

/// Requests of all kinds, except those whose replies do not end.
fn requests() -> Vec<HttpRequest> {
    let compat = ROUTES.iter().chain(&ECHO).map(|route| {
        let query: Vec<String> =
            route.params.iter().map(|param| format!("{}={}", param.name, good(param))).collect();
        let method = if route.verb == Verb::Get { "GET" } else { "POST" };
        (method, format!("{}?{}", route.path, query.join("&")), "[0]")
    });
    let gets = [
        "/screen.png",
        "/v1/cheats",
        "/v1/cycles",
        "/v1/domains",
        "/v1/emulator",
        "/v1/freeze",
        "/v1/input/1",
        "/v1/io",
        "/v1/layers",
        "/v1/memory?address=0x02000000&address=score&address=u32[0x02000000]",
        "/v1/memory/0x02000000",
        "/v1/memory/score",
        "/v1/memory/u32[0x02000000]",
        "/v1/memory/0x02000000?length=4",
        "/v1/memory/0?length=4&domain=wram",
        "/v1/memory/u32[0x02000000]?length=4",
        "/v1/memory/u32[0x02000000]?length=4&format=raw",
        "/v1/memory/u32[0x02000000]?length=4&format=text",
        "/v1/registers",
        "/v1/save",
        "/v1/screen",
        "/v1/screen?format=rgb",
        "/v1/screen?format=rgba&scale=2",
        "/v1/sensors",
        "/v1/state",
        "/v1/timeline",
        "/v1/watches",
    ];
    let changes = [
        ("POST", "/v1/advance", r#"{"frames": 1}"#),
        ("POST", "/v1/find", r#"{"bytes": "00"}"#),
        ("POST", "/v1/find", r#"{"text": "a", "areas": [{"domain": "wram"}]}"#),
        ("PUT", "/v1/freeze/0x02000000", r#"{"value": 1}"#),
        ("DELETE", "/v1/freeze/0x02000000", ""),
        ("POST", "/v1/hold", r#"{"keys": ["A"]}"#),
        ("POST", "/v1/release", r#"{"keys": ["A"]}"#),
        ("POST", "/v1/input", r#"{"sequence": "A:2 .:3"}"#),
        ("POST", "/v1/input", r#"{"sequence": "A:2 .:3", "append": true}"#),
        ("DELETE", "/v1/input", ""),
        ("PUT", "/v1/io/DISPCNT", r#"{"value": 1}"#),
        ("POST", "/v1/lockstep", r#"{"timeout": 1}"#),
        ("PUT", "/v1/memory/0x02000000", r#"{"value": 1}"#),
        ("PUT", "/v1/memory/u32[0x02000000]", r#"{"value": 1}"#),
        ("PUT", "/v1/memory/0x02000000", r#"{"data": "0000"}"#),
        ("POST", "/v1/pause", ""),
        ("PUT", "/v1/registers/r0", r#"{"value": 1}"#),
        ("POST", "/v1/reset", ""),
        ("POST", "/v1/resume", ""),
        ("POST", "/v1/rewind", r#"{"frame": 1}"#),
        ("POST", "/v1/run", r#"{"steps": [{"frames": 1}], "values": ["score", "u32[0x02000000]"]}"#),
        ("POST", "/v1/run", r#"{"steps": [{"hold": ["A"], "frames": 9, "until": "score > 1"}]}"#),
        ("POST", "/v1/search", r#"{"type": "u8"}"#),
        ("POST", "/v1/snapshots", r#"{"name": "a"}"#),
        ("GET", "/v1/snapshots/diff?from=a", ""),
        ("POST", "/v1/snapshots/a/load", "{}"),
        ("PUT", "/v1/state", "state"),
        ("POST", "/v1/tap", r#"{"keys": ["A"]}"#),
        ("POST", "/v1/wait", r#"{"until": "score > 1", "frames": 1}"#),
        ("POST", "/v1/watches", r#"{"watch": ["score"]}"#),
        ("GET", "/v1/watches/1", ""),
        (
            "POST",
            "/v1/batch",
            r#"{"ops": [{"op": "read", "address": "score"}, {"op": "read_many", "addresses": ["score", "lives"]},
                {"op": "read_range", "address": "u32[0x02000000]", "length": 4},
                {"op": "read_range", "address": "score", "length": 4}, {"op": "domains"}, {"op": "screenshot"}]}"#,
        ),
        (
            "POST",
            "/v1/batch",
            r#"{"ops": [{"op": "tap", "keys": ["A"]}, {"op": "evaluate", "values": ["score + 1"]}, {"op": "layers"}]}"#,
        ),
    ];
    compat
        .chain(gets.map(|target| ("GET", target.to_owned(), "")))
        .chain(changes.map(|(method, target, body)| (method, target.to_owned(), body)))
        .collect()
}

/// A server that is connected to this script.
fn connected(script: &Peer) -> Server {
    let server = attached(script.address.clone(), |app| app.deadline = Duration::from_millis(500));
    wait_until_connected(&server);
    server
}

fn wait_until_connected(server: &Server) {
    wait_for("a connection", || server.text("/v1/emulator").contains("\"connected\":true"));
}

/// Sends the requests, and checks that each gets a reply, and that none of them is a 500.
fn assert_answered(server: &Server, requests: &[HttpRequest], wrong: &impl Debug) {
    for (method, target, body) in requests {
        let headers = if body.starts_with('{') { "content-type: application/json\r\n" } else { "" };
        let reply = server.request_with(method, target, headers, body.as_bytes());
        assert_ne!(reply.status, 500, "{method} {target} with {wrong:?}: {}", reply.text());
    }
}

#[test]
fn requests_get_a_reply_even_if_the_results_of_the_script_are_wrong() {
    let results = Arc::new(Mutex::new((Value::None, 0)));
    let answers = results.clone();
    let server = connected(&Peer::start(move |_, link| serve(link, &answers)));

    let bytes = |length: usize| Value::Bytes(vec![0xFF; length]);
    let texts = |count: usize| Value::List(vec![Value::Text("x".to_owned()); count]);
    let values = [
        Value::None,
        Value::Bool(true),
        Value::Int(0),
        Value::Int(-1),
        Value::Int(i64::MIN),
        Value::Int(i64::MAX),
        Value::Text(String::new()),
        Value::Text("4294967296,\u{0}".to_owned()),
        bytes(0),
        bytes(3),
        bytes(4),
        bytes(5),
        bytes(4096),
        Value::List(Vec::new()),
        texts(1),
        texts(5),
        Value::List(vec![Value::Int(i64::MAX); 4]),
        Value::List(vec![bytes(3); 3]),
    ];
    let requests = requests();
    for value in values {
        for more in [0, -1, 1] {
            let wrong = (value.clone(), more);
            *results.lock().unwrap() = wrong.clone();
            assert_answered(&server, &requests, &wrong);
            wait_until_connected(&server);
        }
    }
    // The link still works: these results are right for a read of a number.
    *results.lock().unwrap() = (Value::Int(7), 0);
    assert_eq!(server.number("/core/read8?address=0x02000000"), 7);
}

/// The result of a read at a computed address has the four bytes of the address before those of the number.
#[test]
fn a_number_at_a_computed_address_is_not_zero_if_its_bytes_are_missing() {
    let results = Arc::new(Mutex::new((Value::None, 0)));
    let answers = results.clone();
    let server = connected(&Peer::start(move |_, link| serve(link, &answers)));
    let one = "/v1/memory/u32[0x02000000]?type=u32";
    let many = "/v1/memory?address=u32[0x02000000]&type=u32";
    let batch = br#"{"ops": [{"op": "read", "address": "u32[0x02000000]", "type": "u32"}]}"#;
    for (value, is_right) in
        [(Value::Bytes(vec![1; 4]), false), (Value::Int(7), false), (Value::Bytes(vec![1; 8]), true)]
    {
        *results.lock().unwrap() = (value.clone(), 0);
        for target in [one, many] {
            let reply = server.get(target);
            assert_eq!(reply.status == 200, is_right, "{target} with {value:?}: {}", reply.text());
        }
        let reply =
            server.request_with("POST", "/v1/batch", "content-type: application/json\r\n", batch).text();
        assert_eq!(reply.contains("16843009"), is_right, "{value:?}: {reply}");
        assert_eq!(reply.contains("\"error\""), !is_right, "{value:?}: {reply}");
    }
}

#[test]
fn requests_get_a_reply_even_if_a_script_of_mgba_http_sends_wrong_replies() {
    let text = Arc::new(Mutex::new("1".to_owned()));
    let answers = text.clone();
    let server = connected(&Peer::start(move |_, link| serve_text(link, &answers)));
    let requests = requests();
    let words = ["", " ", "x", "true", "1.5", "1e3", "-1", "-99999999999999999999", "99999999999999999999"];
    let lists = ["[]", "[ff", "[f]", "ff,ff", ",", "wram,", "0xff", "\u{0}", "\u{1F600}", marker::ERROR];
    for wrong in words.into_iter().chain(lists).map(str::to_owned).chain(["f".repeat(70_000)]) {
        text.lock().unwrap().clone_from(&wrong);
        assert_answered(&server, &requests, &wrong);
    }
    "7".clone_into(&mut text.lock().unwrap());
    wait_until_connected(&server);
    assert_eq!(server.number("/core/read8?address=0x02000000"), 7);
}
