//! Key presses in exact frames. The demo game logs the keys that it saw in each frame, and the tests compare the
//! replies with this log.

use serde_json::{Value, json};

use super::problems::{problem, problem_says};
use super::{ok, posted};
use crate::support::Server;

pub fn advance(server: &Server, frames: u32) -> u64 {
    posted(server, "/v1/advance", &json!({"frames": frames}))["frame"].as_u64().unwrap()
}

/// A server with a game that has begun to read keys and is paused.
fn game_that_reads_keys() -> Server {
    let server = Server::paused();
    advance(&server, 60);
    server
}

/// The keys that the game saw in each of the frames `first` to `last` of the frame counter, as masks.
fn seen(server: &Server, first: u64, last: u64) -> Vec<u64> {
    let body = json!({"ops": [{"op": "current_frame"}, {"op": "read", "address": "frame"}]});
    let now = posted(server, "/v1/batch", &body);
    let now = |index: usize| now["results"][index]["value"].as_u64().unwrap();
    let before_game = now(0) - now(1);
    let addresses: Vec<String> =
        (first..=last).map(|frame| format!("key_log[{}]", (frame - before_game) % 2048)).collect();
    let body = json!({"ops": [{"op": "read_many", "addresses": addresses}]});
    let values = posted(server, "/v1/batch", &body)["results"][0]["value"].clone();
    serde_json::from_value(values).unwrap()
}

#[test]
fn the_game_sees_a_sequence_in_the_frames_that_the_reply_names() {
    let server = game_that_reads_keys();
    let played = posted(&server, "/v1/input", &json!({"sequence": "A:2 .:10 Up+B:30 R"}));
    let first = played["frame"].as_u64().unwrap() + 1;
    assert_eq!(played["first"], first);
    let press =
        |keys: Value, from: u64, to: u64| json!({"keys": keys, "first": first + from, "last": first + to});
    let presses =
        json!([press(json!(["A"]), 0, 1), press(json!(["B", "Up"]), 12, 41), press(json!(["R"]), 42, 42)]);
    assert_eq!((&played["presses"], &played["last"]), (&presses, &(first + 42).into()));
    let end = advance(&server, 50);
    let mut expected = vec![0; 51];
    expected[1..3].fill(1);
    expected[13..43].fill(0x42);
    expected[43] = 0x100;
    assert_eq!(seen(&server, first - 1, end), expected);
}

#[test]
fn the_game_sees_a_tap_after_an_advance_in_the_frames_that_the_reply_names() {
    let server = game_that_reads_keys();
    let body = json!({"ops": [
        {"op": "advance", "frames": 7},
        {"op": "tap", "keys": ["Start"], "frames": 3},
        {"op": "advance", "frames": 9},
        {"op": "screenshot"},
    ]});
    let batch = posted(&server, "/v1/batch", &body);
    let press = &batch["results"][1]["value"]["presses"][0];
    let (first, last) = (press["first"].as_u64().unwrap(), press["last"].as_u64().unwrap());
    assert_eq!(last, first + 2);
    assert_eq!(seen(&server, first - 1, last + 1), [0, 8, 8, 8, 0]);
    assert!(batch["results"][3]["value"].as_str().unwrap().starts_with("iVBORw0KGgo"), "a PNG");
}

#[test]
fn a_request_with_wait_is_answered_at_the_end_of_its_key_timeline() {
    let server = Server::start();
    let played = posted(&server, "/v1/tap?wait=true", &json!({"keys": ["L"], "frames": 5}));
    let last = played["last"].as_u64().unwrap();
    assert!(
        played["over"]["frame"].as_u64().unwrap() >= last && played["over"]["cancelled"] == false,
        "{played}"
    );
    assert!(posted(&server, "/v1/tap", &json!({"keys": ["L"]}))["over"].is_null());
}

#[test]
fn a_request_with_wait_gets_an_error_if_no_frames_run() {
    let server = Server::paused();
    let error =
        problem(&server.send("POST", "/v1/input?wait=true&timeout=50", &json!({"sequence": "A"})), 504);
    assert!(error["detail"].as_str().unwrap().contains("DELETE /v1/input/1"), "{error}");
    for timeout in ["-1", "3600001", "0.5", "x"] {
        let target = format!("/v1/tap?wait=true&timeout={timeout}");
        assert_eq!(
            problem(&server.send("POST", &target, &json!({"keys": ["B"]})), 400)["parameter"],
            "timeout"
        );
    }
}

#[test]
fn key_timelines_can_be_cancelled() {
    let server = game_that_reads_keys();
    let id = posted(&server, "/v1/input", &json!({"sequence": "A:100"}))["id"].as_u64().unwrap();
    problem_says(&server.send("POST", "/v1/tap", &json!({"keys": ["A"]})), 409, &id.to_string());
    let frame = advance(&server, 5);
    let cancelled = ok(&server.request("DELETE", &format!("/v1/input/{id}"), b""));
    assert_eq!(cancelled, json!({"frame": frame, "cancelled": true}));
    advance(&server, 2);
    assert_eq!(seen(&server, frame, frame + 2), [1, 0, 0]);
    problem(&server.request("DELETE", &format!("/v1/input/{id}"), b""), 404);
    problem(&server.request("DELETE", "/v1/input/0", b""), 400);
    problem(&server.request("DELETE", "/v1/input/x", b""), 400);
    posted(&server, "/v1/input", &json!({"sequence": "A:100"}));
    posted(&server, "/v1/tap", &json!({"keys": ["B"], "frames": 100}));
    let all = || ok(&server.request("DELETE", "/v1/input", b""))["cancelled"].clone();
    assert_eq!((all(), all()), (true.into(), false.into()));
}

#[test]
fn keys_are_held_until_they_are_released() {
    let server = game_that_reads_keys();
    let frame = posted(&server, "/v1/hold", &json!({"keys": ["Left", "B"]}))["frame"].as_u64().unwrap();
    advance(&server, 3);
    posted(&server, "/v1/release", &json!({"keys": ["B"]}));
    advance(&server, 1);
    posted(&server, "/v1/release", &json!({}));
    let end = advance(&server, 1);
    assert_eq!(seen(&server, frame, end), [0, 0x22, 0x22, 0x22, 0x20, 0]);
}

#[test]
fn a_tap_repeated_with_its_idempotency_key_is_performed_once() {
    let server = game_that_reads_keys();
    let tap = || {
        let body = json!({"keys": ["Select"], "frames": 2}).to_string();
        ok(&server.request_with("POST", "/v1/tap", "idempotency-key: tap-1\r\n", body.as_bytes()))
    };
    let first = tap();
    let end = advance(&server, 10);
    assert_eq!(tap(), first);
    advance(&server, 5);
    assert_eq!(seen(&server, end, end + 5), [0; 6]);
}

#[test]
fn an_idempotency_key_of_another_request_is_refused() {
    let server = game_that_reads_keys();
    let tap = |key: &str| {
        let body = json!({"keys": [key]}).to_string();
        server.request_with("POST", "/v1/tap", "idempotency-key: used\r\n", body.as_bytes())
    };
    ok(&tap("A"));
    problem_says(&tap("B"), 422, "Idempotency-Key");
    let body = json!({"ops": [{"op": "reset"}]}).to_string();
    problem(&server.request_with("POST", "/v1/batch", "idempotency-key: used\r\n", body.as_bytes()), 422);
}

#[test]
fn an_invalid_press_is_refused_and_nothing_is_pressed() {
    let server = game_that_reads_keys();
    for (path, body, parameter) in [
        ("tap", json!({}), Some("keys")),
        ("tap", json!({"keys": []}), Some("keys")),
        ("tap", json!({"keys": ["a"]}), Some("keys")),
        ("tap", json!({"keys": 1024}), Some("keys")),
        ("tap", json!({"keys": ["A"], "frames": 0}), Some("frames")),
        ("tap", json!({"keys": ["A"], "frames": -1}), Some("frames")),
        ("hold", json!({"keys": ["A"], "frames": 1}), Some("frames")),
        ("release", json!({"keys": "Z"}), Some("keys")),
        ("input", json!({}), None),
        ("input", json!({"sequence": "A:1 Q:2"}), Some("sequence")),
    ] {
        let error = problem(&server.send("POST", &format!("/v1/{path}"), &body), 400);
        assert_eq!(error["parameter"].as_str(), parameter, "{path} {body}: {error}");
    }
    let end = advance(&server, 3);
    assert_eq!(seen(&server, end - 2, end), [0; 3]);
}

#[test]
fn frames_without_keys_at_the_end_of_a_sequence_are_part_of_the_timeline() {
    let server = Server::start();
    let played = posted(&server, "/v1/input?wait=true", &json!({"sequence": "A:2 .:10"}));
    let frame = played["frame"].as_u64().unwrap();
    assert_eq!(played["over"], json!({"frame": frame + 12, "cancelled": false}), "{played}");
    assert_eq!(
        played["presses"],
        json!([{"keys": ["A"], "first": frame + 1, "last": frame + 2}]),
        "{played}"
    );
}

#[test]
fn a_wait_for_keys_at_a_slow_speed_lasts_as_long_as_their_frames() {
    let server = Server::with(|app| app.deadline = std::time::Duration::from_millis(500));
    posted(&server, "/v1/speed", &json!({"speed": 0.05}));
    // At 3 frames per second, the tap takes 2 s, which is longer than the deadline.
    let played = posted(&server, "/v1/tap?wait=true", &json!({"keys": ["A"], "frames": 6}));
    assert_eq!(played["over"]["cancelled"], false, "{played}");
}

#[test]
fn a_run_that_another_timeline_stops_later_is_not_performed_again_with_the_same_key() {
    let server = game_that_reads_keys();
    posted(&server, "/v1/input", &json!({"presses": [{"keys": ["B"], "at": 40}]}));
    let steps = json!([{"hold": ["A"], "frames": 5}, {"hold": ["B"], "frames": 3}]);
    let body = json!({"ops": [{"op": "run", "steps": steps}]}).to_string();
    let send = || server.request_with("POST", "/v1/batch", "idempotency-key: q\r\n", body.as_bytes());
    let first = ok(&send());
    assert!(first["results"][0]["error"]["detail"].as_str().unwrap().contains("timeline"), "{first}");
    assert_eq!(ok(&send())["frame"], first["frame"]);
    assert_eq!(advance(&server, 1), first["frame"].as_u64().unwrap() + 1);
}
