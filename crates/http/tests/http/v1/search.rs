//! /v1/search.

use serde_json::{Value, json};

use super::problems::problem;
use super::{json_of, posted, sent};
use crate::support::{Server, field, game_boy, repository};

fn write16(server: &Server, value: u16) {
    server.post_ok(&format!("/core/write16?address={}&value={value}", field("scratch")), "");
}

fn narrow(server: &Server, search: &Value, test: &Value) -> u64 {
    let target = format!("/v1/search/{}/narrow", search["id"]);
    posted(server, &target, test)["count"].as_u64().unwrap()
}

#[test]
fn a_value_is_found_by_how_it_changes() {
    let server = Server::paused();
    write16(&server, 500);
    let search = sent(&server, "POST", "/v1/search", &json!({"type": "u16"}), 201);
    // All of the work RAM, with a candidate every two bytes.
    assert_eq!((&search["count"], &search["emulator"]), (&((0x40000 + 0x8000) / 2).into(), &"demo".into()));
    narrow(&server, &search, &json!({"is": "equal", "value": 500}));
    write16(&server, 517);
    narrow(&server, &search, &json!({"is": "increased_by", "value": 17}));
    write16(&server, 510);
    assert_eq!(narrow(&server, &search, &json!({"is": "decreased"})), 1);
    let left = json_of(&server.get(&format!("/v1/search/{}", search["id"])), 200);
    let found = json!([{"domain": "wram", "offset": field("scratch") - 0x0200_0000, "bank": null, "address": field("scratch"),
                "symbol": "scratch[0]", "watch": format!("u16[{:#x}]", field("scratch")), "value": 510, "previous": 517}]);
    assert_eq!(
        (&left["candidates"], &left["next"], &left["search"]["steps"]),
        (&found, &Value::Null, &3.into())
    );
    assert_eq!(narrow(&server, &search, &json!({"is": "changed"})), 0);
    let undone = json_of(&server.post(&format!("/v1/search/{}/undo", search["id"])), 200);
    assert_eq!((&undone["count"], &undone["undoable"]), (&1.into(), &3.into()));
    assert_eq!(server.request("DELETE", &format!("/v1/search/{}", search["id"]), b"").status, 204);
    problem(&server.get(&format!("/v1/search/{}", search["id"])), 404);
}

#[test]
fn candidates_are_listed_in_pages_and_areas_are_in_domains_or_on_the_bus() {
    let server = Server::paused();
    let areas = json!([
        {"domain": "wram", "address": 256, "length": 3},
        {"address": "0x03000000", "length": 4},
        {"domain": "palette"},
    ]);
    let search = sent(&server, "POST", "/v1/search", &json!({"type": "i8", "areas": areas}), 201);
    assert_eq!(search["count"], 3 + 4 + 0x400);
    let page = json_of(&server.get(&format!("/v1/search/{}?offset=2&limit=2", search["id"])), 200);
    let places: Vec<_> = page["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["domain"], &one["offset"], &one["address"]))
        .collect();
    let expected = [
        (&"wram".into(), &258.into(), &0x0200_0102.into()),
        (&Value::Null, &Value::Null, &0x0300_0000.into()),
    ];
    assert_eq!(places, expected);
    assert_eq!(page["next"], 4);
    let listed = json_of(&server.get("/v1/search"), 200);
    assert_eq!(listed["searches"], json!([search]));
}

#[test]
fn limits_are_checked_and_the_least_recently_used_searches_are_dropped() {
    let server = Server::paused();
    let area = |area: Value| json!({"type": "u8", "areas": [area]});
    for (request, parameter) in [
        (json!({}), "type"),
        (json!({"type": "u64"}), "type"),
        (json!({"type": "u8", "alignment": 3}), "alignment"),
        (json!({"type": "u8", "areas": vec![json!({"domain": "io"}); 17]}), "areas"),
        (area(json!({"address": 0})), "areas[0].length"),
        (area(json!({"length": 1})), "areas[0].address"),
        (area(json!({"address": 0, "length": 0})), "areas"),
        (area(json!({"address": u32::MAX, "length": 2})), "areas"),
        (area(json!({"address": 0, "length": 0x10_0001})), "areas"),
        (area(json!({"address": "nowhere", "length": 1})), "areas[0].address"),
        (area(json!({"domain": "wram", "address": "score"})), "areas[0].address"),
        (area(json!({"domain": "wram", "length": 0x40001})), "areas[0].length"),
        (area(json!({"domain": "wram", "address": 0x3FFFF, "length": 2})), "areas[0].length"),
        (area(json!({"domain": "wram", "address": 0x40000})), "areas[0].address"),
        (area(json!({"domain": "wram", "address": 0x40001, "length": 1})), "areas[0].address"),
    ] {
        let error = problem(&server.send("POST", "/v1/search", &request), 400);
        assert_eq!(error["parameter"], parameter, "{error}");
    }
    problem(&server.send("POST", "/v1/search", &area(json!({"domain": "nowhere"}))), 400);
    let search = sent(&server, "POST", "/v1/search", &json!({"type": "u8"}), 201);
    let target = format!("/v1/search/{}/narrow", search["id"]);
    for (test, parameter) in [
        (json!({"is": "bigger"}), "is"),
        (json!({"is": "equal"}), "value"),
        (json!({"is": "changed", "value": 1}), "value"),
        (json!({"is": "equal", "value": 256}), "value"),
        (json!({"is": "less", "value": -1}), "value"),
        (json!({"is": "increased_by", "value": i64::MAX}), "value"),
        (json!({"is": "increased_by", "value": -1}), "value"),
        (json!({"is": "decreased_by", "value": 256}), "value"),
    ] {
        let error = problem(&server.send("POST", &target, &test), 400);
        assert_eq!(error["parameter"], parameter, "{error}");
    }
    problem(&server.post(&format!("/v1/search/{}/undo", search["id"])), 409);
    problem(&server.get("/v1/search/x"), 404);
    let begin = || sent(&server, "POST", "/v1/search", &json!({"type": "u8"}), 201)["id"].as_u64().unwrap();
    let first = begin();
    for _ in 2..8 {
        begin();
    }
    // This read makes `search` the most recently used search, so `first` is dropped instead of it.
    json_of(&server.get(&format!("/v1/search/{}", search["id"])), 200);
    begin();
    problem(&server.get(&format!("/v1/search/{first}")), 404);
    json_of(&server.get(&format!("/v1/search/{}", search["id"])), 200);
    let begun = server.request("POST", "/v1/search", br#"{"type": "u8"}"#);
    let place = begun.header("location").unwrap();
    assert_eq!(json_of(&server.get(place), 200)["search"]["id"], json_of(&begun, 201)["id"]);
}

#[test]
fn the_error_for_an_offset_past_the_end_of_a_domain_names_what_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::playing(game_boy(&folder), folder, true, |_| {});
    for (area, parameter, accepts) in [
        (json!({"domain": "hram", "address": 127}), "areas[0].address", "0 to 126"),
        // The cartridge has no RAM.
        (json!({"domain": "sram"}), "areas[0].domain", "a domain with bytes"),
    ] {
        let request = json!({"type": "u8", "areas": [area]}).to_string();
        let error = problem(&server.request("POST", "/v1/search", request.as_bytes()), 400);
        assert_eq!((&error["parameter"], &error["accepts"]), (&json!(parameter), &json!(accepts)), "{error}");
    }
}

#[test]
fn a_search_of_another_game_is_refused_until_its_game_is_back() {
    let server = Server::paused();
    write16(&server, 500);
    let search = sent(&server, "POST", "/v1/search", &json!({"type": "u16"}), 201);
    let target = format!("/v1/search/{}", search["id"]);
    let (rebuilt, demo) = (server.rebuilt_demo(), repository("rom/framewire-demo.gba"));
    posted(&server, "/v1/load", &json!({"path": rebuilt}));
    let equal = json!({"is": "equal", "value": 500});
    for reply in [server.get(&target), server.send("POST", &format!("{target}/narrow"), &equal)] {
        let refused = problem(&reply, 409);
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains("but another game (") && detail.contains("POST /v1/search"), "{refused}");
    }
    posted(&server, "/v1/load", &json!({"path": demo}));
    write16(&server, 500);
    assert!(narrow(&server, &search, &equal) >= 1);
}
