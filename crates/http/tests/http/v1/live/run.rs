//! POST /v1/run.

use std::time::Instant;

use framewire_emulator::Emulator;
use framewire_protocol::Op;
use serde_json::{Value, json};

use super::client::Rpc;
use super::script::connected;
use crate::support::{PATIENCE, Server, field, wait_for};
use crate::v1::problems::{problem, problem_says};
use crate::v1::{json_of, posted};

fn run(server: &Server, body: &Value) -> Value {
    posted(server, "/v1/run", body)
}

/// Runs the first frames of the game, in which it does not read keys yet.
fn begin(server: &Server) {
    let game = format!("u32[{:#x}] > 60", field("frame"));
    assert_eq!(run(server, &json!({"steps": [{"until": game}]}))["why"], "condition");
}

/// How many times the tests wait for a condition that holds for one frame.
fn tries() -> u64 {
    std::env::var("FRAMEWIRE_RUN_TRIES").map_or(25, |tries| tries.parse().expect("a number of tries"))
}

/// Repeatedly presses a key and then waits for a condition that holds in one of seven frames. The operations after the
/// run read the game's frame counter. If the run missed the frame, the counter would have another value, or the run
/// would end at its limit of frames.
fn finds_every_single_frame(server: &Server) {
    begin(server);
    let frame = format!("u32[{:#x}]", field("frame"));
    for number in 0..tries() {
        let wanted = number % 7;
        let done = run(
            server,
            &json!({
                "steps": [{"sequence": "B:1"}, {"until": format!("{frame} % 7 == {wanted}"), "frames": 6}],
                "then": [{"op": "read", "address": "frame"}, {"op": "current_frame"}],
                "values": {"frame": frame},
            }),
        );
        let seen = done["then"][0]["value"].as_u64().unwrap();
        assert_eq!((&done["why"], seen % 7), (&"condition".into(), wanted), "{done}");
        assert_eq!(done["values"]["frame"], seen, "{done}");
        assert_eq!(done["then"][1]["value"], done["frame"], "{done}");
        assert_eq!(done["steps"][1]["frame"], done["frame"], "{done}");
    }
}

#[test]
fn a_condition_that_holds_for_one_frame_is_never_missed() {
    let server = Server::start();
    finds_every_single_frame(&server);
    posted(&server, "/v1/speed", &json!({"speed": "unlimited"}));
    finds_every_single_frame(&server);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the core that runs the script is not the server's emulator")]
fn a_condition_that_holds_for_one_frame_is_never_missed_on_an_attached_mgba() {
    let (core, server) = connected();
    finds_every_single_frame(&server);
    let faster = core.submit(Op::SetSpeed { thousandths: 0 }.into(), Instant::now() + PATIENCE);
    faster.wait().unwrap().single().unwrap();
    finds_every_single_frame(&server);
}

/// Runs steps with conditions and keys, steps that time out, and a run with a stop condition.
fn runs_steps(server: &Server) {
    begin(server);
    let read = json!({"ops": [{"op": "read", "address": "presses[0]"}]});
    let before = posted(server, "/v1/batch", &read)["results"][0]["value"].as_u64().unwrap();
    let done = run(
        server,
        &json!({
            "ops": [{"op": "read", "address": "presses[0]"}],
            "steps": [
                {"sequence": "A:2 .:3"},
                {"hold": "Up", "until": ["false", "held == 64"], "frames": 20},
                {"until": "false", "frames": 3, "go_on": true},
                {"frames": 4},
                {"until": ["lives > 200", "1 / 0"], "frames": 5},
                {"frames": 100},
            ],
            "then": [{"op": "read", "address": "held"}],
            "values": ["presses[0]", "1 / 0"],
        }),
    );
    assert_eq!(done["ops"], json!([{"value": before}]), "{done}");
    assert_eq!((&done["why"], &done["then"]), (&"timeout".into(), &json!([{"value": 0}])), "{done}");
    assert_eq!(done["values"], json!({"presses[0]": before + 1, "1 / 0": null}), "{done}");
    let steps = done["steps"].as_array().unwrap();
    let why: Vec<&Value> = steps.iter().map(|step| &step["why"]).collect();
    assert_eq!(why, ["frames", "condition", "timeout", "frames", "timeout"], "{done}");
    assert_eq!(steps[1]["condition"], json!({"index": 1, "text": "held == 64"}), "{done}");
    let frames: Vec<u64> = steps.iter().map(|step| step["frames"].as_u64().unwrap()).collect();
    assert_eq!((frames[0], &frames[2..]), (5, &[3, 4, 5][..]), "{done}");
    assert_eq!(done["frames"], frames.iter().sum::<u64>(), "{done}");
    let stopped = run(server, &json!({"steps": [{"frames": 2}, {"frames": 500}], "stop": "frame >= 0"}));
    assert_eq!((&stopped["why"], &stopped["frames"]), (&"stop".into(), &0.into()), "{stopped}");
    assert_eq!(stopped["condition"]["text"], "frame >= 0", "{stopped}");
}

#[test]
fn steps_run_one_after_the_other() {
    runs_steps(&Server::start());
}

#[test]
fn steps_run_one_after_the_other_on_an_attached_mgba() {
    let (_core, server) = connected();
    runs_steps(&server);
}

/// Checks that a run which needs memory that does not exist is refused before its first operation and its first frame.
fn refuses_missing_memory(server: &Server) {
    json_of(&server.request("PUT", "/v1/memory/scratch", br#"{"value": 0}"#), 200);
    let ops = json!([{"op": "write", "address": "scratch", "value": 7}]);
    let steps = json!([{"frames": 1}]);
    let freeze = json!([{"op": "freeze", "address": 0x1000_0000, "value": 1}]);
    for (body, says) in [
        (
            json!({"ops": ops, "steps": [{"until": "u8[0x10000000] == 1"}]}),
            "steps[0].until[0]: address is 0x10000000",
        ),
        (
            json!({"ops": ops, "steps": steps, "stop": "u8[0x10000000] == 1"}),
            "stop[0]: address is 0x10000000",
        ),
        (json!({"ops": ops, "steps": steps, "then": freeze}), "then[0].address is 0x10000000"),
        (
            json!({"ops": ops, "steps": steps, "values": {"x": "u8[0x10000000]"}}),
            "values: expressions[0]: address is 0x10000000",
        ),
    ] {
        problem_says(&server.send("POST", "/v1/run", &body), 400, says);
        assert_eq!(json_of(&server.get("/v1/memory/scratch"), 200)["value"], 0, "{body}");
    }
}

#[test]
fn a_run_that_needs_missing_memory_changes_nothing() {
    refuses_missing_memory(&Server::start());
}

#[test]
fn a_run_that_needs_missing_memory_changes_nothing_on_an_attached_mgba() {
    let (_core, server) = connected();
    refuses_missing_memory(&server);
}

/// Checks that a run works while the frames are stopped, and that they are stopped again afterwards.
fn runs_exact_frames(server: &Server) {
    let mut last = None;
    for _ in 0..5 {
        let body = json!({"steps": [{"hold": ["Right"], "frames": 7}], "then": [{"op": "read", "address": "frame"}]});
        let done = run(server, &body);
        let frame = done["then"][0]["value"].as_u64().unwrap();
        if let Some(last) = last {
            assert_eq!(frame - last, 7, "{done}");
        }
        last = Some(frame);
    }
}

#[test]
fn a_paused_core_runs_exactly_the_frames_of_a_run() {
    let server = Server::start();
    begin(&server);
    posted(&server, "/v1/pause", &json!({}));
    runs_exact_frames(&server);
    let resume_and_pause =
        json!({"ops": [{"op": "resume"}], "steps": [{"frames": 3}], "then": [{"op": "pause"}]});
    let frame = run(&server, &resume_and_pause)["frame"].clone();
    assert_eq!(json_of(&server.get("/v1/memory/frame"), 200)["frame"], frame);
}

#[test]
fn lockstep_runs_exactly_the_frames_of_a_run() {
    let (_core, server) = connected();
    begin(&server);
    posted(&server, "/v1/lockstep", &json!({"timeout": 20_000}));
    runs_exact_frames(&server);
}

#[test]
fn a_run_is_also_an_operation_in_batches_and_a_method() {
    let server = Server::start();
    let batch = json!({"ops": [
        {"op": "run", "steps": [{"frames": 2}]},
        {"op": "current_frame"},
        {"op": "run", "steps": [{"frames": 3}]},
        {"op": "current_frame"},
        {"op": "evaluate", "values": {"pointed": "u8[u32[0x03007f00] * 0 + 0x02000100]", "lost": "u8[u32[0x02000100] - 1]"}},
    ]});
    let done = posted(&server, "/v1/batch", &batch);
    let value = |index: usize| &done["results"][index]["value"];
    assert_eq!(value(3).as_u64().unwrap() - value(1).as_u64().unwrap(), 3, "{done}");
    assert_eq!(value(4), &json!({"pointed": 0, "lost": null}), "{done}");
    let done = Rpc::open(&server).result("run", json!({"steps": [{"frames": 2}], "values": ["score"]}));
    assert_eq!((&done["frames"], &done["why"]), (&2.into(), &"frames".into()), "{done}");
}

#[test]
fn the_keys_of_a_client_that_disconnects_are_released() {
    let server = Server::start();
    let mut stream = server.connect();
    let body = json!({"steps": [{"hold": ["L"], "frames": 200_000}]}).to_string();
    let head = format!("POST /v1/run HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
    std::io::Write::write_all(
        &mut stream,
        format!("{head}content-type: application/json\r\n\r\n{body}").as_bytes(),
    )
    .unwrap();
    let held = || posted(&server, "/v1/batch", &json!({"ops": [{"op": "get_keys"}]}));
    wait_for("the key", || held()["results"][0]["value"] == 0x200);
    drop(stream);
    wait_for("the release of the key", || held()["results"][0]["value"] == 0);
}

#[test]
fn the_error_for_an_invalid_run_names_the_place() {
    let server = Server::start();
    for (body, place) in [
        (json!({}), "steps"),
        (json!({"steps": []}), "steps"),
        (json!({"steps": [{}]}), "steps[0].frames"),
        (json!({"steps": [{"frames": 0}]}), "steps[0].frames"),
        (json!({"steps": [{"frames": 1, "until": "scroe > 1"}]}), "steps[0].until"),
        (json!({"steps": [{"frames": 1, "until": ["true", "1 +"]}]}), "steps[0].until[1]"),
        (json!({"steps": [{"hold": ["A"]}]}), "steps[0].frames"),
        (json!({"steps": [{"hold": ["A"], "sequence": "B", "frames": 1}]}), "steps[0]"),
        (json!({"steps": [{"sequence": "X:2"}]}), "steps[0].sequence"),
        (json!({"steps": [{"frames": 216_000}, {"frames": 1}]}), "the steps"),
        (json!({"steps": [{"frames": 1}], "stop": 3}), "stop"),
        (json!({"steps": [{"frames": 1}], "ops": [{"op": "nothing"}]}), "ops[0]"),
        (json!({"steps": [{"frames": 1}], "then": [{"op": "echo"}]}), "then[0]"),
        (
            json!({"steps": [{"frames": 1}], "then": [{"op": "read8", "address": 0x1000_0000}]}),
            "then[0].address",
        ),
        (json!({"steps": [{"frames": 1}], "values": {"x": "y z"}}), "values.x"),
        (json!({"steps": [{"frames": 1, "until": "u8[0x10000000] > 1"}]}), "steps[0].until[0]"),
    ] {
        let error = problem(&server.send("POST", "/v1/run", &body), 400);
        let detail = error["detail"].as_str().unwrap();
        assert!(detail.contains(place), "{body}: {detail}");
    }
    let busy = json!({"ops": [{"op": "tap", "keys": ["A"], "frames": 600}], "steps": [{"hold": ["A"], "frames": 2}]});
    problem_says(&server.send("POST", "/v1/run", &busy), 409, "plays A");
}
