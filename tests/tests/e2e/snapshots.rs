//! Snapshots and memory searches with each kind of emulator.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use framewire_e2e::demo;
use serde_json::{Value, json};

use super::served::Served;

fn scratch(served: &Served) -> i64 {
    served.game(demo::field("scratch"))
}

fn write(served: &Served, value: u32) {
    served.post(&format!("/core/write32?address={}&value={value}", demo::field("scratch")));
}

fn snapshots_are_saved_and_loaded(served: &Served) {
    served.wait_for_game();
    write(served, 0x0102_0304);
    let kept = served.ask("POST", "/v1/snapshots", &json!({"name": "kept"}), 201);
    assert_eq!((&kept["title"], &kept["name"]), (&"FRAMEWIRE".into(), &"kept".into()));
    let picture = served.get("/v1/snapshots/kept/picture");
    assert_eq!(framewire_media::png::size(&picture.body).unwrap(), (240, 160));
    write(served, 5);
    let diff = served.ask("GET", "/v1/snapshots/diff?from=kept&domain=wram&encoding=hex", &Value::Null, 200);
    let range = json!({"domain": "wram", "offset": 0x100, "bank": null, "address": 0x0200_0100, "symbol": null, "length": 4,
                       "watch": "bytes[0x2000100, 4]", "old": "04030201", "new": "05000000"});
    assert!(diff["ranges"].as_array().unwrap().contains(&range), "{diff}");
    let loaded = served.ask("POST", "/v1/snapshots/kept/load", &json!({}), 200);
    assert_eq!((&loaded["frame"], scratch(served)), (&kept["frame"], 0x0102_0304));
    write(served, 6);
    let file = served.get("/v1/snapshots/kept/file").body;
    assert_eq!(served.http.send("PUT", "/v1/state", "", file).unwrap().status, 200);
    assert_eq!(scratch(served), 0x0102_0304);
}

fn a_search_finds_a_number(served: &Served) {
    write(served, 123_456);
    let search = served.ask("POST", "/v1/search", &json!({"type": "u32"}), 201);
    let target = format!("/v1/search/{}", search["id"]);
    served.ask("POST", &format!("{target}/narrow"), &json!({"is": "equal", "value": 123_456}), 200);
    write(served, 123_400);
    served.ask("POST", &format!("{target}/narrow"), &json!({"is": "decreased_by", "value": 56}), 200);
    let left = served.ask("GET", &target, &Value::Null, 200);
    let found = json!([{"domain": "wram", "offset": 0x100, "bank": null, "address": 0x0200_0100, "symbol": null,
                        "watch": "u32[0x2000100]", "value": 123_400, "previous": 123_456}]);
    assert_eq!(left["candidates"], found);
}

#[test]
fn snapshots_and_searches_work_in_an_embedded_core() {
    let served = Served::embedded();
    snapshots_are_saved_and_loaded(&served);
    a_search_finds_a_number(&served);
}

#[test]
fn snapshots_and_searches_work_in_a_stock_window() {
    let served = Served::stock();
    snapshots_are_saved_and_loaded(&served);
    a_search_finds_a_number(&served);
}

/// mGBA gives the game the save of a loaded state until the next reset.
#[test]
fn a_battery_save_for_a_stock_window_is_not_lost_after_a_state_was_loaded() {
    let mut served = Served::stock();
    served.wait_for_game();
    let save = served.mgba().dir().join("demo game+1.sav");
    let put = |target: &str, body: Vec<u8>| {
        assert_eq!(served.http.send("PUT", target, "", body).unwrap().status, 200, "{target}");
    };
    let byte = || served.number("/core/read8?address=0x0E007000");
    // mGBA creates the save when it is used for the first time.
    byte();
    // Soon after the game has written its save, mGBA makes the save of a loaded state the game's own.
    sleep(Duration::from_secs(2));
    put("/v1/state", served.get("/v1/state").body);
    put("/v1/save", vec![0x5A; 32 << 10]);
    assert_eq!(byte(), 0x5A);
    assert_eq!(fs::read(save).unwrap()[0x7000], 0x5A);
}
