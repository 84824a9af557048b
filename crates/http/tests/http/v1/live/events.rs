//! GET /v1/events, and events together with watches.

use serde_json::json;

use super::client::{Events, Rpc, watch};
use super::script::{ScriptPort, connected, ready};
use crate::support::{Server, repository, wait_for};
use crate::v1::problems::problem_says;
use crate::v1::{json_of, posted};

#[test]
fn resets_are_also_reported_to_readers_that_resume_later() {
    let server = Server::start();
    let mut events = Events::open(&server, "/v1/events");
    server.post_ok("/coreadapter/reset", "");
    let reset = events.wait_for("reset");
    assert!(reset.data["frame"].is_u64(), "{reset:?}");
    drop(events);
    server.post_ok("/coreadapter/reset", "");
    let mut events = Events::resume(&server, "/v1/events", Some(&reset.id));
    events.wait_for("reset");
}

/// A rebuilt ROM has the same title as before, but another checksum.
#[test]
fn a_rebuilt_rom_and_a_loaded_state_are_reported() {
    let server = Server::start();
    let mut events = Events::open(&server, "/v1/events");
    let path = server.rebuilt_demo();
    posted(&server, "/v1/load", &json!({"path": path}));
    let game = events.wait_for("game");
    let checksum = json_of(&server.get("/v1/emulator"), 200)["checksum"].clone();
    assert_eq!((&game.data["title"], &game.data["checksum"]), (&"FRAMEWIRE".into(), &checksum));
    let state = server.get("/v1/state").body;
    assert_eq!(server.request("PUT", "/v1/state", &state).status, 200);
    let loaded = events.wait_for("state");
    assert!(loaded.data["frame"].is_u64(), "{loaded:?}");
}

#[test]
fn a_watch_reports_events_on_request() {
    let server = Server::start();
    let mut events = Events::open(&server, &format!("{}&events=true", watch(&["u8[0x02000100]"])));
    assert_eq!(events.next().unwrap().name, "values");
    server.post_ok("/core/write8?address=0x02000100&value=1", "");
    assert_eq!(events.next().unwrap().name, "change");
    server.post_ok("/coreadapter/reset", "");
    events.wait_for("reset");
}

#[test]
fn events_of_the_emulator_are_reported() {
    let server = Server::start();
    let mut events = Events::open(&server, "/v1/events");
    server.post_ok("/coreadapter/reset", "");
    posted(&server, "/v1/pause", &json!({}));
    events.wait_for("paused");
    posted(&server, "/v1/resume", &json!({}));
    events.wait_for("running");
    let played = posted(&server, "/v1/tap", &json!({"keys": ["A"]}));
    let over = events.wait_for("input");
    assert_eq!((&over.data["id"], &over.data["cancelled"]), (&played["id"], &false.into()));
}

/// When mGBA disconnects and connects again, the streams stay open, report both events, and continue.
#[test]
fn streams_continue_after_an_attached_mgba_disconnects_and_reconnects() {
    let port = ScriptPort::new();
    let server = port.server(|_| {});
    problem_says(&server.get(&watch(&["score"])), 502, "framewire doctor");
    let mut events = Events::open(&server, "/v1/events");
    let core = port.core();
    events.wait_for("connected");
    ready(&server);
    let game_frame = "u32[frame]";
    let mut memory = Events::open(&server, &watch(&[game_frame]));
    let mut rpc = Rpc::open(&server);
    rpc.result("subscribe", json!({"watch": [game_frame], "events": true}));
    memory.wait_for("change");
    drop(core);
    let gone = events.wait_for("disconnected");
    assert!(gone.data["problem"].is_string(), "{gone:?}");
    let _core = port.core();
    events.wait_for("connected");
    let gap = loop {
        let change = memory.wait_for("change");
        if change.data["gap"] == true {
            break change;
        }
    };
    let next = memory.next().unwrap();
    let value = |event: &super::client::Event| event.data["changes"][game_frame].clone();
    assert_eq!(next.data["gap"], serde_json::Value::Null);
    assert_eq!(value(&next)["old"], value(&gap)["new"]);
    let names: Vec<String> = std::iter::from_fn(|| rpc.next())
        .map(|event| event.name)
        .take_while(|name| name != "connected")
        .collect();
    assert!(names.iter().any(|name| name == "disconnected"), "{names:?}");
}

/// mGBA loads another game, and then the first game again.
#[test]
fn symbols_of_an_attached_mgba_work_only_while_their_game_runs() {
    let (_core, server) = connected();
    wait_for("the game", || server.get("/v1/emulator").text().contains("FRAMEWIRE"));
    let mut events = Events::open(&server, "/v1/events");
    json_of(&server.get("/v1/memory/score"), 200);
    let demo = std::fs::read(repository("rom/framewire-demo.gba")).unwrap();
    let mut other = demo.clone();
    other[0xA0..0xA9].copy_from_slice(b"ANOTHER\0\0");
    for (name, rom, title, status) in
        [("other.gba", other, "ANOTHER", 404), ("demo.gba", demo, "FRAMEWIRE", 200)]
    {
        let path = server.file(name);
        std::fs::write(&path, rom).unwrap();
        posted(&server, "/v1/load", &json!({"path": path}));
        assert_eq!(events.wait_for("game").data["title"], title);
        let reply = server.get("/v1/memory/score");
        assert_eq!(reply.status, status, "{}", reply.text());
    }
}
