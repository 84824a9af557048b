//! POST /v1/script: Lua code that clients send.

use serde_json::{Value, json};

use super::problems::problem_says;
use super::{json_of, ok, posted};
use crate::support::{Server, field};

/// A server that allows scripts.
fn allowing() -> Server {
    Server::with(|app| app.access.scripts = true)
}

fn run(server: &Server, code: &str) -> Value {
    posted(server, "/v1/script", &json!({"code": code}))
}

#[test]
fn code_returns_values_and_output() {
    let server = allowing();
    let code = format!(
        "print('title', emu:getGameTitle()) console:warn('ä') emu:write8({0}, 7)
         return emu:read8({0}), 2.5, 'text', nil, {{1, 2, name = {{x = true}}}}, {{}}, '\\xff'",
        field("scratch")
    );
    let reply = run(&server, &code);
    assert_eq!(
        reply["values"],
        json!([7, 2.5, "text", null, {"1": 1, "2": 2, "name": {"x": true}}, [], {"hex": "ff"}])
    );
    assert_eq!(reply["output"], json!(["title\tFRAMEWIRE", "ä"]));
    assert!(reply["frame"].is_u64() && reply.get("error").is_none(), "{reply}");
    // Globals are kept between requests, but other scripts do not see them.
    run(&server, "count = (count or 0) + 1");
    assert_eq!(run(&server, "count = count + 1 return count, _G.count")["values"], json!([2, null]));
}

#[test]
fn an_error_is_returned_with_its_line_and_the_output_before_it() {
    let server = allowing();
    let reply = run(&server, "print('before')\nlocal x = nil\nreturn x.y");
    assert_eq!(reply["output"], json!(["before"]));
    let error = reply["error"].as_str().unwrap();
    assert!(error.starts_with("script:3: attempt to index"), "{error}");
    for (code, says) in [
        ("emu:runFrame()", "POST /v1/advance"),
        ("emu:reset()", "POST /v1/reset"),
        ("local t = {} t.t = t return t", "deeper than 8"),
        ("return ('x'):rep(300000)", "more than 262144 bytes"),
        ("while true do end", "stopped after 5000000 instructions"),
        ("while true do pcall(function() while true do end end) end", "stopped after 5000000 instructions"),
        ("coroutine.wrap(function() while true do end end)()", "stopped after 5000000 instructions"),
    ] {
        let reply = run(&server, code);
        let error = reply["error"].as_str().unwrap_or_default();
        assert!(error.contains(says), "{code}: {reply}");
    }
    let code = json!({"code": "return 1 +"});
    problem_says(&server.send("POST", "/v1/script", &code), 400, "script:1:");
    assert_eq!(run(&server, "return 'alive'")["values"], json!(["alive"]));
}

#[test]
fn code_repeated_with_its_idempotency_key_runs_once() {
    let server = allowing();
    let headers = "idempotency-key: script-1\r\n";
    let code = json!({"code": "n = (n or 0) + 1 error('n is ' .. n)"}).to_string();
    let ask = || ok(&server.request_with("POST", "/v1/script", headers, code.as_bytes()));
    assert_eq!(ask(), ask());
    assert_eq!(run(&server, "return n")["values"], json!([1]));
}

#[test]
fn no_code_runs_while_a_recording_is_made() {
    let server = allowing();
    json_of(&server.request("POST", "/v1/recordings", br#"{"name":"a"}"#), 201);
    let code = br#"{"code":"return 1"}"#;
    problem_says(&server.request("POST", "/v1/script", code), 503, "recordings do not hold scripts");
}
