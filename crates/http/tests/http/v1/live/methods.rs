//! The routes of /v1 as JSON-RPC methods. docs/json-rpc.md lists the error codes.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use framewire_http::{Files, Token, Tokens};
use serde_json::{Value, json};

use super::client::Rpc;
use crate::support::{Server, field, wait_for};
use crate::v1::json_of;

/// Routes with endless replies. They are not methods.
const STREAMS: [&str; 6] = ["audio", "events", "jsonRpc", "video", "videoMultipart", "watch"];

/// The operation ids of all routes under `/v1` except login and logout, with their methods and paths.
fn routes(server: &Server) -> Vec<(String, String, String)> {
    let document = json_of(&server.get("/openapi.json"), 200);
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if path.starts_with("/v1/") && !["/v1/login", "/v1/logout"].contains(&path.as_str()) {
                let id = operation["operationId"].as_str().unwrap().to_owned();
                all.push((id, method.to_uppercase(), path.clone()));
            }
        }
    }
    all
}

#[test]
fn every_route_in_the_document_except_streams_is_a_method() {
    let server = Server::paused();
    let mut rpc = Rpc::open(&server);
    let routes = routes(&server);
    assert!(routes.len() > 50, "{}", routes.len());
    for (id, ..) in &routes {
        let reply = rpc.ask(&format!("v1.{id}"), json!({"no such parameter": 1}));
        let code = reply["error"]["code"].as_i64().unwrap_or_else(|| panic!("{id}: {reply}"));
        assert_eq!(code == -32601, STREAMS.contains(&id.as_str()), "{id}: {reply}");
        if code == -32601 {
            let accepts = reply["error"]["data"]["accepts"].as_str().unwrap();
            assert!(accepts.contains("that is not a stream"), "{id}: {accepts}");
        }
    }
    let ids: BTreeSet<&str> = routes.iter().map(|(id, ..)| id.as_str()).collect();
    assert!(STREAMS.iter().all(|stream| ids.contains(stream)));
}

#[test]
fn a_body_for_a_route_without_one_is_refused() {
    let server = Server::paused();
    let mut rpc = Rpc::open(&server);
    let error = rpc.error("unfreezeAllMemory", json!({"body": "x"}), -32602);
    assert!(error.to_string().contains("body"), "{error}");
}

#[test]
fn the_documentation_names_every_method() {
    let page = std::fs::read_to_string(crate::support::repository("docs/json-rpc.md")).unwrap();
    for (id, ..) in routes(&Server::paused()) {
        assert!(
            page.contains(&format!("`{id}`")) || page.contains(&format!("`v1.{id}`")),
            "docs/json-rpc.md does not name {id}"
        );
    }
}

#[test]
fn the_result_of_a_method_is_the_reply_of_its_route() {
    let server = Server::paused();
    let mut rpc = Rpc::open(&server);
    for (method, params, target) in [
        ("symbols", json!({"contains": "ball"}), "/v1/symbols?contains=ball"),
        ("emulators", json!({}), "/v1/emulators"),
        ("operations", json!({}), "/v1/operations"),
        ("v1.domains", json!({}), "/v1/domains"),
        ("readMemory", json!({"address": "presses[1]"}), "/v1/memory/presses[1]"),
        (
            "readMemory",
            json!({"address": "score", "length": 3, "encoding": "hex"}),
            "/v1/memory/score?length=3&encoding=hex",
        ),
        ("readScattered", json!({"address": ["score", "lives"]}), "/v1/memory?address=score&address=lives"),
        ("snapshots", json!({"limit": 5}), "/v1/snapshots?limit=5"),
        ("watches", json!({"emulator": "demo"}), "/v1/watches?emulator=demo"),
    ] {
        assert_eq!(rpc.result(method, params), json_of(&server.get(target), 200), "{method}");
    }
    let picture = rpc.result("v1.screenshot", json!({}));
    assert_eq!((&picture["type"], &picture["frame"]), (&json!("image/png"), &json!(0)), "{picture}");
    assert_eq!(STANDARD.decode(picture["data"].as_str().unwrap()).unwrap(), server.get("/v1/screen").body);
}

#[test]
fn states_snapshots_and_searches_work_as_methods() {
    let server = Server::paused();
    let mut rpc = Rpc::open(&server);
    assert_eq!(rpc.result("v1.advance", json!({"frames": 30}))["frame"], 30);
    let state = rpc.result("saveState", json!({"flags": 0}));
    assert_eq!((&state["type"], &state["frame"]), (&json!("application/octet-stream"), &json!(30)));
    assert_eq!(rpc.result("writeMemory", json!({"address": "score", "value": 7}))["frame"], 30);
    rpc.result("v1.advance", json!({"frames": 5}));
    assert_eq!(rpc.result("loadState", json!({"body": state["data"]}))["frame"], 30);
    assert_eq!(rpc.result("readMemory", json!({"address": "score"}))["value"], 0);

    assert_eq!(rpc.result("saveSnapshot", json!({"name": "a", "note": "n"}))["note"], "n");
    assert_eq!(rpc.result("changeSnapshot", json!({"name": "a", "body": {"name": "b"}}))["name"], "b");
    assert_eq!(rpc.result("snapshotPicture", json!({"name": "b"}))["type"], "image/png");
    rpc.result("v1.advance", json!({"frames": 5}));
    assert_eq!(rpc.result("loadSnapshot", json!({"name": "b"}))["frame"], 30);
    assert_eq!(rpc.result("deleteSnapshot", json!({"name": "b"})), Value::Null);
    rpc.error("snapshot", json!({"name": "b"}), -32004);

    let search = rpc.result("beginSearch", json!({"type": "u8"}));
    let id = search["id"].as_u64().unwrap();
    let narrowed = rpc.result("narrowSearch", json!({"id": id, "is": "equal", "value": 0}));
    assert!(narrowed["count"].as_u64() < search["count"].as_u64(), "{narrowed}");
    assert_eq!(rpc.result("undoSearch", json!({"id": id}))["count"], search["count"]);
    assert!(rpc.result("searchCandidates", json!({"id": id, "limit": 1}))["candidates"][0].is_object());
    assert_eq!(rpc.result("endSearch", json!({"id": id})), Value::Null);
}

#[test]
fn recordings_input_and_watches_work_as_methods() {
    let server = Server::start();
    let mut rpc = Rpc::open(&server);
    assert_eq!(rpc.result("startRecording", json!({"name": "r"}))["name"], "r");
    let played = rpc.result("v1.tap", json!({"keys": ["A"], "wait": true}));
    assert_eq!((&played["presses"][0]["keys"], &played["over"]["cancelled"]), (&json!(["A"]), &json!(false)));
    let played = rpc.result("v1.input", json!({"sequence": "A:1 .:2 B:1"}));
    assert_eq!(played["presses"].as_array().unwrap().len(), 2, "{played}");
    rpc.result("release", json!({}));
    wait_for("some frames", || {
        json_of(&server.get("/v1/recording"), 200)["frames"].as_u64().unwrap_or(0) > 5
    });
    let frames = rpc.result("stopRecording", json!({}))["frames"].as_u64().unwrap();
    let file = rpc.result("downloadRecording", json!({"name": "r"}));
    assert_eq!(rpc.result("uploadRecording", json!({"name": "s", "body": file["data"]}))["frames"], frames);
    assert_eq!(rpc.result("replayRecording", json!({"name": "s"}))["equal"], true);
    let watch = rpc.result("createWatch", json!({"watch": ["score"]}))["id"].clone();
    assert_eq!(rpc.result("showWatch", json!({"id": watch}))["id"], watch);
    assert_eq!(rpc.result("deleteWatch", json!({"id": watch})), Value::Null);
}

#[test]
fn parameters_that_a_route_does_not_take_are_refused() {
    let server = Server::paused();
    let mut rpc = Rpc::open(&server);
    for (method, params, code, parameter) in [
        ("snapshot", json!({}), -32602, "name"),
        ("snapshot", json!({"name": ["a"]}), -32602, "name"),
        ("snapshots", json!({"limit": 0}), -32602, "limit"),
        ("snapshots", json!({"limt": 1}), -32602, "limt"),
        ("snapshots", json!({"limit": {}}), -32602, "limit"),
        ("saveSnapshot", json!({"nam": "a"}), -32602, "nam"),
        ("saveSnapshot", json!({"body": {"name": "a"}, "note": "b"}), -32602, "note"),
        ("loadState", json!({}), -32602, "body"),
        ("loadState", json!({"body": 5}), -32602, "body"),
        ("loadState", json!({"body": "?"}), -32602, "body"),
        ("loadState", json!({"body": "", "flag": 1}), -32602, "flag"),
        ("v1.pause", json!({"now": true}), -32602, "now"),
        ("saveSnapshot", json!(["a"]), -32602, "params"),
    ] {
        let data = rpc.error(method, params.clone(), code);
        assert_eq!(data["parameter"], parameter, "{method} {params}: {data}");
    }
    rpc.error("v1.read8", json!({"address": 0}), -32601);
    rpc.error("v1.subscribe", json!({}), -32601);
    rpc.error("saveSnapshot", json!({"emulator": "other"}), -32004);
    rpc.error("../openapi", json!({}), -32601);
    let data = rpc.error("snapshot", json!({"name": "../../a"}), -32602);
    assert_eq!(data["parameter"], "name", "{data}");
}

#[test]
fn methods_reach_the_emulator_in_the_order_of_the_requests() {
    let server = Server::paused();
    let mut rpc = Rpc::open(&server);
    for id in 0..100 {
        let method = if id % 2 == 0 { "v1.advance" } else { "current_frame" };
        rpc.send(json!({"jsonrpc": "2.0", "id": id, "method": method}).to_string());
    }
    for _ in 0..100 {
        let reply = rpc.receive().unwrap();
        let id = reply["id"].as_u64().unwrap();
        let result = &reply["result"];
        let frame = if id.is_multiple_of(2) { &result["frame"] } else { &result["value"] };
        assert_eq!(*frame, id / 2 + 1, "{reply}");
    }
}

#[test]
fn a_method_repeated_with_its_idempotency_key_is_performed_once() {
    let server = Server::paused();
    let mut rpc = Rpc::open(&server);
    let save = json!({"note": "once", "idempotency_key": "save"});
    let first = rpc.result("saveSnapshot", save.clone());
    assert_eq!(rpc.result("saveSnapshot", save), first);
    assert_eq!(rpc.result("snapshots", json!({}))["total"], 1);
    let other = json!({"note": "other", "idempotency_key": "save"});
    let data = rpc.error("saveSnapshot", other, -32602);
    assert_eq!(
        (&data["status"], data["detail"].as_str().unwrap().contains("another request")),
        (&json!(422), true)
    );

    let advance = json!({"frames": 3, "idempotency_key": "advance"});
    assert_eq!(rpc.result("advance", advance.clone()), json!({"frame": 3, "value": 3}));
    assert_eq!(rpc.result("advance", advance.clone()), json!({"frame": 3, "value": 3}));
    let mut again = Rpc::open(&server);
    assert_eq!(again.result("advance", advance)["frame"], 3, "over another connection too");
    let batch = json!({"ops": [{"op": "advance", "frames": 2}], "idempotency_key": "batch"});
    assert_eq!(rpc.result("batch", batch.clone())["frame"], 5);
    assert_eq!(rpc.result("batch", batch)["frame"], 5);
    assert_eq!(rpc.result("current_frame", json!({}))["value"], 5);

    let data = rpc.error("write8", json!({"address": "nowhere", "value": 1, "idempotency_key": "k"}), -32602);
    assert_eq!(data["parameter"], "address", "{data}");
    rpc.result("tap", json!({"keys": ["B"], "frames": 5}));
    rpc.error("tap", json!({"keys": ["B"]}), -32005);
    let tap = json!({"keys": ["B"], "idempotency_key": "tap"});
    let data = rpc.error("tap", tap.clone(), -32005);
    assert!(data["op"].is_null() && !data["detail"].as_str().unwrap().contains("ops[0]"), "{data}");
    rpc.result("advance", json!({"frames": 10}));
    rpc.result("tap", tap);
    for method in ["wait", "v1.wait", "subscribe", "emulator", "snapshots"] {
        let data = rpc.error(method, json!({"until": "1", "idempotency_key": "k"}), -32602);
        assert!(data["detail"].as_str().unwrap().contains("idempotency_key"), "{method}: {data}");
    }
    for wrong in [json!(""), json!(5), json!("k".repeat(256))] {
        let data = rpc.error("pause", json!({"idempotency_key": wrong}), -32602);
        assert_eq!(data["parameter"], "idempotency_key");
    }
}

#[test]
fn repeated_json_keys_are_refused_and_nothing_is_performed() {
    let server = Server::paused();
    let mut rpc = Rpc::open(&server);
    rpc.result("advance", json!({"frames": 3}));
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"current_frame","method":"reset"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"batch","params":{"ops":[{"op":"current_frame","op":"reset"}]}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"id":2,"method":"reset"}]"#,
    ] {
        rpc.send(text);
        let reply = rpc.receive().unwrap();
        assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(-32600), &Value::Null), "{reply}");
        assert!(reply["error"]["data"]["detail"].as_str().unwrap().contains("twice"), "{reply}");
    }
    assert_eq!(rpc.result("current_frame", json!({}))["value"], 3);
}

#[test]
fn read_only_callers_change_nothing_with_any_method() {
    let [full, read] = [Token::random().unwrap(), Token::random().unwrap()];
    let tokens = Tokens::new(Some(full.clone()), Some(read.clone())).unwrap();
    let server = Server::with(|app| app.access.tokens = tokens);
    let without_tokens = Server::paused();
    let mut rpc = Rpc::with_token(&server, server.connect(), "/v1/ws", Some(read.reveal()));
    let mut seen = 0;
    for (id, method, path) in routes(&without_tokens) {
        let may_use = ["/v1/batch", "/v1/wait", "/v1/watches", "/v1/search", "/v1/find"]
            .iter()
            .any(|base| path.starts_with(base));
        if method == "GET" || may_use {
            continue;
        }
        let params = json!({"name": "a", "address": 0x0200_0100, "id": 1, "body": "AAAA", "value": 1});
        let data = rpc.error(&format!("v1.{id}"), params, -32001);
        assert!(data["detail"].as_str().unwrap().contains("is read-only"), "{id}: {data}");
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
    for key in [json!(null), json!("k")] {
        let ops = json!({"ops": [{"op": "reset"}], "idempotency_key": key});
        rpc.error("batch", ops, -32001);
        rpc.error("reset", json!({"idempotency_key": key}), -32001);
    }
    rpc.result("saveState", json!({}));
}

#[test]
fn methods_have_the_same_limits_on_files_and_memory_as_requests() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    std::fs::create_dir(&files).unwrap();
    let server = Server::with(|app| {
        app.access.files = Some(Files::within(&files).unwrap());
        app.limits.max_replies = 100_000;
    });
    let mut rpc = Rpc::open(&server);
    let outside = folder.path().join("p.png").to_str().unwrap().to_owned();
    for key in [json!(null), json!("k")] {
        for path in [outside.as_str(), "../p.png"] {
            rpc.error("screenshot_file", json!({"path": path, "idempotency_key": key}), -32602);
            rpc.error("v1.load", json!({"path": path, "idempotency_key": key}), -32602);
        }
    }
    assert!(!folder.path().join("p.png").exists());
    let data = rpc.error("saveState", json!({}), -32012);
    assert!(data["detail"].as_str().unwrap().contains("leave no room"), "{data}");
    rpc.error("readMemory", json!({"address": field("scratch"), "length": 200_000, "format": "raw"}), -32012);

    let server = Server::start();
    let mut rpc =
        Rpc::with_headers(&server, server.connect(), "/v1/ws", &[("x-forwarded-for", "203.0.113.7")]);
    rpc.error("v1.load", json!({"path": outside}), -32001);
    rpc.error("screenshot_file", json!({"path": outside}), -32001);
}

/// An array can have 1,024 requests, and all their results are in memory until the last one is done.
#[test]
fn the_results_of_an_array_count_together_as_large_replies() {
    for (method, params, most, is_busy) in [
        ("read_range", json!({"address": field("scratch"), "length": 16_384}), 100_000, true),
        ("read_range", json!({"address": field("scratch"), "length": 1024}), 100_000, false),
        ("operations", json!({}), 4_000_000, true),
    ] {
        let server = Server::with(|app| app.limits.max_replies = most);
        let mut rpc = Rpc::open(&server);
        rpc.result(method, params.clone());
        let request = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
        rpc.send(json!(vec![request; 64]).to_string());
        let replies = rpc.receive().unwrap();
        let busy =
            replies.as_array().unwrap().iter().filter(|reply| reply["error"]["code"] == -32012).count();
        assert!((busy > 0) == is_busy && busy < 64, "{method}: {busy}");
        rpc.result(method, params);
    }
}
