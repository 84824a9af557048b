//! Every error under `/v1` is a problem (RFC 9457).

use std::io::Write;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Reply, Server};

/// The problem in a reply. The reply must have this status, and the fields that every problem has.
#[track_caller]
pub fn problem(reply: &Reply, status: u16) -> Value {
    let text = String::from_utf8_lossy(&reply.body);
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (status, Some("application/problem+json")),
        "{text}"
    );
    let problem: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!((&problem["type"], &problem["status"]), (&"about:blank".into(), &status.into()), "{problem}");
    assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
    problem
}

/// Like [`problem`]. The problem's detail must contain the text `says`.
#[track_caller]
pub fn problem_says(reply: &Reply, status: u16, says: &str) {
    let problem = problem(reply, status);
    assert!(problem["detail"].as_str().unwrap().contains(says), "{says:?} is not in {problem}");
}

#[test]
fn an_unknown_path_or_method_is_a_problem_under_v1_and_text_elsewhere() {
    let server = Server::start();
    for path in ["/v1", "/v1/", "/v1/nothing", "/v1/batch/1"] {
        problem(&server.get(path), 404);
    }
    let wrong = server.get("/v1/batch");
    let error = problem(&wrong, 405);
    assert_eq!((wrong.header("allow"), &error["accepts"]), (Some("POST"), &"POST".into()));
    assert_eq!(problem(&server.post("/v1/emulator"), 405)["accepts"], "GET, HEAD");
    let elsewhere = server.get("/v1nothing");
    assert_eq!(
        (elsewhere.status, elsewhere.header("content-type")),
        (404, Some("text/plain; charset=utf-8"))
    );
}

#[test]
fn requests_that_are_refused_before_routing_get_a_problem_too() {
    let server = Server::start();
    let reply = server.request_with("GET", "/v1/emulator", "origin: http://evil.example\r\n", b"");
    assert!(problem(&reply, 403)["detail"].as_str().unwrap().contains("--allow-origin"));
    let reply = server.request_with("POST", "/v1/batch", "idempotency-key: \r\n", b"{\"ops\":[]}");
    assert!(problem(&reply, 400)["detail"].as_str().unwrap().contains("Idempotency-Key"));
}

#[test]
fn the_error_for_an_unknown_emulator_lists_the_emulators() {
    let server = Server::start();
    let error = problem(&server.get("/v1/emulator?emulator=second"), 404);
    assert!(error["detail"].as_str().unwrap().ends_with("there are: demo"), "{error}");
    assert_eq!(server.get("/v1/emulator?emulator=d%65mo").status, 200);
    assert_eq!(
        problem(&server.get("/v1/emulator?emulator=demo&emulator=demo"), 400)["parameter"],
        "emulator"
    );
}

#[test]
fn the_error_for_an_invalid_body_names_the_place() {
    let server = Server::start();
    let error = |body: &str| problem(&server.request("POST", "/v1/batch", body.as_bytes()), 400);
    for (body, says) in [
        ("", "ops"),
        ("{", "EOF"),
        ("[]", "is a list; accepted is an object"),
        ("{\"ops\":[]} x", "trailing"),
        ("{\"ops\":[],\"more\":1}", "more"),
    ] {
        let error = error(body);
        assert!(error["detail"].as_str().unwrap().contains(says), "{body}: {error}");
    }
    assert_eq!(error("{\"ops\":[{},1]}")["parameter"], "ops[1]");
    assert_eq!(error("{\"ops\":[],\"encoding\":\"rot13\"}")["parameter"], "encoding");
}

#[test]
fn a_body_and_the_items_in_its_lists_must_be_objects() {
    let server = Server::paused();
    for (path, body) in [
        ("/v1/tap", r#"[["A"], 3]"#),
        ("/v1/batch", r#"[[], "hex"]"#),
        ("/v1/wait", r#"["0", 2]"#),
        ("/v1/hold", "1"),
        ("/v1/hold", "null"),
    ] {
        let error = problem(&server.request("POST", path, body.as_bytes()), 400);
        assert!(error["accepts"].as_str().unwrap().starts_with("an object"), "{path}: {error}");
    }
    let error = |path: &str, body: &str| problem(&server.request("POST", path, body.as_bytes()), 400);
    let press = error("/v1/input", r#"{"presses": [{"at": 0, "keys": ["A"]}, [0, ["A"], 3]]}"#);
    assert_eq!(
        (&press["parameter"], &press["accepts"]),
        (&"presses[1]".into(), &"an object with at, keys, frames".into())
    );
    for (path, body, place) in [
        ("/v1/batch", r#"{"ops": [{"op": "read8", "address": 1, "address": 2}]}"#, "ops[0]"),
        ("/v1/batch", r#"{"ops": [], "ops": []}"#, ""),
    ] {
        let error = error(path, body);
        assert!(error["detail"].as_str().unwrap().contains("twice"), "{error}");
        assert_eq!(error["parameter"].as_str().unwrap_or_default(), place, "{error}");
    }
}

#[test]
fn the_error_for_a_wrong_value_names_the_parameter_and_what_is_accepted() {
    let server = Server::paused();
    for (target, parameter, accepts) in [
        ("/v1/memory/score?length=-1", "length", "from 0 to 16777216"),
        ("/v1/memory/score?type=u64", "type", "i16"),
        ("/v1/memory/score?length=1&encoding=x", "encoding", "hex"),
        ("/v1/snapshots?limit=-1", "limit", "a whole number"),
        ("/v1/state?flags=all", "flags", "from 0 to 255"),
        ("/v1/watch?watch=score&buffer=-1", "buffer", "a whole number"),
        ("/v1/watch?watch=score&events=yes", "events", "true or false"),
        ("/v1/snapshots/diff?from=a&join=-1", "join", "a whole number"),
        ("/v1/snapshots/diff?from=a&from=b", "from", "once"),
        ("/v1/screen?format=png&format=rgb", "format", "once"),
        ("/v1/emulators?x=1", "x", "emulator"),
        ("/v1/ws?x=1", "x", "emulator"),
        ("/v1/memory/score?lenght=1", "lenght", "length"),
    ] {
        let error = problem(&server.get(target), 400);
        assert_eq!(error["parameter"], parameter, "{target}: {error}");
        assert!(error["accepts"].as_str().unwrap().contains(accepts), "{target}: {error}");
    }
    let error = problem(&server.get("/v1/snapshots/diff"), 400);
    assert_eq!(
        (&error["parameter"], &error["detail"]),
        (&"from".into(), &"from is missing; accepted is a text".into())
    );
    let error = problem(&server.request("DELETE", "/v1/input/abc", b""), 400);
    assert_eq!(error["parameter"], "id");
    for path in ["/v1/batch?emulatro=demo", "/v1/pause?x=1", "/v1/wait?timeout=1"] {
        let error = problem(&server.request("POST", path, br#"{"ops": [], "until": "1"}"#), 400);
        assert!(error["accepts"].as_str().unwrap().contains("emulator"), "{path}: {error}");
    }
    for (path, body, parameter, accepts) in [
        ("/v1/tap", r#"{"keys": ["A"], "frames": "3"}"#, "frames", "from 1 to 4294967295"),
        ("/v1/tap", r#"{"keys": ["X"]}"#, "keys", "a list of the names"),
        ("/v1/batch", r#"{"ops": {}}"#, "ops", "a list"),
        ("/v1/batch", r#"{"ops": [{"op": "read8", "address": -1}]}"#, "ops[0].address", "0 to 4294967295"),
        (
            "/v1/batch",
            r#"{"ops": [{"op": "tap", "keys": ["A"], "frames": -1}]}"#,
            "ops[0].frames",
            "a whole number",
        ),
        ("/v1/speed", r#"{"speed": 0}"#, "speed", "0.01"),
        ("/v1/wait", r#"{"until": 1}"#, "until", "a text"),
        ("/v1/hold", r#"{"keys": ["A"], "frames": 2}"#, "frames", "keys"),
    ] {
        let error = problem(&server.request("POST", path, body.as_bytes()), 400);
        assert_eq!(error["parameter"], parameter, "{body}: {error}");
        assert!(error["accepts"].as_str().unwrap().contains(accepts), "{body}: {error}");
        assert!(!error["detail"].as_str().unwrap().contains("expected"), "{error}");
    }
    let state = server.get("/v1/emulator");
    assert_eq!(state.status, 200);
}

#[test]
fn errors_state_exactly_which_range_is_accepted() {
    let server = Server::start();
    for (path, body, says) in [
        ("/v1/advance", r#"{"frames": -1}"#, "frames is -1; accepted is a whole number from 1 to 3600"),
        ("/v1/advance", r#"{"frames": 3601}"#, "frames is 3601; accepted is a whole number from 1 to 3600"),
        (
            "/v1/advance",
            r#"{"frames": "ten"}"#,
            "frames is \"ten\"; accepted is a whole number from 1 to 3600",
        ),
        (
            "/v1/lockstep",
            r#"{"timeout": 60001}"#,
            "timeout is 60001; accepted is a whole number from 0 to 60000",
        ),
        (
            "/v1/tap",
            r#"{"keys": "A", "frames": 0}"#,
            "frames is 0; accepted is a whole number from 1 to 4294967295",
        ),
        (
            "/v1/input?timeout=-1",
            r#"{"sequence": "A"}"#,
            "timeout is -1; accepted is a whole number from 0 to 3600000",
        ),
        (
            "/v1/input?timeout=x",
            r#"{"sequence": "A"}"#,
            "timeout is \"x\"; accepted is a whole number from 0 to 3600000",
        ),
        (
            "/v1/wait",
            r#"{"until": "1", "frames": -1}"#,
            "frames is -1; accepted is a whole number from 1 to 216000",
        ),
        (
            "/v1/input",
            r#"{"presses": [{"at": 0, "keys": 1}, {"at": 0, "keys": 1, "frames": []}]}"#,
            "presses[1].frames is a list; accepted is a whole number from 1 to 4294967295",
        ),
        (
            "/v1/batch",
            r#"{"ops": [{"op": "advance", "frames": -1}]}"#,
            "ops[0].frames is -1; accepted is a whole number from 1 to 3600",
        ),
        (
            "/v1/batch",
            r#"{"ops": [{"op": "tap", "keys": "A", "frames": -1}]}"#,
            "ops[0].frames is -1; accepted is a whole number from 1 to 4294967295",
        ),
        ("/v1/lockstep", "", "timeout is missing; accepted is a whole number from 0 to 60000"),
        ("/v1/wait", "{}", "until is missing; accepted is a text"),
        ("/v1/tap", "{}", "keys is missing; accepted is a list of the names A, B"),
        ("/v1/speed", "{}", "speed is missing; accepted is a number from 0.01 to 1000, or \"unlimited\""),
        ("/v1/batch", "{}", "ops is missing; accepted is a list"),
        (
            "/v1/input",
            r#"{"presses": [{"at": 0, "keys": 1}, {"keys": 1}]}"#,
            "presses[1].at is missing; accepted is a whole number from 0 to 4294967295",
        ),
    ] {
        let error = problem(&server.request("POST", path, body.as_bytes()), 400);
        assert!(error["detail"].as_str().unwrap().starts_with(says), "{path} {body}: {error}");
        assert!(error["parameter"].is_string() && error["accepts"].is_string(), "{error}");
    }
}

/// The server reports an error in a head before it looks for a route.
#[test]
fn heads_that_are_too_large_or_too_slow_are_problems_too() {
    // Even a busy machine sends a large head within this time.
    let server = Server::with(|app| app.limits.head = Duration::from_secs(2));
    let long = "a".repeat(70_000);
    let heads = [
        (413, format!("GET /v1/state?x={long} HTTP/1.1\r\nhost: localhost\r\n\r\n")),
        (431, format!("GET /v1/state HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n")),
        (408, "POST /v1/batch HTTP/1.1\r\nhost".to_owned()),
    ];
    for (status, head) in heads {
        let mut stream = server.connect();
        stream.write_all(head.as_bytes()).unwrap();
        let error = problem(&Reply::read(&mut stream), status);
        assert!(!error["detail"].as_str().unwrap().contains("mgbaendpoint"), "{error}");
    }
    let mut stream = server.connect();
    stream.write_all(format!("GET /core/step?x={long} HTTP/1.1\r\n").as_bytes()).unwrap();
    let reply = Reply::read(&mut stream);
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
}
