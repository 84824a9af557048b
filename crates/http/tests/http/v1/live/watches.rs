//! GET /v1/watch and /v1/watches.

use std::thread;

use framewire_symbols::SymbolFiles;
use serde_json::{Value, json};

use super::client::{Events, wait_for_waiters, watch};
use super::script::connected;
use crate::support::{Server, field, wait_for};
use crate::v1::emulators::{served, write_map};
use crate::v1::problems::problem_says;
use crate::v1::{json_of, ok, posted};

/// Memory that only the tests write to.
const SCRATCH: &str = "u16[0x02000100]";

fn write(server: &Server, value: u16) {
    server.post_ok(&format!("/core/write16?address=0x02000100&value={value}"), "");
}

#[test]
fn a_change_is_reported_with_its_frame_and_the_old_and_new_values() {
    let server = Server::start();
    let bytes = "bytes[0x02000100, 3]";
    let mut events =
        Events::open(&server, &format!("{}&encoding=hex", watch(&[SCRATCH, "u16[0x02000100] > 5", bytes])));
    let values = events.next().unwrap();
    assert_eq!(values.name, "values");
    let expected = json!({SCRATCH: 0, "u16[0x02000100] > 5": false, bytes: "000000"});
    assert_eq!(values.data["values"], expected);
    write(&server, 3);
    let change = events.next().unwrap();
    assert_eq!(change.name, "change");
    let expected = json!({SCRATCH: {"old": 0, "new": 3}, bytes: {"old": "000000", "new": "030000"}});
    assert_eq!(change.data["changes"], expected);
    assert!(change.data["frame"].as_u64().unwrap() > values.data["frame"].as_u64().unwrap());
    assert!(change.data["tick"].as_u64().unwrap() > 0);
    write(&server, 0x1234);
    let change = events.next().unwrap();
    assert_eq!(change.data["changes"]["u16[0x02000100] > 5"], json!({"old": false, "new": true}));
    assert_eq!(change.data["changes"][bytes], json!({"old": "030000", "new": "341200"}));
}

#[test]
fn a_reader_that_returns_gets_what_it_missed() {
    let server = Server::start();
    let mut events = Events::open(&server, &watch(&[SCRATCH]));
    events.next().unwrap();
    write(&server, 1);
    let seen = events.next().unwrap();
    drop(events);
    for value in 2..5 {
        write(&server, value);
        // Wait, so that each write is in a different frame.
        wait_for("the change", || watched(&server)["values"][SCRATCH] == value);
    }
    let mut events = Events::resume(&server, &watch(&[SCRATCH]), Some(&seen.id));
    let changes: Vec<Value> =
        (0..3).map(|_| events.next().unwrap().data["changes"][SCRATCH].clone()).collect();
    let expected = [1, 2, 3].map(|old| json!({"old": old, "new": old + 1}));
    assert_eq!(changes, expected);
}

/// The number of readers of the server's only watch.
pub fn readers(server: &Server) -> u64 {
    watched(server)["readers"].as_u64().unwrap()
}

/// The server's only watch.
fn watched(server: &Server) -> Value {
    let list = json_of(&server.get("/v1/watches"), 200);
    let [watch] = list["watches"].as_array().unwrap().as_slice() else { panic!("{list}") };
    watch.clone()
}

#[test]
fn a_reader_that_returns_too_late_learns_how_much_it_missed_and_the_current_values() {
    let server = Server::start();
    let target = format!("{}&buffer=2", watch(&[SCRATCH]));
    let mut events = Events::open(&server, &target);
    let seen = events.next().unwrap();
    for value in 1..=5 {
        write(&server, value);
        events.wait_for("change");
    }
    let mut late = Events::resume(&server, &target, Some(&seen.id));
    let missed = late.next().unwrap();
    assert_eq!((missed.name.as_str(), &missed.data["missed"]), ("missed", &json!(3)));
    assert_eq!(missed.data["values"][SCRATCH], 3);
    assert_eq!(late.next().unwrap().data["changes"][SCRATCH], json!({"old": 3, "new": 4}));
    assert_eq!(watched(&server)["missed"], 3);
    // The id of an event of another watch.
    let mut stranger = Events::resume(&server, &target, Some("w1.5"));
    let missed = stranger.next().unwrap();
    assert_eq!((missed.name.as_str(), &missed.data["missed"]), ("missed", &Value::Null));
    assert_eq!(missed.data["values"][SCRATCH], 5);
}

#[test]
fn a_created_watch_is_read_by_its_id_until_it_is_deleted() {
    let server = Server::start();
    let made = json_of(&server.send("POST", "/v1/watches", &json!({"watch": [SCRATCH], "buffer": 10})), 201);
    let id = made["id"].as_str().unwrap();
    assert_eq!(
        (&made["watch"], &made["buffer"], &made["readers"]),
        (&json!([SCRATCH]), &json!(10), &json!(0))
    );
    write(&server, 9);
    let target = format!("/v1/watches/{id}");
    wait_for("the change", || json_of(&server.get(&target), 200)["values"][SCRATCH] == 9);
    let mut events = Events::open(&server, &format!("/v1/watch?id={id}"));
    assert_eq!(events.next().unwrap().data["values"][SCRATCH], 9);
    assert_eq!(json_of(&server.get(&target), 200)["readers"], 1);
    assert_eq!(server.request("DELETE", &target, b"").status, 204);
    assert_eq!(events.next().unwrap().name, "end");
    assert_eq!(events.next(), None);
    for reply in [
        server.get(&target),
        server.request("DELETE", &target, b""),
        server.get(&format!("/v1/watch?id={id}")),
    ] {
        assert!(json_of(&reply, 404)["detail"].as_str().unwrap().contains(id));
    }
}

#[test]
fn readers_of_the_same_values_share_a_watch_and_all_get_them() {
    let server = Server::start();
    let mut all: Vec<Events> = (0..5).map(|_| Events::open(&server, &watch(&[SCRATCH]))).collect();
    all.iter_mut().for_each(|events| assert_eq!(events.next().unwrap().name, "values"));
    assert_eq!(watched(&server)["readers"], 5);
    write(&server, 4);
    let received: Vec<_> = all.iter_mut().map(|events| events.next().unwrap()).collect();
    assert!(received.iter().all(|event| *event == received[0]), "{received:?}");
}

#[test]
fn the_frame_counter_and_expressions_with_it_are_reported_in_each_frame() {
    let server = Server::start();
    let mut events = Events::open(&server, &watch(&["frame", "frame % 2 == 0"]));
    let mut last = events.next().unwrap().data["values"]["frame"].as_u64().unwrap();
    for _ in 0..30 {
        let change = events.next().unwrap();
        let new = change.data["changes"]["frame"]["new"].as_u64().unwrap();
        assert_eq!((new, change.data["frame"].as_u64()), (last + 1, Some(new)));
        assert_eq!(change.data["changes"]["frame % 2 == 0"]["new"], new.is_multiple_of(2));
        last = new;
    }
}

#[test]
fn expressions_can_use_names_from_the_symbol_file() {
    // In frame 10, the ball still waits on the paddle, so only the test changes the score.
    let server = Server::paused();
    posted(&server, "/v1/advance", &json!({"frames": 10}));
    let mut events = Events::open(
        &server,
        &watch(&["score", "presses[0] + presses[1]", "u8[score + 1]", "bytes[magic, 8]"]),
    );
    assert_eq!(events.next().unwrap().data["values"]["presses[0] + presses[1]"], 0);
    server.post_ok(&format!("/core/write32?address={}&value=258", field("score")), "");
    posted(&server, "/v1/advance", &json!({"frames": 1}));
    let received = loop {
        let change = events.wait_for("change").data["changes"].clone();
        if !change["score"].is_null() {
            break change;
        }
    };
    assert_eq!(
        (&received["score"]["new"], &received["u8[score + 1]"]["new"]),
        (&json!(258), &json!(1)),
        "{received}"
    );
}

#[test]
fn a_change_by_the_game_is_reported_in_the_frame_in_which_it_happens() {
    let server = Server::start();
    let game_frame = format!("u32[{:#x}]", field("frame"));
    let mut events = Events::open(&server, &watch(&[&game_frame]));
    let first = events.wait_for("change").data["changes"][&game_frame]["new"].as_u64().unwrap();
    for number in 1..60 {
        assert_eq!(events.next().unwrap().data["changes"][&game_frame]["new"], first + number);
    }
}

#[test]
fn a_watch_and_a_wait_end_when_another_game_is_loaded() {
    let (_core, attached) = connected();
    for server in [Server::start(), attached] {
        let mut events = Events::open(&server, &watch(&[SCRATCH]));
        events.wait_for("values");
        let created = json_of(&server.send("POST", "/v1/watches", &json!({"watch": [SCRATCH]})), 201);
        let frame = json_of(&server.get("/v1/emulator"), 200)["frame"].as_u64().unwrap();
        let path = server.rebuilt_demo();
        thread::scope(|scope| {
            let until = json!({"until": format!("u32[{}] == 0xffffffff", field("frame")), "frames": 3600});
            let server = &server;
            let waiting = scope.spawn(move || server.send("POST", "/v1/wait", &until));
            wait_for_waiters(server, 1);
            let passed = json!({"until": format!("frame > {}", frame + 10)});
            posted(server, "/v1/wait", &passed);
            posted(server, "/v1/load", &json!({"path": path}));
            problem_says(&waiting.join().unwrap(), 409, "another game");
        });
        let end = events.wait_for("end");
        assert!(end.data["detail"].as_str().unwrap().contains("another game"), "{end:?}");
        let id = created["id"].as_str().unwrap();
        wait_for("the end of the other watch", || server.get(&format!("/v1/watches/{id}")).status == 404);
        Events::open(&server, &watch(&[SCRATCH])).wait_for("values");
    }
}

#[test]
fn a_watch_ends_when_a_symbol_file_is_read_again_and_its_names_have_another_meaning() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = SymbolFiles::default();
    // With two files, each load joins their names again.
    let (path, further) = (folder.path().join("map.toml"), folder.path().join("further.toml"));
    write_map(&path, "changing", 0x0200_0100, 100);
    write_map(&further, "constant", 0x0200_0110, 100);
    files.load(&path).unwrap();
    files.load(&further).unwrap();
    let server = Server::with(|app| app.emulators.add(served("second").with_symbols(files)).unwrap());
    let second =
        |target: &str| format!("{target}{}emulator=second", if target.contains('?') { '&' } else { '?' });
    let open = |name: &str| {
        let mut events = Events::open(&server, &second(&watch(&[name])));
        assert_eq!(events.next().unwrap().data["values"], json!({name: 0}));
        events
    };
    let rom = json!({"path": server.file("demo game.gba")});
    let load = || posted(&server, &second("/v1/load"), &rom);
    let change = |events: &mut Events, address: u32, name: &str| {
        server.send("PUT", &second(&format!("/v1/memory/{address}")), &json!({"value": 1}));
        posted(&server, &second("/v1/advance"), &json!({"frames": 1}));
        let expected = json!({name: {"old": 0, "new": 1}});
        assert_eq!(events.wait_for("change").data["changes"], expected);
    };
    load();
    let (mut constant, mut changing) = (open("constant"), open("changing"));
    let id = ok(&server.get(&second("/v1/watches")))["watches"][1]["id"].clone();
    // Loading the ROM again without a change of the file ends no watch.
    load();
    ok(&server.get(&second("/v1/memory/changing")));
    change(&mut changing, 0x0200_0100, "changing");
    load();
    write_map(&path, "changing", 0x0200_0101, 50);
    load();
    ok(&server.get(&second("/v1/memory/changing")));
    let ended = || server.get(&format!("/v1/watches/{}", id.as_str().unwrap())).status == 404;
    wait_for("the end of the watch", ended);
    let end = changing.wait_for("end");
    assert!(end.data["detail"].as_str().unwrap().contains("symbol file"), "{end:?}");
    let mut changing = open("changing");
    change(&mut changing, 0x0200_0101, "changing");
    // Here, the new reader itself causes the file to be read.
    load();
    write_map(&path, "changing", 0x0200_0102, 20);
    load();
    let mut late = open("changing");
    changing.wait_for("end");
    change(&mut late, 0x0200_0102, "changing");
    change(&mut constant, 0x0200_0110, "constant");
}
