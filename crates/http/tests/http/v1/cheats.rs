//! The routes for cheats.

use serde_json::json;

use super::live::script::connected;
use super::problems::{problem, problem_says};
use super::{ok, posted, sent};
use crate::support::Server;

#[test]
fn cheats_are_added_enabled_disabled_and_removed() {
    let server = Server::start();
    posted(&server, "/v1/pause", &json!({}));
    let cheat = json!({"name": "Lives", "kind": "raw", "codes": ["0200004C:0009"]});
    let added = posted(&server, "/v1/cheats", &cheat);
    assert_eq!((&added["id"], &added["count"]), (&json!(1), &json!(1)));
    assert_eq!(ok(&server.get("/v1/memory/0x0200004C?type=u16"))["value"], 9);
    let text = json!({"codes": "32000100 0063\n32000101 0064", "enabled": false});
    assert_eq!(posted(&server, "/v1/cheats", &text)["id"], 2);
    let listed = ok(&server.get("/v1/cheats"));
    let expected = json!({"cheats": [
        {"id": 1, "name": "Lives", "kind": "raw", "codes": ["0200004C:0009"], "enabled": true},
        {"id": 2, "name": "cheat", "kind": "auto", "codes": ["32000100 0063", "32000101 0064"], "enabled": false},
    ]});
    assert_eq!(listed, expected);
    sent(&server, "PUT", "/v1/cheats/2", &json!({"enabled": true}), 200);
    assert_eq!(ok(&server.get("/v1/memory/0x02000101?type=u8"))["value"], 0x64);
    ok(&server.request("DELETE", "/v1/cheats/1", b""));
    let one = json!({"op": "enable_cheat", "id": 2, "enabled": false});
    let done = posted(&server, "/v1/batch", &json!({"ops": [one, {"op": "cheats"}]}));
    let texts = json!(["2", "off", "auto", "cheat", "32000100 0063\n32000101 0064"]);
    assert_eq!(done["results"][1]["value"], texts);
    ok(&server.request("DELETE", "/v1/cheats", b""));
    assert_eq!(ok(&server.get("/v1/cheats")), json!({"cheats": []}));
}

/// The server reserves 2 MiB for the list, no matter how many cheats there are.
#[test]
fn the_list_counts_as_a_large_reply() {
    let server = Server::with(|app| app.limits.max_replies = 1 << 20);
    problem(&server.get("/v1/cheats"), 503);
}

#[test]
fn a_file_with_cheats_is_loaded() {
    let server = Server::start();
    let path = server.folder.path().join("demo.cheats");
    std::fs::write(&path, "# Lives\n0200004C:0009\n!disabled\n# Score\n02000044:0000FFFF\n").unwrap();
    let added = posted(&server, "/v1/cheats", &json!({"path": path}));
    assert_eq!((added["count"].as_u64(), added.get("id")), (Some(2), None));
    std::fs::write(&path, "# Lives\n0200004C:9\n").unwrap();
    let body = json!({"path": path});
    problem_says(&server.send("POST", "/v1/cheats", &body), 422, "line 2 (\"0200004C:9\")");
}

#[test]
fn bad_cheats_are_refused() {
    let server = Server::start();
    for (body, status, says) in [
        (json!({}), 400, "codes is missing"),
        (json!({"codes": ["0200004C:0009"], "path": "a.cheats"}), 400, "path is given together"),
        (json!({"codes": 7}), 400, "a list of codes"),
        (json!({"codes": ["0200004C 9"]}), 400, "line 1 (\"0200004C 9\"): it has 8 and 1 digits"),
        (
            json!({"codes": ["0200004C:09"], "kind": "genie"}),
            400,
            "kind is \"genie\"; accepted is auto, gameshark",
        ),
        (json!({"path": "/no/such.cheats"}), 422, "/no/such.cheats"),
    ] {
        problem_says(&server.send("POST", "/v1/cheats", &body), status, says);
    }
    for path in ["/v1/cheats/7", "/v1/cheats/0"] {
        problem(&server.request("DELETE", path, b""), 404);
    }
}

#[test]
fn an_attached_mgba_has_no_cheats() {
    let (_core, server) = connected();
    for (method, path, body) in [
        ("GET", "/v1/cheats", json!(null)),
        ("POST", "/v1/cheats", json!({"codes": ["0200004C:0009"]})),
        ("DELETE", "/v1/cheats", json!(null)),
    ] {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        problem_says(&server.request(method, path, body.as_bytes()), 501, "Tools > Cheats");
    }
}
