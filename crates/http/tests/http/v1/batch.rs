//! POST /v1/batch.

use serde_json::{Value, json};

use super::problems::problem;
use crate::support::{Server, field};

/// What a batch is answered with.
#[track_caller]
pub fn batch(server: &Server, body: &Value) -> Value {
    let reply = server.request("POST", "/v1/batch", body.to_string().as_bytes());
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("application/json")),
        "{}",
        reply.text()
    );
    serde_json::from_slice(&reply.body).unwrap()
}

#[test]
fn operations_are_done_in_order_at_one_frame() {
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
fn the_first_that_fails_is_the_last_that_is_done() {
    let server = Server::paused();
    let address = field("score");
    let done = batch(
        &server,
        &json!({"ops": [
            {"op": "write8", "address": address, "value": 7},
            {"op": "domain_read8", "domain": "nowhere", "address": 0},
            {"op": "write8", "address": address, "value": 8},
        ]}),
    );
    assert_eq!((done["failed"].as_u64(), done["results"].as_array().unwrap().len()), (Some(1), 2));
    let error = &done["results"][1]["error"];
    assert_eq!((&error["status"], &error["op"]), (&400.into(), &1.into()));
    assert!(error["detail"].as_str().unwrap().contains("wram"), "{error}");
    assert_eq!(server.number(&format!("/core/read8?address={address}")), 7);
}

#[test]
fn one_that_cannot_be_read_lets_nothing_be_done() {
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
    ] {
        let body = json!({"ops": [first, wrong]}).to_string();
        let told = problem(&server.request("POST", "/v1/batch", body.as_bytes()), 400);
        assert_eq!((&told["parameter"], &told["op"]), (&parameter.into(), &1.into()), "{told}");
        assert!(told["detail"].as_str().unwrap().starts_with("ops[1]: "), "{told}");
    }
    assert_eq!(server.number(&format!("/core/read8?address={address}")), 0);
    let many = json!({"ops": vec![json!({"op": "current_frame"}); 4097]}).to_string();
    problem(&server.request("POST", "/v1/batch", many.as_bytes()), 413);
}

#[test]
fn a_repeated_key_does_nothing_twice() {
    let server = Server::paused();
    let body = json!({"ops": [{"op": "step"}, {"op": "current_frame"}]}).to_string();
    let ask = || server.request_with("POST", "/v1/batch", "idempotency-key: one\r\n", body.as_bytes()).text();
    assert_eq!(ask(), ask());
}

#[test]
fn the_table_is_told() {
    let server = Server::start();
    let table: Value = serde_json::from_slice(&server.get("/v1/operations").body).unwrap();
    let operations = table["operations"].as_array().unwrap();
    let read8 = operations.iter().find(|operation| operation["name"] == "read8").unwrap();
    assert_eq!((&read8["effect"], &read8["result"]), (&"read".into(), &"int".into()));
    assert_eq!(read8["args"][0]["type"], "u32");
}
