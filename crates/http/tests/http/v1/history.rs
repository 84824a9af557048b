//! The history of an emulator over HTTP. A *line* is a sequence of frames without a gap; going back begins a new line.

use std::time::{Duration, Instant};

use serde_json::json;

use super::input::advance;
use super::live::script::connected;
use super::problems::{problem, problem_says};
use super::{measure_alone, ok, posted};
use crate::support::{Server, wait_for};

#[test]
fn a_game_goes_back_to_a_frame_and_the_old_line_is_kept() {
    let server = Server::paused();
    advance(&server, 100);
    let memory = || server.get("/v1/memory/0x03000000?length=32768").body;
    let then = memory();
    posted(&server, "/v1/input", &json!({"sequence": "Right:40"}));
    let end = advance(&server, 150);
    assert_ne!(memory(), then);
    let back = posted(&server, "/v1/rewind", &json!({"frame": 100}));
    assert_eq!(back, json!({"frame": 100, "exact": true}));
    assert_eq!(memory(), then);
    advance(&server, 20);
    let timeline = ok(&server.get("/v1/timeline"));
    let lines = timeline["lines"].as_array().unwrap();
    assert_eq!((&timeline["frame"], &timeline["line"]), (&json!(120), &json!(2)));
    assert_eq!(lines[0]["states"], json!([0, 30, 60, 90, 120, 150, 180, 210, 240, end]));
    // At frame 0, the core has no picture of this game yet.
    assert_eq!(lines[0]["pictures"], json!([30, 90, 150, 210]));
    let keys = [
        json!({"frame": 0, "keys": []}),
        json!({"frame": 100, "keys": ["Right"]}),
        json!({"frame": 140, "keys": []}),
    ];
    assert_eq!(lines[0]["keys"], json!(keys));
    assert_eq!(lines[0]["changes"], json!([]));
    assert_eq!(lines[1]["began"], "rewind");
    assert_eq!(lines[1]["follows"], json!({"line": 1, "frame": 100}));
    let late = ok(&server.get("/v1/timeline?first=200"));
    assert_eq!(late["lines"][0]["states"], json!([210, 240, end]));
    let picture = server.get("/v1/timeline/picture?line=1&frame=210");
    assert_eq!(picture.header("content-type"), Some("image/png"));
    // Clients must not cache the picture: after a restart of the server, another line can have this number.
    assert_eq!(picture.header("cache-control"), Some("no-store"));
    problem_says(&server.get("/v1/timeline/picture?line=1&frame=241"), 404, "frame 241 of line 1");
    // The frames of the earlier line are still kept.
    let back = posted(&server, "/v1/rewind", &json!({"frame": end, "line": 1}));
    assert_eq!(back["frame"], end);
    let error = problem(&server.send("POST", "/v1/rewind", &json!({"frame": 9000})), 404);
    assert_eq!(error["detail"], format!("frame 9000 of line 1 is not kept; use a frame from 0 to {end}"));
}

#[test]
fn the_openapi_document_allows_line_0_of_a_rewind() {
    let server = Server::paused();
    let end = advance(&server, 60);
    let back = posted(&server, "/v1/rewind", &json!({"frame": end, "line": 0}));
    assert_eq!(back["frame"], end);
    let document = ok(&server.get("/openapi.json"));
    assert_eq!(document["components"]["schemas"]["RewindTo"]["properties"]["line"]["minimum"], 0);
}

#[test]
fn going_back_twenty_seconds_and_getting_the_picture_takes_less_than_50_ms() {
    measure_alone(median_of_going_back, |median| median.as_millis() < 50);
}

fn median_of_going_back() -> Duration {
    let server = Server::paused();
    advance(&server, 1300);
    let mut times = Vec::new();
    for number in 0..20 {
        let now = 1300 - number;
        posted(&server, "/v1/rewind", &json!({"frame": now, "line": 1}));
        let begun = Instant::now();
        posted(&server, "/v1/rewind", &json!({"frame": now - 1200, "line": 1}));
        assert_eq!(server.get("/v1/screen?format=rgb").body.len(), 240 * 160 * 3);
        times.push(begun.elapsed());
    }
    times.sort();
    println!("median {:?}, most {:?}", times[10], times[19]);
    times[10]
}

#[test]
fn going_back_is_refused_during_key_timelines_and_recordings() {
    let server = Server::paused();
    advance(&server, 40);
    posted(&server, "/v1/input", &json!({"sequence": "A:60"}));
    problem_says(&server.send("POST", "/v1/rewind", &json!({"frame": 20})), 409, "plays keys; cancel it");
    ok(&server.request("DELETE", "/v1/input", b""));
    assert_eq!(server.send("POST", "/v1/recordings", &json!({"name": "run"})).status, 201);
    problem_says(&server.send("POST", "/v1/rewind", &json!({"frame": 20})), 409, "recorded or replayed");
    ok(&server.request("DELETE", "/v1/recording", b""));
    posted(&server, "/v1/rewind", &json!({"frame": 20}));
}

#[test]
fn snapshots_and_recordings_are_listed_on_the_line_on_which_they_began() {
    let server = Server::paused();
    advance(&server, 70);
    assert_eq!(server.send("POST", "/v1/snapshots", &json!({"name": "here"})).status, 201);
    assert_eq!(server.send("POST", "/v1/recordings", &json!({"name": "run"})).status, 201);
    advance(&server, 30);
    ok(&server.request("DELETE", "/v1/recording", b""));
    let timeline = ok(&server.get("/v1/timeline"));
    assert_eq!(timeline["lines"][0]["snapshots"], json!([{"name": "here", "frame": 70}]));
    assert_eq!(timeline["lines"][0]["recordings"], json!([{"name": "run", "frame": 70}]));
    let timeline = ok(&server.get("/v1/timeline?marks=false"));
    assert_eq!(timeline["lines"][0]["snapshots"], json!([]));
}

#[test]
fn a_snapshot_is_on_its_line_even_if_the_state_of_its_frame_is_kept_later() {
    let server = Server::paused();
    advance(&server, 60);
    assert_eq!(server.send("POST", "/v1/snapshots", &json!({"name": "here"})).status, 201);
    // The core keeps the state of this frame only when the game continues. After this pause, the state is later than
    // the snapshot by more than one second, the tolerance in the comparison of their times.
    std::thread::sleep(Duration::from_millis(2100));
    advance(&server, 40);
    let line = &ok(&server.get("/v1/timeline"))["lines"][0];
    assert!(line["states"].as_array().unwrap().contains(&json!(60)), "{line}");
    assert_eq!(line["snapshots"], json!([{"name": "here", "frame": 60}]));
}

#[test]
fn changes_of_memory_are_listed_on_the_line() {
    let server = Server::paused();
    for _ in 0..3 {
        let frame = advance(&server, 100);
        ok(&server.request("PUT", "/v1/memory/0x02000044", br#"{"value": 7, "type": "u32"}"#));
        assert_eq!(frame % 100, 0);
    }
    advance(&server, 10);
    let changes =
        |query: &str| ok(&server.get(&format!("/v1/timeline{query}")))["lines"][0]["changes"].clone();
    assert_eq!(changes(""), json!([100, 200, 300]));
    assert_eq!(changes("?first=200"), json!([200, 300]));
}

#[test]
fn an_attached_emulator_goes_back_to_a_frame_whose_state_is_kept() {
    let (_core, server) = connected();
    let states =
        || ok(&server.get("/v1/timeline"))["lines"][0]["states"].as_array().cloned().unwrap_or_default();
    wait_for("states", || states().len() >= 3);
    posted(&server, "/v1/lockstep", &json!({"timeout": 60_000}));
    let kept = states()[1].as_u64().unwrap();
    let back = posted(&server, "/v1/rewind", &json!({"frame": kept + 1}));
    assert_eq!(back, json!({"frame": kept, "exact": false}));
    let back = posted(&server, "/v1/rewind", &json!({"frame": kept}));
    assert_eq!(back, json!({"frame": kept, "exact": true}));
    assert_eq!(ok(&server.get("/v1/timeline"))["lines"][0]["pictures"][1], kept);
    let picture = server.get(&format!("/v1/timeline/picture?line=1&frame={kept}"));
    assert_eq!(picture.header("content-type"), Some("image/png"));
    assert_eq!(server.send("POST", "/v1/recordings", &json!({"name": "run"})).status, 201);
    problem_says(&server.send("POST", "/v1/rewind", &json!({"frame": kept})), 409, "recorded or replayed");
}
