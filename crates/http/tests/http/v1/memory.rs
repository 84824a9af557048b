//! /v1/memory, /v1/symbols and /v1/domains.

use serde_json::{Value, json};

use super::problems::{problem, problem_says};
use super::{json_of, ok, posted, sent};
use crate::support::{Server, field, repository};

#[test]
fn numbers_are_written_and_read_by_name() {
    let server = Server::paused();
    let score = field("score");
    let put = |path: &str, body: Value| ok(&server.send("PUT", path, &body));
    put("/v1/memory/score", json!({"value": 70_000}));
    put("/v1/memory/ball_dy", json!({"value": -3}));
    let read = |path: &str| ok(&server.get(path));
    let expected = json!({"frame": 0, "address": score, "type": "u32", "value": 70_000});
    assert_eq!(read("/v1/memory/score"), expected);
    assert_eq!(read(&format!("/v1/memory/{score}?type=u32")), expected);
    assert_eq!(read("/v1/memory/ball_dy")["value"], -3);
    assert_eq!(read("/v1/memory/ball_dy?type=u16")["value"], 0xFFFD);
    assert_eq!(read("/v1/memory/0x02000044")["value"], 70_000 & 0xFF);
    assert_eq!(
        read(&format!("/v1/memory/{}?domain=wram&type=i16", score & 0xFFFF))["value"],
        70_000 & 0xFFFF
    );
    let many = read("/v1/memory?address=score&address=ball_dy&address=presses%5B2%5D");
    assert_eq!(many, json!({"frame": 0, "values": [70_000, -3, 0]}));
}

#[test]
fn bytes_are_written_and_read_in_each_format() {
    let server = Server::paused();
    let path = "/v1/memory/scratch";
    let put = |body: &str| ok(&server.request("PUT", path, body.as_bytes()));
    put(r#"{"data": "AQID"}"#);
    assert_eq!(ok(&server.get(&format!("{path}?length=4&encoding=hex")))["data"], "01020300");
    put(r#"{"data": "0a0B", "encoding": "hex"}"#);
    assert_eq!(ok(&server.get(&format!("{path}?length=3")))["data"], "CgsD");
    for kind in ["Application/Octet-Stream; charset=binary", "application/octet-stream"] {
        ok(&server.request_with("PUT", path, &format!("content-type: {kind}\r\n"), &[9, 8]));
    }
    let reply = server.get(&format!("{path}?length=3&format=raw"));
    assert_eq!(
        (reply.header("content-type"), reply.header("framewire-frame")),
        (Some("application/octet-stream"), Some("0"))
    );
    assert_eq!(reply.body, [9, 8, 3]);
    assert_eq!(ok(&server.get(&format!("{path}?length=0")))["data"], "");
}

#[test]
fn an_asterisk_in_the_path_does_not_unfreeze_all_values() {
    let server = Server::paused();
    ok(&server.request("PUT", "/v1/freeze/lives", br#"{"value": 3}"#));
    for path in ["/v1/freeze/*", "/v1/freeze/%2A"] {
        problem_says(&server.request("DELETE", path, b""), 404, "DELETE /v1/freeze unfreezes all");
    }
    assert_eq!(ok(&server.get("/v1/freeze"))["frozen"][0]["address"], "lives");
}

#[test]
fn invalid_reads_and_writes_are_refused_and_change_nothing() {
    let server = Server::paused();
    for (query, parameter) in [
        ("/scroe", Some("address")),
        ("/score?type=u64", Some("type")),
        ("/score?length=16777217", Some("length")),
        ("/score?length=-1", Some("length")),
        ("/score?domain=wram", Some("address")),
        ("?address=0&address=score&domain=wram", Some("address")),
        ("/262144?domain=wram", Some("address")),
        ("/262143?domain=wram&type=u16", Some("address")),
        ("/0?domain=wram&length=400000", Some("address")),
        ("/0xffffffff?length=2", Some("address")),
        ("?address=0&address=262144&domain=wram", Some("address")),
        ("/score?format=raw", Some("format")),
        ("/score?type=u16&length=2", Some("type")),
        ("/score?width=8", Some("width")),
        ("", Some("address")),
        ("?address=score&address=x", Some("address")),
    ] {
        let error = problem(&server.get(&format!("/v1/memory{query}")), 400);
        assert_eq!(error["parameter"].as_str(), parameter, "{query}: {error}");
    }
    problem_says(&server.get("/v1/memory/0?domain=nowhere"), 400, "wram");
    for (query, body, parameter) in [
        ("", r#"{}"#, None),
        ("", r#"{"value": 1, "data": "AA=="}"#, None),
        ("", r#"{"value": 4294967296}"#, Some("value")),
        ("", r#"{"value": -1}"#, Some("value")),
        ("", r#"{"value": 1.5}"#, Some("value")),
        ("", r#"{"value": 1, "type": "u128"}"#, Some("type")),
        ("", r#"{"data": "A"}"#, Some("data")),
        ("?domain=wram", r#"{"data": "AA=="}"#, Some("address")),
        ("", "", None),
    ] {
        let reply = server.request("PUT", &format!("/v1/memory/score{query}"), body.as_bytes());
        assert_eq!(problem(&reply, 400)["parameter"].as_str(), parameter, "{body}");
    }
    assert_eq!(ok(&server.get("/v1/memory/score"))["value"], 0);
    let put = |target: &str, body: &str| problem(&server.request("PUT", target, body.as_bytes()), 400);
    assert_eq!(put("/v1/memory/0?domain=wram", r#"{"data": "AA=="}"#)["parameter"], "domain");
    // A write past the end of the domain would wrap around to its beginning.
    let error = put("/v1/memory/262144?domain=wram", r#"{"value": 9}"#);
    assert!(error["detail"].as_str().unwrap().contains("262144 bytes"), "{error}");
    assert_eq!(ok(&server.get("/v1/memory/0?domain=wram"))["value"], 0);
    assert_eq!(ok(&server.get("/v1/memory/262143?domain=wram"))["value"], 0);
}

#[test]
fn numbers_at_unaligned_addresses_consist_of_the_bytes_there() {
    let server = Server::paused();
    let base = field("scratch");
    let put = |path: &str, body: Value| ok(&server.send("PUT", path, &body));
    put("/v1/memory/scratch", json!({"data": "0001020304050607", "encoding": "hex"}));
    for at in 0..4u32 {
        let two = at | (at + 1) << 8;
        let four = 0x0302_0100 + at * 0x0101_0101;
        for (kind, value) in [("u16", two), ("u32", four)] {
            let (address, offset) = (base + at, base + at - 0x0200_0000);
            let bus = ok(&server.get(&format!("/v1/memory/{address}?type={kind}")));
            let domain = ok(&server.get(&format!("/v1/memory/{offset}?type={kind}&domain=wram")));
            let watch = json!({"watch": [format!("{kind}[{address}]"), format!("{kind}[wram:{offset}]")]});
            let watched = sent(&server, "POST", "/v1/watches", &watch, 201);
            let compat = server.number(&format!("/core/read{}?address={address}", &kind[1..]));
            let found = [&bus["value"], &domain["value"], &json!(compat)];
            assert_eq!(found, [&json!(value); 3], "{kind} at {address:#x}");
            let values = watched["values"].as_object().unwrap();
            assert!(values.len() == 2 && values.values().all(|found| *found == value), "{watched}");
            assert_eq!(
                server
                    .request("DELETE", &format!("/v1/watches/{}", watched["id"].as_str().unwrap()), b"")
                    .status,
                204
            );
        }
    }
    put(&format!("/v1/memory/{}", base + 1), json!({"value": 0xD4C3_B2A1u32, "type": "u32"}));
    let domain = format!("/v1/memory/{}?domain=wram", base + 5 - 0x0200_0000);
    put(&domain, json!({"value": -2, "type": "i16"}));
    let bytes = ok(&server.get("/v1/memory/scratch?length=8&encoding=hex"));
    assert_eq!(bytes["data"], "00a1b2c3d4feff07");
}

#[test]
fn memory_that_the_console_does_not_have_is_refused_everywhere() {
    let server = Server::paused();
    let ask = |method: &str, path: &str, body: Value| problem(&server.send(method, path, &body), 400);
    for address in ["0x4000", "0x01ffffff", "0x10000000", "0xffffffff"] {
        let read = problem(&server.get(&format!("/v1/memory/{address}")), 400);
        assert_eq!(read["parameter"], "address");
        assert_eq!(read["accepts"], "0x0 to 0x3fff, 0x2000000 to 0xfffffff", "{read}");
        let written = ask("PUT", &format!("/v1/memory/{address}"), json!({"value": 1}));
        assert_eq!(written["parameter"], "address");
        let watched = ask("POST", "/v1/watches", json!({"watch": ["frame", format!("u8[{address}]")]}));
        assert_eq!(watched["parameter"], "watch[1]", "{watched}");
        assert_eq!(
            ask("POST", "/v1/wait", json!({"until": format!("u8[{address}] == 1")}))["parameter"],
            "until"
        );
        let area = json!({"type": "u8", "areas": [{"domain": "wram"}, {"address": address, "length": 1}]});
        assert_eq!(ask("POST", "/v1/search", area)["parameter"], "areas[1].address");
    }
    problem(&server.get("/v1/memory/0x0fffffff?type=u16"), 400);
    problem(&server.get("/v1/memory/0x0f000001?length=16777216"), 400);
    for watch in ["u8[wram:0x40000]", "u16[wram:0x3ffff]", "bytes[wram:0x3fff0, 64]", "u8[nowhere:0]"] {
        let error = ask("POST", "/v1/watches", json!({"watch": [watch]}));
        assert_eq!(error["parameter"], "watch[0]", "{error}");
        assert!(error["detail"].as_str().unwrap().contains("wram"), "{error}");
    }
}

#[test]
fn writes_that_would_do_nothing_are_refused() {
    let server = Server::paused();
    for (path, says) in [
        ("/v1/memory/0x08000000", "cart0"),
        ("/v1/memory/0x100", "BIOS"),
        ("/v1/memory/0?domain=bios", "takes no writes"),
        ("/v1/memory/0?domain=io", "takes no writes"),
    ] {
        problem_says(&server.request("PUT", path, br#"{"value": 5}"#), 400, says);
    }
    // A write to the domain `cart0` patches the ROM in memory.
    ok(&server.request("PUT", "/v1/memory/0x1000?domain=cart0", br#"{"value": 5}"#));
    assert_eq!(ok(&server.get("/v1/memory/0x08001000"))["value"], 5);
    // mGBA-http's routes accept every write that mGBA accepts.
    server.post_ok("/core/write8?address=0x08000000&value=5", "");
}

#[test]
fn symbols_are_listed_in_pages() {
    let server = Server::start();
    let list = |query: &str| {
        let list = ok(&server.get(&format!("/v1/symbols{query}")));
        let names = list["symbols"]
            .as_array()
            .unwrap()
            .iter()
            .map(|symbol| symbol["name"].as_str().unwrap().to_owned());
        (names.collect::<Vec<_>>(), list)
    };
    let (all, whole) = list("");
    assert!(all.is_sorted() && all.len() > 20 && whole["more"] == false);
    let (scores, list_of_scores) = list("?contains=SCORE");
    assert_eq!(scores, ["high_score", "last_score", "score"]);
    let score = &list_of_scores["symbols"][2];
    assert_eq!(
        (&score["address"], &score["type"], &score["count"]),
        (&field("score").into(), &"u32".into(), &1.into())
    );
    assert_eq!(list("?contains=score&after=last_score").0, ["score"]);
    problem(&server.get("/v1/symbols?like=score"), 400);
}

#[test]
fn domains_are_listed_with_their_bases_and_sizes() {
    let domains = ok(&Server::start().get("/v1/domains"));
    let domains = domains["domains"].as_array().unwrap();
    let wram = domains.iter().find(|domain| domain["id"] == "wram").unwrap();
    assert_eq!((&wram["base"], &wram["size"]), (&0x0200_0000.into(), &0x4_0000.into()));
}

/// Names from the symbols of one game are not valid in another game.
#[test]
fn names_are_refused_while_another_game_runs_and_work_again_afterwards() {
    let server = Server::paused();
    let demo = std::fs::read(repository("rom/framewire-demo.gba")).unwrap();
    let write = |name: &str, title: &[u8; 9], last: u8| {
        let mut rom = demo.clone();
        rom[0xA0..0xA9].copy_from_slice(title);
        *rom.last_mut().unwrap() ^= last;
        std::fs::write(server.file(name), rom).unwrap();
    };
    write("other.gba", b"ANOTHER\0\0", 0);
    write("rebuilt.gba", b"FRAMEWIRE", 1);
    let load = |name: &str| {
        posted(&server, "/v1/load", &json!({"path": server.file(name)}));
    };
    json_of(&server.get("/v1/memory/score"), 200);
    load("other.gba");
    let says = |problem: Value| {
        let detail = problem["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("for another game: FRAMEWIRE") && detail.contains("is ANOTHER"), "{detail}");
    };
    says(problem(&server.get("/v1/memory/score"), 404));
    says(problem(&server.get("/v1/memory?address=score"), 404));
    says(problem(&server.request("PUT", "/v1/memory/score", b"{\"value\":1}"), 404));
    says(problem(&server.request("POST", "/v1/wait", b"{\"until\":\"score > 1\"}"), 404));
    says(problem(&server.get("/v1/watch?watch=score"), 404));
    let batch = br#"{"ops":[{"op":"read32","address":"score"}]}"#;
    says(problem(&server.request("POST", "/v1/batch", batch), 404));
    assert_eq!(json_of(&server.get("/v1/symbols"), 200)["symbols"], json!([]));
    problem(&server.get("/v1/memory/score+"), 404);
    // Numeric addresses work in every game.
    json_of(&server.get("/v1/memory/0x02000000"), 200);
    for name in ["rebuilt.gba", "demo game.gba"] {
        load(name);
        json_of(&server.get("/v1/memory/score"), 200);
    }
}
