//! POST /v1/batch.

use serde_json::{Value, json};

use super::live::client::Rpc;
use super::posted;
use super::problems::problem;
use crate::support::{Server, field};

/// Sends a batch that must succeed, and returns the reply.
#[track_caller]
pub fn batch(server: &Server, body: &Value) -> Value {
    posted(server, "/v1/batch", body)
}

#[test]
fn operations_are_performed_in_order_in_one_frame() {
    let server = Server::paused();
    let address = field("score");
    let done = batch(
        &server,
        &json!({"ops": [
            {"op": "write32", "address": address, "value": 0x1234_5678},
            {"op": "read32", "address": address},
            {"op": "read8", "address": format!("{:#x}", address + 1)},
            {"op": "read_range", "address": address, "length": 4},
            {"op": "game_title"},
            {"op": "domains"},
            {"op": "set_keys", "keys": ["A", "Up"]},
            {"op": "get_key", "key": "Up"},
        ]}),
    );
    assert_eq!(done["frame"], 0);
    let values: Vec<&Value> =
        done["results"].as_array().unwrap().iter().map(|result| &result["value"]).collect();
    assert_eq!(
        values[..5],
        [&Value::Null, &json!(0x1234_5678), &json!(0x56), &json!("eFY0Eg=="), &json!("FRAMEWIRE")]
    );
    assert!(values[5].as_array().unwrap().contains(&"wram".into()));
    assert_eq!(values[7], 1);
    assert!(done["failed"].is_null());
}

#[test]
fn operations_on_several_values_have_one_result_each() {
    let server = Server::paused();
    let done = batch(
        &server,
        &json!({"encoding": "hex", "ops": [
            {"op": "write", "address": "ball_dx", "value": -2},
            {"op": "write_many", "writes": [
                {"address": "score", "value": "0xCAFE"}, {"address": "scratch+2", "value": -1, "type": "i16"}]},
            {"op": "read", "address": "ball_dx"},
            {"op": "read", "address": "ball_dx", "type": "u8"},
            {"op": "read_many", "addresses": ["score", "scratch", "scratch+2", "presses[3]"]},
            {"op": "read_many", "addresses": [0, 1], "type": "u32", "domain": "wram"},
            {"op": "read8", "address": 0x100, "domain": "wram"},
            {"op": "read8", "address": "scratch+2", "domain": null},
            {"op": "read_range", "address": "scratch", "length": 4},
            {"op": "read_many", "addresses": []},
        ]}),
    );
    let values: Vec<&Value> =
        done["results"].as_array().unwrap().iter().map(|result| result.get("value").unwrap()).collect();
    let expected = [
        json!(null),
        json!(null),
        json!(-2),
        json!(0xFE),
        json!([0xCAFE, 0, 0xFF, 0]),
        json!([0, 0]),
        json!(0),
        json!(0xFF),
        json!("0000ffff"),
        json!([]),
    ];
    assert_eq!(values, expected.iter().collect::<Vec<_>>());
}

#[test]
fn a_reply_that_would_be_too_large_is_refused() {
    let server = Server::paused();
    let large = json!({"op": "read_range", "address": 0, "length": 0x0090_0000});
    let body = json!({"ops": [large, large]});
    let error = problem(&server.send("POST", "/v1/batch", &body), 400);
    assert!(error["accepts"].as_str().unwrap().contains("16777216 bytes"), "{error}");
    assert_eq!(error["parameter"], "ops[1]");
}

#[test]
fn many_lists_of_frozen_values_in_one_reply_are_refused() {
    let server = Server::paused();
    let ops = |count| json!({"ops": vec![json!({"op": "frozen"}); count]});
    batch(&server, &ops(32));
    let error = problem(&server.send("POST", "/v1/batch", &ops(33)), 400);
    assert_eq!(error["parameter"], "ops[32]", "{error}");
}

#[test]
fn a_long_name_of_a_domain_is_refused_before_it_is_copied_for_each_address() {
    let server = Server::paused();
    let domain = "w".repeat(65);
    for op in [
        json!({"op": "read_many", "addresses": [0, 1], "domain": domain}),
        json!({"op": "write_many", "writes": [{"address": 0, "value": 1}], "domain": domain}),
    ] {
        let body = json!({"ops": [op]});
        let error = problem(&server.send("POST", "/v1/batch", &body), 400);
        assert_eq!(error["parameter"], "ops[0].domain", "{error}");
    }
    let error = problem(&server.get(&format!("/v1/memory?address=0&address=1&domain={domain}")), 400);
    assert_eq!(error["parameter"], "domain", "{error}");
}

#[test]
fn a_list_with_too_many_entries_is_refused_before_it_becomes_operations() {
    let server = Server::paused();
    let write = json!({"address": field("scratch"), "value": 1});
    for (name, list, entry) in [("read_many", "addresses", json!("score")), ("write_many", "writes", write)] {
        let op = |count| json!({"op": name, list: vec![entry.clone(); count]});
        batch(&server, &json!({"ops": [op(4096)]}));
        let body = json!({"ops": [{"op": "current_frame"}, op(4097)]});
        let error = problem(&server.send("POST", "/v1/batch", &body), 413);
        assert_eq!(error["parameter"], format!("ops[1].{list}"), "{error}");
        let detail = error["detail"].as_str().unwrap();
        assert!(detail.contains("has 4097 entries") && detail.contains("at most 4096"), "{error}");
        // The same operation alone.
        let mut params = op(4097);
        params.as_object_mut().unwrap().remove("op");
        let error = Rpc::open(&server).error(name, params, -32006);
        assert_eq!((&error["status"], &error["parameter"]), (&json!(413), &json!(list)), "{error}");
    }
}

#[test]
fn the_presses_and_steps_in_a_reply_count_as_its_bytes() {
    let server = Server::with(|app| app.limits.max_replies = 100_000);
    let input = json!({"op": "input", "append": true, "sequence": "A . ".repeat(32_000)});
    let body = json!({"ops": [input, input, input]});
    let error = problem(&server.send("POST", "/v1/batch", &body), 400);
    assert_eq!(error["parameter"], "ops[2]", "{error}");
    let steps = vec![json!({"until": "1", "frames": 1}); 1024];
    let body = json!({"ops": [{"op": "run", "steps": steps}]});
    problem(&server.send("POST", "/v1/batch", &body), 503);
    problem(&server.send("POST", "/v1/run", &json!({"steps": steps})), 503);
}

#[test]
fn a_body_with_very_many_objects_is_refused_before_it_uses_much_memory() {
    let server = Server::paused();
    let body = format!("{{\"ops\": [{}]}}", vec!["{}"; 131_072].join(","));
    let error = problem(&server.request("POST", "/v1/batch", body.as_bytes()), 413);
    assert!(error["detail"].as_str().unwrap().contains("131072 objects"), "{error}");
}

#[test]
fn a_batch_stops_at_the_first_failure() {
    let server = Server::paused();
    let address = field("score");
    let done = batch(
        &server,
        &json!({"ops": [
            {"op": "write8", "address": address, "value": 7},
            {"op": "tap", "keys": ["A"]},
            {"op": "tap", "keys": ["A"]},
            {"op": "write8", "address": address, "value": 8},
        ]}),
    );
    assert_eq!((done["failed"].as_u64(), done["results"].as_array().unwrap().len()), (Some(2), 3));
    let error = &done["results"][2]["error"];
    assert_eq!((&error["status"], &error["op"]), (&409.into(), &2.into()));
    assert!(error["detail"].as_str().unwrap().contains("plays A"), "{error}");
    assert_eq!(server.number(&format!("/core/read8?address={address}")), 7);
}

#[test]
fn an_invalid_operation_rejects_the_whole_batch() {
    let server = Server::paused();
    let address = field("score");
    let first = json!({"op": "write8", "address": address, "value": 7});
    for (wrong, parameter) in [
        (json!({}), "op"),
        (json!({"op": 1}), "op"),
        (json!({"op": "fly"}), "op"),
        (json!({"op": "watch", "id": 1}), "op"),
        (json!({"op": "read8"}), "address"),
        (json!({"op": "read8", "address": -1}), "address"),
        (json!({"op": "read8", "address": 1.5}), "address"),
        (json!({"op": "read8", "address": 4_294_967_296u64}), "address"),
        (json!({"op": "read8", "address": "nowhere"}), "address"),
        (json!({"op": "read8", "address": 0, "width": 8}), "width"),
        (json!({"op": "write8", "address": 0, "value": 256}), "value"),
        (json!({"op": "write_range", "address": 0, "data": "?"}), "data"),
        (json!({"op": "set_keys", "keys": ["a"]}), "keys"),
        (json!({"op": "set_keys", "keys": 1024}), "keys"),
        (json!({"op": "load_file", "path": 7}), "path"),
        (json!({"op": "unfreeze", "address": ["score"]}), "address"),
        (json!({"op": "read", "address": "scroe"}), "address"),
        (json!({"op": "read", "address": 0, "type": "u64"}), "type"),
        (json!({"op": "read", "address": 0, "domain": 1}), "domain"),
        (json!({"op": "read_many", "addresses": 1}), "addresses"),
        (json!({"op": "read_many", "addresses": [0, "x"]}), "addresses[1]"),
        (json!({"op": "write", "address": "ball_dx", "value": 40000}), "value"),
        (
            json!({"op": "write_many", "writes": [{"address": 0, "value": 1}, {"address": 0}]}),
            "writes[1].value",
        ),
        (json!({"op": "write_many", "writes": [1]}), "writes[0]"),
        (json!({"op": "read", "address": "score", "domain": "wram"}), "address"),
        (json!({"op": "domain_read8", "address": "score", "domain": "wram"}), "address"),
        (json!({"op": "read_many", "addresses": [0, "score"], "domain": "wram"}), "addresses[1]"),
        (json!({"op": "read", "address": 0x40000, "domain": "wram"}), "address"),
        (json!({"op": "read8", "address": 0x40000, "domain": "wram"}), "address"),
        (json!({"op": "write", "address": 0x3ffff, "value": 1, "type": "u16", "domain": "wram"}), "address"),
        (json!({"op": "read_range", "address": 4_294_967_295u64, "length": 16}), "address"),
        (json!({"op": "tap", "keys": []}), "keys"),
        (json!({"op": "tap", "keys": ["A"], "frames": 0}), "frames"),
        (json!({"op": "tap", "keys": ["A"], "frame": 1}), "frame"),
        (json!({"op": "input", "sequence": "A:x"}), "sequence"),
        (json!({"op": "input", "presses": [{"at": 0, "keys": ["Q"]}]}), "presses[0].keys"),
    ] {
        let body = json!({"ops": [first, wrong]});
        let error = problem(&server.send("POST", "/v1/batch", &body), 400);
        let place = format!("ops[1].{parameter}");
        assert_eq!((&error["parameter"], &error["op"]), (&place.as_str().into(), &1.into()), "{error}");
        assert!(error["detail"].as_str().unwrap().starts_with("ops[1]"), "{error}");
    }
    assert_eq!(server.number(&format!("/core/read8?address={address}")), 0);
    let many = json!({"ops": vec![json!({"op": "current_frame"}); 4097]});
    problem(&server.send("POST", "/v1/batch", &many), 413);
}

#[test]
fn arguments_are_checked_before_any_operation_is_performed() {
    let server = Server::paused();
    let address = field("score");
    let first = json!({"op": "write8", "address": address, "value": 7});
    let refused = |ops: Value, op: u64, says: &str| {
        let error = problem(&server.send("POST", "/v1/batch", &json!({"ops": ops})), 400);
        assert_eq!(error["op"], op, "{error}");
        let detail = error["detail"].as_str().unwrap();
        assert!(detail.starts_with(&format!("ops[{op}]")) && detail.contains(says), "{error}");
        assert_eq!(server.number(&format!("/core/read8?address={address}")), 0, "nothing was written");
    };
    for (wrong, says) in [
        (json!({"op": "set_speed", "thousandths": 9}), "10 to 1000000"),
        (json!({"op": "hold_keys", "keys": [], "frames": 1}), "names no key"),
        (json!({"op": "play_keys", "steps": "AAAA"}), "a step has 6"),
        (json!({"op": "set_sensor", "sensor": "light", "thousandths": -1}), "0 to 1000"),
        (json!({"op": "set_sensor", "sensor": "lihgt", "thousandths": 1}), "tilt_x"),
        (json!({"op": "freeze", "address": 0x1000_0000, "value": 1}), ".address is 0x10000000"),
        (json!({"op": "read_text", "address": 0x1000_0000, "length": 1}), ".address is 0x10000000"),
        (json!({"op": "evaluate", "values": ["u8[0x10000000]"]}), "expressions[0]: address is 0x10000000"),
        (
            json!({"op": "run", "steps": [{"until": "u8[0x10000000] == 1"}]}),
            "steps[0].until[0]: address is 0x10000000",
        ),
    ] {
        refused(json!([first, wrong]), 1, says);
    }
    // Of two wrong operations, the first is reported.
    let evaluate = json!({"op": "evaluate", "values": ["u8[0x10000000]"]});
    let done =
        batch(&server, &json!({"ops": [evaluate, {"op": "write8", "address": 0x1000_0000, "value": 7}]}));
    assert_eq!((&done["failed"], done["results"].as_array().unwrap().len()), (&0.into(), 1), "{done}");
    let advance = |frames: u32| json!({"op": "advance", "frames": frames});
    refused(json!([first, advance(3600), advance(1)]), 2, "run 3600");
    assert_eq!(server.number("/core/currentframe"), 0, "no frame has run");
    // A single operation is refused with the same status.
    let alone = json!({"ops": [{"op": "set_speed", "thousandths": 9}]});
    assert_eq!(problem(&server.send("POST", "/v1/batch", &alone), 400)["op"], 0);
}

#[test]
fn domains_are_checked_before_any_operation_is_performed() {
    let server = Server::paused();
    let refused = |ops: Value| problem(&server.send("POST", "/v1/batch", &json!({"ops": ops})), 400);
    for last in [
        json!({"op": "domain_read8", "domain": "nowhere", "address": 0}),
        json!({"op": "read", "domain": "wram", "address": 0x4_0000}),
    ] {
        let address = field("score");
        let error = refused(
            json!([{"op": "read8", "address": 0}, {"op": "write8", "address": address, "value": 7}, last]),
        );
        assert_eq!(error["op"], 2, "{error}");
        assert!(error["detail"].as_str().unwrap().contains("wram"), "{error}");
        assert_eq!(server.number(&format!("/core/read8?address={address}")), 0);
    }
    let error =
        refused(json!([{"op": "read", "address": 0}, {"op": "read", "domain": "wram", "address": 262_144}]));
    assert_eq!(error["op"], 1);
    assert!(error["detail"].as_str().unwrap().contains("262144 bytes"), "{error}");
}

#[test]
fn a_batch_repeated_with_its_idempotency_key_is_performed_once() {
    let server = Server::paused();
    let body = json!({"ops": [{"op": "step"}, {"op": "current_frame"}]}).to_string();
    let ask = || server.request_with("POST", "/v1/batch", "idempotency-key: one\r\n", body.as_bytes()).text();
    assert_eq!(ask(), ask());
}

#[test]
fn operations_are_listed() {
    let server = Server::start();
    let table: Value = serde_json::from_slice(&server.get("/v1/operations").body).unwrap();
    let operations = table["operations"].as_array().unwrap();
    let read8 = operations.iter().find(|operation| operation["name"] == "read8").unwrap();
    assert_eq!((&read8["effect"], &read8["result"]), (&"read".into(), &"int".into()));
    assert_eq!(read8["args"][0]["type"], "u32");
}

#[test]
fn a_file_or_a_state_that_cannot_be_used_is_a_422_in_a_batch() {
    let server = Server::paused();
    let file = server.file("text.gba");
    std::fs::write(&file, "not a game").unwrap();
    let folder = server.file("");
    for op in [
        json!({"op": "load_rom", "path": file}),
        json!({"op": "load_cheats", "path": file}),
        json!({"op": "load_save_file", "path": folder, "temporary": true}),
        json!({"op": "load_state", "data": "AAAA", "flags": 29}),
    ] {
        let done = batch(&server, &json!({"ops": [op]}));
        assert_eq!(done["results"][0]["error"]["status"], 422, "{done}");
    }
}

#[test]
fn a_missing_file_is_a_404_in_a_batch() {
    let server = Server::paused();
    for op in [
        json!({"op": "load_rom", "path": server.file("missing.gba")}),
        json!({"op": "load_file", "path": server.file("missing.gba")}),
        json!({"op": "load_state_file", "path": server.file("missing.ss1"), "flags": 0}),
        json!({"op": "load_save_file", "path": server.file("missing.sav"), "temporary": true}),
        json!({"op": "load_state_slot", "slot": 7, "flags": 0}),
    ] {
        let done = batch(&server, &json!({"ops": [op]}));
        let error = &done["results"][0]["error"];
        assert_eq!((&error["status"], &error["title"]), (&404.into(), &"Not Found".into()), "{done}");
        assert!(error["detail"].as_str().unwrap().contains("ops[0]"), "{done}");
    }
}
