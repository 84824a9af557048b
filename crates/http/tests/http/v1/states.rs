//! /v1/state, /v1/save and /v1/snapshots.

use std::io::Write;
use std::sync::Arc;

use framewire_emulator::embedded::Rom;
use serde_json::{Value, json};

use super::problems::problem;
use super::{json_of, posted, sent};
use crate::support::{Server, core, field, repository, wait_for};

fn write(server: &Server, offset: u32, value: u8) {
    let address = field("scratch") + offset;
    server.post_ok(&format!("/core/write8?address={address}&value={value}"), "");
}

fn read(server: &Server, offset: u32) -> i64 {
    server.number(&format!("/core/read8?address={}", field("scratch") + offset))
}

#[test]
fn a_state_is_downloaded_and_uploaded() {
    let server = Server::paused();
    posted(&server, "/v1/advance", &json!({"frames": 30}));
    write(&server, 0, 7);
    for (query, kind) in [("", "image/png"), ("?flags=0", "application/octet-stream")] {
        let state = server.get(&format!("/v1/state{query}"));
        assert_eq!((state.status, state.header("content-type")), (200, Some(kind)));
        assert_eq!(state.header("framewire-frame"), Some("30"));
        posted(&server, "/v1/advance", &json!({"frames": 2}));
        write(&server, 0, 8);
        let loaded = json_of(&server.request("PUT", "/v1/state", &state.body), 200);
        assert_eq!((&loaded["frame"], read(&server, 0)), (&30.into(), 7));
    }
}

#[test]
fn a_battery_save_is_downloaded_and_uploaded() {
    let server = Server::paused();
    posted(&server, "/v1/advance", &json!({"frames": 30}));
    let save = server.get("/v1/save");
    assert_eq!((save.status, save.header("content-type")), (200, Some("application/octet-stream")));
    assert_eq!((save.header("framewire-frame"), save.body.len()), (Some("30"), 32 << 10));
    let mut other = save.body.clone();
    other[100] = 0x5A;
    let loaded = json_of(&server.request("PUT", "/v1/save", &other), 200);
    assert_eq!(loaded["frame"], 0, "the game was reset");
    assert_eq!(server.number("/core/read8?address=0x0E000064"), 0x5A);
    assert!(server.get("/v1/save").body == other);
    // Nothing of the old save remains after a shorter one.
    json_of(&server.request("PUT", "/v1/save", &other[..0x100]), 200);
    let shorter = [&other[..0x100], &[0xFF; (32 << 10) - 0x100]].concat();
    assert!(server.get("/v1/save").body == shorter);
    problem(&server.request("PUT", "/v1/save", b""), 400);
    problem(&server.request("PUT", "/v1/save", &vec![0; 200 << 10]), 413);
}

/// Both the save of a loaded state and a temporary save hide the game's save until the next reset.
#[test]
fn an_uploaded_battery_save_is_not_lost_while_another_save_hides_the_games_save() {
    type Hide = fn(&Server);
    let by_state: Hide = |server| {
        let state = server.get("/v1/state").body;
        json_of(&server.request("PUT", "/v1/state", &state), 200);
    };
    let by_temporary_save: Hide = |server| {
        let path = server.file("temporary.sav");
        std::fs::write(&path, [0x33; 32 << 10]).unwrap();
        posted(
            server,
            "/v1/batch",
            &json!({"ops": [{"op": "load_save_file", "path": path, "temporary": true}]}),
        );
    };
    for (case, hide) in [("state", by_state), ("temporary save", by_temporary_save)] {
        let server = Server::paused();
        posted(&server, "/v1/advance", &json!({"frames": 30}));
        hide(&server);
        let save = vec![0x5A; 32 << 10];
        json_of(&server.request("PUT", "/v1/save", &save), 200);
        assert_eq!(server.number("/core/read8?address=0x0E000064"), 0x5A, "{case}");
        assert!(server.get("/v1/save").body == save, "{case}");
        wait_for("the save on disk", || std::fs::read(server.file("demo game.sav")).unwrap() == save);
    }
}

#[test]
fn a_battery_save_that_is_refused_because_another_game_runs_resets_nothing() {
    // With each frame, the script changes the title in the ROM. So the state of an earlier frame is of another game.
    let mut script = tempfile::Builder::new().suffix(".lua").tempfile().unwrap();
    let source = "callbacks:add('frame', function()
        emu.memory.cart0:write8(0xA0, 65 + emu:currentFrame() % 26)
    end)";
    script.write_all(source.as_bytes()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let rom = folder.path().join("game.gba");
    std::fs::copy(repository("rom/framewire-demo.gba"), &rom).unwrap();
    let emulator = core(Rom::File(rom), false, vec![script.path().to_owned()]);
    let server = Server::over(folder, move |_| Arc::new(emulator), |_| {});
    posted(&server, "/v1/speed", &json!({"speed": "unlimited"}));
    wait_for("a refusal", || {
        write(&server, 0, 7);
        let reply = server.request("PUT", "/v1/save", &[1; 32 << 10]);
        let is_refused = reply.status != 200;
        assert_eq!(read(&server, 0), if is_refused { 7 } else { 0 }, "{}", reply.text());
        is_refused
    });
}

#[test]
fn an_invalid_state_or_flag_changes_nothing() {
    let server = Server::paused();
    write(&server, 0, 9);
    let state = server.get("/v1/state").body;
    write(&server, 0, 10);
    for (target, bytes, status) in [
        ("/v1/state", &b"no state"[..], 422),
        ("/v1/state", b"", 422),
        ("/v1/state", &state[..state.len() / 2], 422),
        ("/v1/state?flags=32", &state, 400),
        ("/v1/state?flags=-1", &state, 400),
        ("/v1/state?force=maybe", &state, 400),
        ("/v1/state?flag=1", &state, 400),
    ] {
        problem(&server.request("PUT", target, bytes), status);
        assert_eq!(read(&server, 0), 10, "{target}");
    }
    problem(&server.get("/v1/state?flags=99"), 400);
    problem(&server.request("PUT", "/v1/state", &vec![0; 9 << 20]), 413);
}

/// The current state with another title, code and checksum, so that it looks like the state of another game.
fn of_another_game(server: &Server) -> Vec<u8> {
    let mut state = server.get("/v1/state?flags=0").body;
    state[8..12].fill(0x55);
    state[0x10..0x20].copy_from_slice(b"ANOTHER GAMEWXYZ");
    state
}

#[test]
fn a_state_of_another_game_is_loaded_only_with_force() {
    let server = Server::paused();
    write(&server, 3, 77);
    let state = of_another_game(&server);
    write(&server, 3, 1);
    let error = problem(&server.request("PUT", "/v1/state", &state), 409);
    let detail = error["detail"].as_str().unwrap();
    assert!(
        detail.contains("ANOTHER GAME") && detail.contains("55555555") && detail.contains("FRAMEWIRE"),
        "{detail}"
    );
    assert_eq!(read(&server, 3), 1);
    json_of(&server.request("PUT", "/v1/state?force=true", &state), 200);
    assert_eq!(read(&server, 3), 77);
}

#[test]
fn a_snapshot_is_kept_shown_loaded_renamed_and_deleted() {
    let server = Server::paused();
    posted(&server, "/v1/advance", &json!({"frames": 60}));
    write(&server, 1, 42);
    let request = json!({"name": "before-boss", "note": "with “bombs”"});
    let made = sent(&server, "POST", "/v1/snapshots", &request, 201);
    assert_eq!((&made["name"], &made["title"]), (&"before-boss".into(), &"FRAMEWIRE".into()));
    assert_eq!((&made["frame"], &made["note"]), (&60.into(), &"with “bombs”".into()));
    assert_eq!(made["checksum"].as_str().map(str::len), Some(8));
    assert!(made["size"].as_u64().unwrap() > 1000 && made["time"].as_str().unwrap().ends_with('Z'), "{made}");

    let listed = json_of(&server.get("/v1/snapshots"), 200);
    assert_eq!(listed, json!({"snapshots": [made], "total": 1, "next": null}));
    assert_eq!(json_of(&server.get("/v1/snapshots/Before-Boss"), 200), made);
    let picture = server.get(made["picture"].as_str().unwrap());
    assert_eq!((picture.status, picture.header("content-type")), (200, Some("image/png")));
    assert_eq!(framewire_media::png::size(&picture.body).unwrap(), (240, 160));

    write(&server, 1, 43);
    let loaded = posted(&server, "/v1/snapshots/before-boss/load", &json!({}));
    assert_eq!((&loaded["frame"], read(&server, 1)), (&60.into(), 42));
    // The snapshot's file can be loaded as a state too.
    write(&server, 1, 44);
    let file = server.get("/v1/snapshots/before-boss/file").body;
    json_of(&server.request("PUT", "/v1/state", &file), 200);
    assert_eq!(read(&server, 1), 42);

    let change = json!({"name": "boss", "note": "later"});
    let renamed = sent(&server, "PATCH", "/v1/snapshots/before-boss", &change, 200);
    assert_eq!((&renamed["name"], &renamed["note"]), (&"boss".into(), &"later".into()));
    problem(&server.get("/v1/snapshots/before-boss"), 404);
    assert_eq!(server.request("DELETE", "/v1/snapshots/boss", b"").status, 204);
    problem(&server.request("DELETE", "/v1/snapshots/boss", b""), 404);
    assert_eq!(json_of(&server.get("/v1/snapshots"), 200)["total"], 0);
}

#[test]
fn names_are_checked_and_snapshots_are_overwritten_only_on_request() {
    let server = Server::paused();
    for name in ["", "..", "../x", "a b", "diff", "nul", "x/y", &"x".repeat(65)] {
        let error = problem(&server.send("POST", "/v1/snapshots", &json!({"name": name})), 400);
        assert_eq!(error["parameter"], "name");
    }
    let long = json!({"name": "a", "note": "x".repeat(1025)});
    assert_eq!(problem(&server.send("POST", "/v1/snapshots", &long), 400)["parameter"], "note");
    sent(&server, "POST", "/v1/snapshots", &json!({"name": "a"}), 201);
    sent(&server, "POST", "/v1/snapshots", &json!({"name": "b"}), 201);
    let error = problem(&server.request("POST", "/v1/snapshots", br#"{"name": "A"}"#), 409);
    assert!(error["detail"].as_str().unwrap().ends_with("or replace it with \"replace\": true"), "{error}");
    let error = problem(&server.request("PATCH", "/v1/snapshots/a", br#"{"name": "B"}"#), 409);
    assert!(error["detail"].as_str().unwrap().ends_with("choose another name"), "{error}");
    let made = server.request("POST", "/v1/snapshots", br#"{"name": "c"}"#);
    assert_eq!((made.status, made.header("location")), (201, Some("/v1/snapshots/c")));
    assert_eq!(server.request("DELETE", "/v1/snapshots/c", b"").status, 204);
    posted(&server, "/v1/snapshots", &json!({"name": "A", "replace": true}));
    // A snapshot without a name gets the time as its name.
    let named = sent(&server, "POST", "/v1/snapshots", &json!({}), 201);
    assert!(named["name"].as_str().unwrap().starts_with("20"), "{named}");
    let page = json_of(&server.get("/v1/snapshots?offset=1&limit=1"), 200);
    assert_eq!(
        (&page["total"], &page["next"], &page["snapshots"][0]["name"]),
        (&3.into(), &2.into(), &"a".into())
    );
    for query in ["?limit=0", "?limit=1001", "?limit=x", "?sort=name"] {
        problem(&server.get(&format!("/v1/snapshots{query}")), 400);
    }
    for target in ["/v1/snapshots/%2e%2e", "/v1/snapshots/a%2Fb"] {
        problem(&server.get(target), 400);
    }
}

#[test]
fn a_diff_lists_ranges_with_old_and_new_bytes() {
    let server = Server::paused();
    sent(&server, "POST", "/v1/snapshots", &json!({"name": "old"}), 201);
    for (offset, value) in [(0, 1), (1, 2), (5, 3)] {
        write(&server, offset, value);
    }
    let range = |offset: u32, old: &str, new: &str| {
        let address = field("scratch") + offset;
        let (length, symbol) = (old.len() / 2, format!("scratch[{offset}]"));
        json!({"domain": "wram", "offset": address - 0x0200_0000, "bank": null, "address": address, "symbol": symbol,
               "length": length, "watch": format!("bytes[{address:#x}, {length}]"), "old": old, "new": new})
    };
    let now = json_of(&server.get("/v1/snapshots/diff?from=old&encoding=hex"), 200);
    assert_eq!(now["ranges"], json!([range(0, "0000", "0102"), range(5, "00", "03")]));
    assert_eq!((&now["total"], &now["bytes"], &now["next"]), (&2.into(), &3.into(), &Value::Null));
    sent(&server, "POST", "/v1/snapshots", &json!({"name": "new"}), 201);
    let page = json_of(&server.get("/v1/snapshots/diff?from=old&to=new&encoding=hex&limit=1"), 200);
    assert_eq!((&page["ranges"], &page["next"]), (&json!([range(0, "0000", "0102")]), &1.into()));
    let joined = json_of(&server.get("/v1/snapshots/diff?from=old&to=new&encoding=hex&join=3"), 200);
    assert_eq!(joined["ranges"], json!([range(0, "000000000000", "010200000003")]));
    assert_eq!(json_of(&server.get("/v1/snapshots/diff?from=old&to=new"), 200)["ranges"][0]["new"], "AQI=");
    assert_eq!(json_of(&server.get("/v1/snapshots/diff?from=old&to=new&domain=iwram"), 200)["total"], 0);
    problem(&server.get("/v1/snapshots/diff?from=old&to=new&domain=nowhere"), 400);
    problem(&server.get("/v1/snapshots/diff?from=old&to=nothing"), 404);
    problem(&server.get("/v1/snapshots/diff"), 400);
    assert_eq!(problem(&server.get("/v1/snapshots/diff?from=.."), 400)["parameter"], "from");
}

#[test]
fn a_difference_that_joins_more_bytes_than_a_range_can_have_is_refused() {
    let server = Server::paused();
    sent(&server, "POST", "/v1/snapshots", &json!({"name": "old"}), 201);
    json_of(&server.get("/v1/snapshots/diff?from=old&join=4096"), 200);
    let error = problem(&server.get("/v1/snapshots/diff?from=old&join=4097"), 400);
    assert_eq!(error["detail"], "join is 4097; accepted is a whole number from 0 to 4096");
}

#[test]
fn a_damaged_snapshot_and_a_server_without_a_data_folder_get_errors() {
    let server = Server::paused();
    sent(&server, "POST", "/v1/snapshots", &json!({"name": "a"}), 201);
    let file = server.folder.path().join("data/snapshots/a.png");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    problem(&server.request("POST", "/v1/snapshots/a/load", b""), 422);
    let server = Server::with(|app| app.data = None);
    problem(&server.request("POST", "/v1/snapshots", b""), 501);
    problem(&server.get("/v1/recordings"), 501);
}
