//! Requests with an `Idempotency-Key`. On every route that changes something, except for `/mcp`, the login and the
//! logout, a repeated request is not performed again, and gets the first reply. Here, *key* means the value of this header.

use std::io::Write;
use std::net::Shutdown;
use std::sync::Barrier;
use std::time::Duration;

use framewire_http::{Token, Tokens};
use serde_json::{Value, json};

use super::intruders::{MCP_INITIALIZE, mcp};
use super::support::{Reply, Server, encoded, field, repository, wait_for};

/// Sends a request with a key and a body.
fn keyed(server: &Server, method: &str, target: &str, key: &str, body: &[u8]) -> Reply {
    server.request_with(method, target, &format!("Idempotency-Key: {key}\r\n"), body)
}

fn keyed_json(server: &Server, method: &str, target: &str, key: &str, body: &Value) -> Reply {
    keyed(server, method, target, key, body.to_string().as_bytes())
}

/// The parts of a reply that the reply to a repeated request must have too.
fn essence(reply: &Reply) -> (u16, Option<&str>, Option<&str>, &[u8]) {
    (reply.status, reply.header("content-type"), reply.header("location"), &reply.body)
}

#[track_caller]
fn refused(reply: &Reply, status: u16, says: &str) {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert!(reply.text().contains(says), "{}", reply.text());
}

fn json_of(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_else(|_| panic!("{}", reply.text()))
}

/// A server with a paused game at frame 30. Only requests change the state of the game.
fn paused() -> Server {
    let server = Server::paused();
    assert_eq!(server.request("POST", "/v1/advance", br#"{"frames":30}"#).status, 200);
    server
}

fn frame(server: &Server) -> i64 {
    server.number("/core/currentFrame")
}

fn advance(server: &Server, frames: u32) {
    let body = json!({"frames": frames}).to_string();
    assert_eq!(server.request("POST", "/v1/advance", body.as_bytes()).status, 200);
}

#[test]
fn a_repeated_state_load_does_not_set_the_game_back_again() {
    let server = paused();
    let state = server.get("/v1/state?flags=0").body;
    advance(&server, 10);
    let load = || keyed(&server, "PUT", "/v1/state", "load", &state);
    let first = load();
    assert_eq!((first.status, frame(&server)), (200, 30));
    advance(&server, 25);
    assert_eq!(essence(&load()), essence(&first));
    assert_eq!(frame(&server), 55);
}

#[test]
fn repeated_changes_of_snapshots_are_made_once() {
    let server = paused();
    let names = || -> Vec<String> {
        let all = json_of(&server.get("/v1/snapshots"))["snapshots"].as_array().unwrap().clone();
        all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let save = || keyed_json(&server, "POST", "/v1/snapshots", "save", &json!({"note": "once"}));
    let first = save();
    assert_eq!(first.status, 201);
    assert_eq!(essence(&save()), essence(&first), "the location too");
    let name = json_of(&first)["name"].as_str().unwrap().to_owned();
    assert_eq!(names(), [name.as_str()]);

    advance(&server, 10);
    let load = || keyed(&server, "POST", &format!("/v1/snapshots/{name}/load"), "load", b"");
    let first = load();
    assert_eq!((first.status, frame(&server)), (200, 30));
    advance(&server, 5);
    assert_eq!(essence(&load()), essence(&first));
    assert_eq!(frame(&server), 35);

    let path = format!("/v1/snapshots/{name}");
    let rename = || keyed_json(&server, "PATCH", &path, "rename", &json!({"name": "b"}));
    let first = rename();
    assert_eq!(first.status, 200);
    assert_eq!(essence(&rename()), essence(&first), "although no snapshot has the old name now");
    let remove = || keyed(&server, "DELETE", "/v1/snapshots/b", "remove", b"");
    assert_eq!((remove().status, remove().status), (204, 204));
    assert!(names().is_empty());
}

#[test]
fn repeated_steps_of_a_search_are_not_performed_again() {
    let server = paused();
    let begin = || keyed_json(&server, "POST", "/v1/search", "begin", &json!({"type": "u8"}));
    let first = begin();
    assert_eq!(first.status, 201);
    assert_eq!(essence(&begin()), essence(&first));
    assert_eq!(json_of(&server.get("/v1/search"))["searches"].as_array().unwrap().len(), 1);
    let id = json_of(&first)["id"].as_u64().unwrap();
    let narrow =
        |key: &str, body: Value| keyed_json(&server, "POST", &format!("/v1/search/{id}/narrow"), key, &body);
    let equal = json!({"is": "equal", "value": 0});
    let first = narrow("narrow", equal.clone());
    assert_eq!(first.status, 200, "{}", first.text());
    let second = narrow("further", json!({"is": "unchanged"}));
    assert_eq!(second.status, 200);
    assert_eq!(essence(&narrow("narrow", equal)), essence(&first));
    let undo = || keyed(&server, "POST", &format!("/v1/search/{id}/undo"), "undo", b"");
    let undone = undo();
    assert_eq!(json_of(&undone)["steps"], json_of(&first)["steps"]);
    assert_eq!(essence(&undo()), essence(&undone));
    assert_eq!(
        json_of(&server.get(&format!("/v1/search/{id}")))["search"]["steps"],
        json_of(&undone)["steps"]
    );
    let end = || keyed(&server, "DELETE", &format!("/v1/search/{id}"), "end", b"").status;
    assert_eq!((end(), end()), (204, 204));
}

#[test]
fn repeated_recordings_replays_and_watches_begin_only_once() {
    let server = Server::start();
    let begin = || keyed_json(&server, "POST", "/v1/recordings", "begin", &json!({"name": "r"}));
    let first = begin();
    assert_eq!(first.status, 201, "{}", first.text());
    assert_eq!(essence(&begin()), essence(&first));
    wait_for("some frames", || json_of(&server.get("/v1/recording"))["frames"].as_u64().unwrap_or(0) > 5);
    let stop = || keyed(&server, "DELETE", "/v1/recording", "stop", b"");
    let first = stop();
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(essence(&stop()), essence(&first));

    let replay = || keyed_json(&server, "POST", "/v1/recordings/r/replay", "replay", &json!({}));
    let first = replay();
    assert_eq!((first.status, &json_of(&first)["over"]), (200, &json!(true)), "{}", first.text());
    let now = frame(&server);
    assert_eq!(essence(&replay()), essence(&first));
    assert!(frame(&server) >= now, "it was not played again");

    let file = server.get("/v1/recordings/r/file").body;
    let upload = || keyed(&server, "PUT", "/v1/recordings/copy/file", "upload", &file);
    let first = upload();
    assert_eq!(first.status, 201);
    assert_eq!(essence(&upload()), essence(&first), "although a recording has this name now");
    let remove = || keyed(&server, "DELETE", "/v1/recordings/copy", "remove", b"").status;
    assert_eq!((remove(), remove()), (204, 204));

    let watch = || keyed_json(&server, "POST", "/v1/watches", "watch", &json!({"watch": ["score"]}));
    let first = watch();
    assert_eq!(first.status, 201);
    assert_eq!(essence(&watch()), essence(&first));
    let id = json_of(&first)["id"].as_str().unwrap().to_owned();
    let end = || keyed(&server, "DELETE", &format!("/v1/watches/{id}"), "end", b"").status;
    assert_eq!((end(), end()), (204, 204));
}

#[test]
fn a_repeated_tap_that_waits_gets_the_first_reply() {
    let server = Server::start();
    let tap =
        || keyed_json(&server, "POST", "/v1/tap?wait=true", "tap", &json!({"keys": ["A"], "frames": 2}));
    let first = tap();
    assert_eq!(first.status, 200, "{}", first.text());
    assert!(json_of(&first)["over"]["frame"].is_u64());
    let seen = frame(&server);
    wait_for("more frames", || frame(&server) > seen + 40);
    assert_eq!(essence(&tap()), essence(&first));
}

#[test]
fn a_tap_refused_during_a_key_timeline_can_be_repeated_later_with_its_key() {
    let server = paused();
    assert_eq!(server.request("POST", "/v1/tap", br#"{"keys":["B"],"frames":5}"#).status, 200);
    let tap = || keyed_json(&server, "POST", "/v1/tap", "tap", &json!({"keys": ["B"]}));
    let batch =
        || keyed_json(&server, "POST", "/v1/batch", "batch", &json!({"ops": [{"op": "tap", "keys": ["B"]}]}));
    refused(&tap(), 409, "timeline");
    assert_eq!(json_of(&batch())["failed"], 0);
    advance(&server, 10);
    let first = tap();
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(essence(&tap()), essence(&first));
    advance(&server, 10);
    let first = batch();
    assert_eq!(json_of(&first)["failed"], Value::Null, "{}", first.text());
    assert_eq!(essence(&batch()), essence(&first));
}

#[test]
fn a_key_is_refused_if_any_part_of_the_request_differs() {
    let server = paused();
    let save = json!({"name": "a"});
    assert_eq!(keyed_json(&server, "POST", "/v1/snapshots", "used", &save).status, 201);
    for (method, target, body) in [
        ("POST", "/v1/snapshots", json!({"name": "b"})),
        ("POST", "/v1/snapshots?emulator=demo", save.clone()),
        ("PUT", "/v1/snapshots", save.clone()),
        ("POST", "/v1/snapshots/a/load", json!({})),
        ("DELETE", "/v1/snapshots/a", json!({})),
        ("POST", "/mgba-http/button/tap?button=A", json!({})),
    ] {
        refused(&keyed_json(&server, method, target, "used", &body), 422, "used for another request");
    }
    assert_eq!(server.get("/v1/snapshots/a").status, 200);
    assert_eq!(server.text("/core/getkeys"), "0");
}

#[test]
fn a_key_on_a_route_that_takes_none_is_refused_and_not_ignored() {
    let server = Server::start();
    for (method, target) in [
        ("GET", "/v1/snapshots"),
        ("GET", "/core/getkeys"),
        ("GET", "/healthz"),
        ("POST", "/v1/wait"),
        ("POST", "/v1/login"),
        ("POST", "/v1/logout"),
    ] {
        let reply = keyed(&server, method, target, "k", br#"{"until":"1"}"#);
        refused(&reply, 400, "Idempotency-Key");
        refused(&reply, 400, "leave the header out");
    }
    for wrong in ["", &"k".repeat(256), "a\tb", "\u{e9}"] {
        refused(&keyed(&server, "POST", "/v1/snapshots", wrong, b"{}"), 400, "1 to 255 printable");
    }
    let two = "Idempotency-Key: a\r\nIdempotency-Key: b\r\n";
    refused(&server.request_with("POST", "/v1/snapshots", two, b"{}"), 400, "one key");
    assert_eq!(json_of(&server.get("/v1/snapshots"))["total"], 0);
}

/// If the key were accepted, the server would collect the endless reply of a stream, and the stream's slot would never
/// be free again.
#[test]
fn a_key_on_an_mcp_message_is_refused() {
    let server = Server::with(|app| app.front_end = Some(mcp()));
    refused(&keyed(&server, "POST", "/mcp", "k", MCP_INITIALIZE.as_bytes()), 400, "leave the header out");
}

#[test]
fn a_key_does_not_change_how_large_a_rom_may_be() {
    let server = Server::with(|app| app.limits.max_body = 1000);
    let rom = std::fs::read(repository("rom/framewire-demo.gba")).unwrap();
    let reply = keyed(&server, "PUT", "/v1/rom?name=a.gba", "k", &rom);
    assert_eq!(reply.status, 200, "{}", reply.text());
    refused(&keyed(&server, "PUT", "/v1/state", "k", &rom), 413, "1000 bytes");
}

#[test]
fn a_file_that_was_missing_is_loaded_when_the_request_is_repeated() {
    let server = Server::start();
    let path = encoded(&server.file("later.ss"));
    let load = || keyed(&server, "POST", &format!("/core/loadstatefile?path={path}"), "k", b"").text();
    assert_eq!(load(), "false");
    server.post_ok(&format!("/core/savestatefile?path={path}"), "true");
    assert_eq!(load(), "true");
}

#[test]
fn many_simultaneous_repeats_are_performed_once_and_get_the_same_reply() {
    const MANY: usize = 30;
    let server = Server::start();
    let together = Barrier::new(MANY);
    let bodies: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let ask = || {
            together.wait();
            let reply = keyed_json(&server, "POST", "/v1/snapshots", "one", &json!({}));
            assert_eq!(reply.status, 201, "{}", reply.text());
            reply.body
        };
        let all: Vec<_> = (0..MANY).map(|_| scope.spawn(ask)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    assert_eq!(json_of(&server.get("/v1/snapshots"))["total"], 1);
}

#[test]
fn a_request_whose_client_left_is_finished_and_its_repeat_gets_the_reply() {
    let server = Server::start();
    // The press is long, so that the test sees it.
    let body = r#"{"keys":["A"],"frames":180}"#;
    let mut stream = server.connect();
    let head =
        "POST /v1/tap?wait=true HTTP/1.1\r\nhost: localhost\r\nidempotency-key: left\r\ncontent-length: ";
    write!(stream, "{head}{}\r\n\r\n{body}", body.len()).unwrap();
    wait_for("the press", || server.number("/core/getkeys") == 1);
    stream.shutdown(Shutdown::Both).unwrap();
    drop(stream);
    let presses = || server.number(&format!("/core/read32?address={}", field("presses")));
    let reply = keyed(&server, "POST", "/v1/tap?wait=true", "left", body.as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(json_of(&reply)["over"]["cancelled"], false);
    assert_eq!(presses(), 1);
}

#[test]
fn when_too_many_keys_are_remembered_new_ones_are_refused() {
    let life = Duration::from_secs(6);
    let server = Server::with(|app| (app.limits.max_keys, app.limits.keyed_life) = (4, life));
    let hold = |key: &str| keyed_json(&server, "POST", "/v1/hold", key, &json!({"keys": ["L"]}));
    let first = hold("0");
    for key in ["1", "2", "3"] {
        assert_eq!(hold(key).status, 200);
    }
    let full = hold("4");
    refused(&full, 503, "4 values of Idempotency-Key are remembered");
    assert!(full.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(essence(&hold("0")), essence(&first), "the oldest key is still remembered");
    wait_for("space for a new key", || hold("4").status == 200);
}

#[test]
fn a_repeat_is_refused_and_not_performed_if_the_first_reply_was_too_large_to_keep() {
    let server = Server::with(|app| app.limits.max_keyed_bytes = 10_000);
    wait_for("the game", || server.number(&format!("/core/read32?address={}", field("frame"))) > 2);
    let address = field("scratch");
    let ops = json!({"ops": [
        {"op": "tap", "keys": ["R"]},
        {"op": "read_range", "address": address, "length": 20_000},
    ]});
    let other = || keyed_json(&server, "POST", "/v1/hold", "other", &json!({"keys": ["L"]}));
    let others = other();
    assert_eq!(others.status, 200);
    let ask = || keyed_json(&server, "POST", "/v1/batch", "large", &ops);
    assert_eq!(ask().status, 200);
    assert_eq!(essence(&other()), essence(&others), "the large reply does not displace other replies");
    refused(&ask(), 410, "not kept any more");
    let small = || keyed_json(&server, "POST", "/v1/tap", "small", &json!({"keys": ["L"]}));
    let first = small();
    assert_eq!(essence(&small()), essence(&first));
    let r = 8; // the number of the key R
    let presses = || server.number(&format!("/core/read32?address={}", field("presses") + 4 * r));
    wait_for("the press", || presses() == 1);
    assert_eq!(server.number("/core/getkeys") & 0x100, 0);
}

#[test]
fn requests_that_only_read_are_performed_again() {
    let server = paused();
    let read =
        || keyed_json(&server, "POST", "/v1/batch", "read", &json!({"ops": [{"op": "current_frame"}]}));
    assert_eq!(json_of(&read())["results"][0]["value"], 30);
    advance(&server, 1);
    assert_eq!(json_of(&read())["results"][0]["value"], 31);
    let save = || keyed(&server, "POST", "/core/savestatebuffer", "state", b"");
    let first = save();
    advance(&server, 1);
    assert_ne!(save().body, first.body);
}

#[test]
fn the_keys_of_read_only_callers_are_separate() {
    let [full, read] = [Token::random().unwrap(), Token::random().unwrap()];
    let tokens = Tokens::new(Some(full.clone()), Some(read.clone())).unwrap();
    let server = Server::with(|app| {
        app.access.tokens = tokens;
        app.limits.max_keys = 64;
    });
    let watch = |token: &Token, key: &str| {
        let headers = format!("authorization: Bearer {}\r\nidempotency-key: {key}\r\n", token.reveal());
        server.request_with("POST", "/v1/watches", &headers, br#"{"watch":["score"]}"#)
    };
    // Read-only callers can have a 32nd of the keys: 2 of 64.
    let statuses: Vec<u16> = (0..8).map(|key| watch(&read, &key.to_string()).status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 503).count(), 6, "{statuses:?}");
    assert_eq!(watch(&full, "0").status, 201, "although another caller used this key");
}

/// The OpenAPI document must say correctly which routes take a key.
#[test]
fn the_openapi_document_has_a_key_on_every_route_that_changes_something() {
    let server = Server::start();
    let document = json_of(&server.get("/openapi.json"));
    let mut seen = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let takes = parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key");
            let takes_none = method == "get"
                || ["/v1/wait", "/v1/find", "/v1/login", "/v1/logout"].contains(&path.as_str());
            assert_eq!(takes, !takes_none, "{method} {path}");
            assert_eq!(operation["responses"]["410"].is_object(), takes, "{method} {path}");
            let reply = keyed(&server, &method.to_uppercase(), &path.replace(['{', '}'], ""), "", b"");
            refused(&reply, 400, "1 to 255 printable");
            seen += u32::from(takes);
        }
    }
    assert!(seen > 60, "{seen}");
}
