//! The routes that control which game runs, and when its frames run.

use serde_json::{Value, json};

use super::live::script::connected;
use super::problems::{problem, problem_says};
use super::{ok, posted};
use crate::support::{Server, repository, wait_for};

fn state(server: &Server) -> Value {
    ok(&server.get("/v1/emulator"))
}

#[test]
fn frames_can_be_paused_resumed_and_counted() {
    let server = Server::start();
    let paused = posted(&server, "/v1/pause", &json!({}))["frame"].as_u64().unwrap();
    wait_for("the pause", || state(&server)["run"] == "paused");
    assert_eq!(posted(&server, "/v1/advance", &json!({}))["frame"], paused + 1);
    assert_eq!(posted(&server, "/v1/advance", &json!({"frames": 600}))["frame"], paused + 601);
    posted(&server, "/v1/speed", &json!({"speed": "unlimited"}));
    posted(&server, "/v1/resume", &json!({}));
    wait_for("many frames", || state(&server)["frame"].as_u64().unwrap() > paused + 1200);
    posted(&server, "/v1/speed", &json!({"speed": 0.5}));
    wait_for("the speed", || state(&server)["speed"] == 0.5);
    assert!(posted(&server, "/v1/reset", &json!({}))["frame"].as_u64().unwrap() < 10);
}

#[test]
fn lockstep_runs_only_requested_frames_and_ends_by_itself() {
    let server = Server::start();
    // Longer than a busy machine needs between two of these requests.
    posted(&server, "/v1/lockstep", &json!({"timeout": 4000}));
    wait_for("lockstep", || state(&server)["lockstep"] == true);
    let frame = posted(&server, "/v1/advance", &json!({"frames": 2}))["frame"].as_u64().unwrap();
    assert_eq!(posted(&server, "/v1/advance", &json!({}))["frame"], frame + 1);
    wait_for("the end of lockstep", || state(&server)["lockstep"] == false);
    posted(&server, "/v1/lockstep", &json!({"timeout": 60_000}));
    posted(&server, "/v1/lockstep", &json!({"timeout": 0}));
    wait_for("the end of lockstep", || state(&server)["lockstep"] == false);
}

#[test]
fn another_game_is_loaded_and_an_invalid_one_is_refused() {
    let server = Server::start();
    std::fs::copy(repository("rom/framewire-demo.gba"), server.folder.path().join("other.gba")).unwrap();
    posted(&server, "/v1/load", &json!({"path": server.file("other.gba")}));
    std::fs::write(server.folder.path().join("none.gba"), "nothing").unwrap();
    for name in ["none.gba", "missing.gba"] {
        let body = json!({"path": server.file(name)});
        problem_says(&server.send("POST", "/v1/load", &body), 422, name);
    }
}

#[test]
fn the_error_says_why_an_attached_mgba_does_not_load_a_game() {
    let (_core, server) = connected();
    let text = server.folder.path().join("none.gba").display().to_string();
    std::fs::write(&text, "nothing").unwrap();
    for (path, says) in [
        ("/nowhere/at/all.gba", "No such file or directory"),
        (&text, "it is not a ROM of the running console, the Game Boy Advance"),
    ] {
        let body = json!({"path": path});
        let error = problem(&server.send("POST", "/v1/load", &body), 422);
        let detail = error["detail"].as_str().unwrap();
        assert!(detail.contains(path) && detail.contains(says), "{error}");
        assert!(detail.ends_with("the current game continues"), "{error}");
        for route in ["/core/loadfile", "/mgba-http/extension/loadfile"] {
            assert_eq!(server.post(&format!("{route}?path={path}")).text(), "false", "{route}");
        }
    }
}

#[test]
fn values_out_of_range_are_refused() {
    let server = Server::start();
    for (path, body, parameter) in [
        ("advance", json!({"frames": 0}), Some("frames")),
        ("advance", json!({"frames": 3601}), Some("frames")),
        ("advance", json!({"frames": "many"}), Some("frames")),
        ("lockstep", json!({}), Some("timeout")),
        ("speed", json!({"speed": 0}), Some("speed")),
        ("speed", json!({"speed": "fast"}), Some("speed")),
        ("speed", json!({"speed": 1e9}), Some("speed")),
        ("load", json!({"path": ""}), Some("path")),
        ("pause?emulator=x", json!({}), None),
    ] {
        let status = if path.contains('?') { 404 } else { 400 };
        let reply = server.send("POST", &format!("/v1/{path}"), &body);
        let error = problem(&reply, status);
        assert_eq!(error["parameter"].as_str(), parameter, "{path} {body}: {error}");
    }
    let reply = server.request("POST", "/v1/lockstep", b"{\"timeout\": 60001}");
    assert!(problem(&reply, 400)["detail"].as_str().unwrap().contains("60000"));
}

#[test]
fn the_speed_is_reported_exactly_as_it_was_set() {
    let server = Server::start();
    for speed in ["1", "2.5", "0.01", "1000", "\"unlimited\"", "1"] {
        let body = format!("{{\"speed\":{speed}}}");
        assert_eq!(server.request("POST", "/v1/speed", body.as_bytes()).status, 200, "{speed}");
        let state = server.text("/v1/emulator");
        assert!(state.contains(&format!("\"speed\":{speed},")), "{speed}: {state}");
    }
}
