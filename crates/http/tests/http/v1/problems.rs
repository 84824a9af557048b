//! Whatever is wrong under `/v1` is told as a problem (RFC 9457).

use serde_json::Value;

use crate::support::{Reply, Server};

/// The problem in a reply of this status, with the fields that each has.
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

#[test]
fn an_unknown_path_or_method_is_a_problem_under_v1_and_text_elsewhere() {
    let server = Server::start();
    for path in ["/v1", "/v1/", "/v1/nothing", "/v1/batch/1"] {
        problem(&server.get(path), 404);
    }
    let wrong = server.get("/v1/batch");
    let told = problem(&wrong, 405);
    assert_eq!((wrong.header("allow"), &told["accepts"]), (Some("POST"), &"POST".into()));
    assert_eq!(problem(&server.post("/v1/emulator"), 405)["accepts"], "GET, HEAD");
    let elsewhere = server.get("/v1nothing");
    assert_eq!(
        (elsewhere.status, elsewhere.header("content-type")),
        (404, Some("text/plain; charset=utf-8"))
    );
}

#[test]
fn what_is_refused_before_any_route_is_a_problem_too() {
    let server = Server::start();
    let reply = server.request_with("GET", "/v1/emulator", "origin: http://evil.example\r\n", b"");
    assert!(problem(&reply, 403)["detail"].as_str().unwrap().contains("--allow-origin"));
    let reply = server.request_with("POST", "/v1/batch", "idempotency-key: \r\n", b"{\"ops\":[]}");
    assert!(problem(&reply, 400)["detail"].as_str().unwrap().contains("Idempotency-Key"));
}

#[test]
fn an_emulator_that_is_not_there_is_answered_with_those_that_are() {
    let server = Server::start();
    let told = problem(&server.get("/v1/emulator?emulator=second"), 404);
    assert!(told["detail"].as_str().unwrap().ends_with("there are: demo"), "{told}");
    assert_eq!(server.get("/v1/emulator?emulator=d%65mo").status, 200);
    assert_eq!(
        problem(&server.get("/v1/emulator?emulator=demo&emulator=demo"), 400)["parameter"],
        "emulator"
    );
}

#[test]
fn a_body_that_cannot_be_read_is_told_by_its_place() {
    let server = Server::start();
    let told = |body: &str| problem(&server.request("POST", "/v1/batch", body.as_bytes()), 400);
    for (body, says) in [
        ("", "ops"),
        ("{", "EOF"),
        ("[]", "invalid"),
        ("{\"ops\":[]} x", "trailing"),
        ("{\"ops\":[],\"more\":1}", "more"),
    ] {
        let told = told(body);
        assert!(told["detail"].as_str().unwrap().contains(says), "{body}: {told}");
    }
    assert_eq!(told("{\"ops\":[{},1]}")["parameter"], "ops[1]");
    assert_eq!(told("{\"ops\":[],\"encoding\":\"rot13\"}")["parameter"], "encoding");
}
