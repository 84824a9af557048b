//! JSON-RPC over /v1/ws.

use std::time::{Duration, Instant};

use framewire_http::{Token, Tokens};
use serde_json::{Value, json};

use super::client::Rpc;
use super::watches::readers;
use crate::failures::{attached, silent_port};
use crate::support::{Server, field, sample, wait_for};
use crate::until_good::until_good;
use crate::v1::json_of;

const SCRATCH: &str = "u16[0x02000100]";
const ADDRESS: u32 = 0x0200_0100;

#[test]
fn operations_are_methods_with_parameters_by_name_or_in_order() {
    let server = Server::paused();
    let mut rpc = Rpc::open(&server);
    let write = json!({"address": "0x02000100", "value": 0x1234});
    assert_eq!(rpc.result("write16", write), json!({"frame": 0, "value": null}));
    assert_eq!(rpc.result("read16", json!([ADDRESS]))["value"], 0x1234);
    assert_eq!(rpc.result("game_title", json!({}))["value"], "FRAMEWIRE");
    let range = json!({"address": ADDRESS, "length": 2, "encoding": "hex"});
    assert_eq!(rpc.result("read_range", range)["value"], "3412");
    assert_eq!(rpc.result("emulator", json!({"emulator": "demo"}))["kind"], "embedded");
    assert_eq!(rpc.result("emulators", json!({}))["emulators"][0]["name"], "demo");
    assert!(rpc.result("operations", json!({}))["operations"].is_array());
    assert_eq!(rpc.result("read", json!({"address": "score"}))["value"], 0);
    assert_eq!(rpc.result("tap", json!({"keys": ["A"]}))["value"]["presses"][0]["keys"], json!(["A"]));
}

#[test]
fn batches_and_arrays_of_requests_are_answered() {
    let server = Server::paused();
    let mut rpc = Rpc::open(&server);
    let ops = json!({"ops": [{"op": "write8", "address": ADDRESS, "value": 5}, {"op": "read8", "address": ADDRESS}]});
    assert_eq!(rpc.result("batch", ops)["results"][1]["value"], 5);
    let array = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "write8", "params": [ADDRESS, 6]},
        {"jsonrpc": "2.0", "id": "b", "method": "read8", "params": [ADDRESS]},
        {"jsonrpc": "2.0", "method": "write8", "params": [ADDRESS, 7]},
        {"jsonrpc": "2.0", "id": "c", "method": "read8", "params": [ADDRESS]},
        {"jsonrpc": "2.0", "id": "d", "method": "nothing"},
        1,
    ]);
    rpc.send(array.to_string());
    let replies = rpc.receive().unwrap();
    let replies = replies.as_array().unwrap();
    let ids: Vec<&Value> = replies.iter().map(|reply| &reply["id"]).collect();
    assert_eq!(ids, [&json!("a"), &json!("b"), &json!("c"), &json!("d"), &Value::Null]);
    assert_eq!((&replies[1]["result"]["value"], &replies[2]["result"]["value"]), (&json!(6), &json!(7)));
    assert_eq!(
        (&replies[3]["error"]["code"], &replies[4]["error"]["code"]),
        (&json!(-32601), &json!(-32600))
    );
    // Notifications get no reply, so the next reply is for the next request.
    rpc.send(json!([{"jsonrpc": "2.0", "method": "get_keys"}]).to_string());
    rpc.send(json!({"jsonrpc": "2.0", "method": "nothing"}).to_string());
    assert_eq!(rpc.result("read8", json!([ADDRESS]))["value"], 7);
}

#[test]
fn lockstep_ends_with_the_websocket_that_began_it() {
    let server = Server::start();
    let is_on = || server.text("/v1/emulator").contains(r#""lockstep":true"#);
    for params in [json!([60_000]), json!({"timeout": 60_000})] {
        let time_until_the_end = || {
            let mut rpc = Rpc::open(&server);
            rpc.result("lockstep", params.clone());
            assert!(is_on());
            let begun = Instant::now();
            drop(rpc);
            wait_for("the end of lockstep", || !is_on());
            begun.elapsed()
        };
        until_good(time_until_the_end, |time| *time < Duration::from_secs(2));
    }
}

#[test]
fn a_request_that_does_not_end_lockstep_leaves_it_to_the_websocket_that_began_it() {
    let server = Server::start();
    let is_on = || server.text("/v1/emulator").contains(r#""lockstep":true"#);
    let mut rpc = Rpc::open(&server);
    rpc.result("lockstep", json!([60_000]));
    let ops = json!({"ops": [{"op": "remove_cheat", "id": 99}, {"op": "resume"}]});
    assert_eq!(json_of(&server.send("POST", "/v1/batch", &ops), 200)["failed"], 0);
    assert!(is_on());
    drop(rpc);
    wait_for("the end of lockstep", || !is_on());
}

#[test]
fn lockstep_ends_with_its_websocket_while_a_request_runs_that_then_fails() {
    let server = Server::start();
    let is_on = || server.text("/v1/emulator").contains(r#""lockstep":true"#);
    let mut rpc = Rpc::open(&server);
    rpc.result("lockstep", json!([60_000]));
    let ops = json!({"ops": [
        {"op": "run", "steps": [{"frames": 2000}]},
        {"op": "write8", "address": ADDRESS, "value": 1},
        {"op": "enable_cheat", "id": 99, "enabled": true},
        {"op": "resume"},
    ]});
    std::thread::scope(|scope| {
        let batch = scope.spawn(|| server.send("POST", "/v1/batch", &ops));
        let waiting =
            || sample(&server.text("/metrics"), "framewire_emulator_batches_waiting{emulator=\"demo\"}");
        wait_for("the batch", || waiting() == Some(1.0) || batch.is_finished());
        drop(rpc);
        assert_eq!(json_of(&batch.join().unwrap(), 200)["failed"], 2);
    });
    wait_for("the end of lockstep", || !is_on());
}

#[test]
fn many_open_requests_are_performed_in_order() {
    const MANY: u64 = 500;
    let server = Server::start();
    let mut rpc = Rpc::open(&server);
    for id in 0..MANY {
        let (method, params) = match id % 2 {
            0 => ("write16", json!([ADDRESS, id])),
            _ => ("read16", json!([ADDRESS])),
        };
        rpc.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
    }
    let mut answered = vec![false; MANY as usize];
    for _ in 0..MANY {
        let reply = rpc.receive().unwrap();
        let id = reply["id"].as_u64().unwrap();
        assert!(!std::mem::replace(&mut answered[id as usize], true), "{id} twice");
        if id % 2 == 1 {
            assert_eq!(reply["result"]["value"], id - 1, "{reply}");
        }
    }
}

#[test]
fn a_wait_does_not_delay_the_requests_after_it() {
    let server = Server::start();
    let mut rpc = Rpc::open(&server);
    let wait = json!({"until": format!("{SCRATCH} == 77"), "frames": 3600});
    rpc.send(json!({"jsonrpc": "2.0", "id": "wait", "method": "wait", "params": wait}).to_string());
    rpc.send(
        json!({"jsonrpc": "2.0", "id": "write", "method": "write16", "params": [ADDRESS, 77]}).to_string(),
    );
    let replies = [rpc.receive().unwrap(), rpc.receive().unwrap()];
    let waited = replies.iter().find(|reply| reply["id"] == "wait").unwrap();
    assert_eq!(waited["result"]["held"], true, "{waited}");
}

#[test]
fn a_wait_begins_before_the_requests_after_it_while_symbols_are_read_for_the_first_time() {
    for _ in 0..5 {
        let server = Server::paused();
        let mut rpc = Rpc::open(&server);
        let wait = json!({"until": format!("score < 100000 && {SCRATCH} == 77"), "frames": 60});
        rpc.send(json!({"jsonrpc": "2.0", "id": "wait", "method": "wait", "params": wait}).to_string());
        // The condition holds for a single frame.
        for value in [77, 0] {
            for (method, params) in [("write16", json!([ADDRESS, value])), ("advance", json!([1]))] {
                rpc.send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
            }
        }
        rpc.send(json!({"jsonrpc": "2.0", "method": "advance", "params": [60]}).to_string());
        let waited = rpc.receive().unwrap();
        assert_eq!((&waited["id"], &waited["result"]["held"]), (&json!("wait"), &json!(true)), "{waited}");
    }
}

#[test]
fn a_wait_that_the_emulator_does_not_begin_delays_no_other_request() {
    until_good(time_of_a_request_after_waits, |time| *time < Duration::from_secs(5));
}

/// How long a request takes if the emulator does not begin the waits before it.
fn time_of_a_request_after_waits() -> Duration {
    let (_listener, address) = silent_port();
    let server = attached(address, |app| app.deadline = Duration::from_secs(10));
    wait_for("the connection", || server.text("/v1/emulator").contains("\"connected\":true"));
    let mut rpc = Rpc::open(&server);
    let wait = json!({"until": format!("{SCRATCH} == 77")});
    for id in 0..3 {
        let wait = json!({"jsonrpc": "2.0", "id": format!("wait {id}"), "method": "wait", "params": wait});
        rpc.send(wait.to_string());
    }
    let asked = Instant::now();
    assert_eq!(rpc.result("emulator", json!({}))["connected"], true);
    asked.elapsed()
}

#[test]
fn subscriptions_report_events_until_they_are_cancelled() {
    let server = Server::start();
    let mut rpc = Rpc::open(&server);
    let subscribed = rpc.result("subscribe", json!({"watch": [SCRATCH]}));
    assert_eq!(subscribed["subscription"], 1);
    let values = rpc.next().unwrap();
    assert_eq!((values.name.as_str(), &values.data["values"][SCRATCH]), ("values", &json!(0)));
    rpc.result("write16", json!([ADDRESS, 3]));
    let change = rpc.next().unwrap();
    assert_eq!(change.data["changes"][SCRATCH], json!({"old": 0, "new": 3}));
    assert!(change.id.starts_with(subscribed["watch"].as_str().unwrap()));
    let resumed = rpc.result("subscribe", json!({"watch": [SCRATCH], "after": values.id}));
    assert_eq!(resumed, json!({"subscription": 2, "watch": subscribed["watch"]}));
    assert_eq!(rpc.next().unwrap(), change, "the earlier event is sent again");
    assert_eq!(rpc.result("unsubscribe", json!({"subscription": 1})), true);
    assert_eq!(rpc.result("unsubscribe", json!({"subscription": 2})), true);
    rpc.error("unsubscribe", json!({"subscription": 2}), -32004);
    rpc.result("write16", json!([ADDRESS, 4]));
    let after = rpc.result("wait", json!({"until": "false", "frames": 3}));
    assert_eq!(after["held"], false);
    assert_eq!(rpc.unread_events(), [], "no event comes after the end of its subscription");
    let watches = || json_of(&server.get("/v1/watches"), 200)["watches"].clone();
    wait_for("the end of the watch, which has no readers", || watches() == json!([]));
}

#[test]
fn errors_have_the_codes_of_the_specification_and_a_problem_as_data() {
    let server = Server::start();
    let mut rpc = Rpc::open(&server);
    let data = rpc.error("read9", json!({}), -32601);
    assert!(data["detail"].as_str().unwrap().contains("read9"), "{data}");
    let data = rpc.error("read8", json!({}), -32602);
    assert_eq!((&data["parameter"], &data["status"]), (&json!("address"), &json!(400)), "{data}");
    for (method, params, parameter) in [
        ("read8", json!({"address": -1}), "address"),
        ("read8", json!({"address": 0, "adress": 1}), "adress"),
        ("read8", json!([0, 1]), "params"),
        ("read8", json!({"address": 0, "emulator": "other"}), "emulator"),
        ("read8", json!({"address": 0, "encoding": "octal"}), "encoding"),
        ("read8", json!({"address": 0, "op": "read16"}), "op"),
        ("wait", json!({"until": "u8["}), "until"),
        ("wait", json!(["frame > 1"]), "params"),
        ("subscribe", json!({"watch": ["u8[0] >"]}), "watch[0]"),
        ("subscribe", json!({}), "watch"),
        ("subscribe", json!({"watch": ["frame"], "after": 5}), "after"),
        ("batch", json!({"ops": [{"op": "read8"}]}), "ops[0].address"),
        ("subscribe", json!({"watch": ["frame"], "buffer": "all"}), "buffer"),
        ("read_range", json!({"address": 4_294_967_295_u64, "length": 16}), "address"),
        ("domain_read8", json!({"domain": "wram", "address": 0x4_0000}), "address"),
        ("domain_write8", json!({"domain": "wram", "address": 0x4_0000, "value": 1}), "address"),
    ] {
        let data = rpc.error(method, params.clone(), -32602);
        assert_eq!(data["parameter"], parameter, "{method} {params}: {data}");
    }
    for (text, code) in
        [("{", -32700), ("[]", -32600), ("7", -32600), (r#"{"jsonrpc":"2.0","id":1}"#, -32600)]
    {
        rpc.send(text);
        assert_eq!(rpc.receive().unwrap()["error"]["code"], code, "{text}");
    }
    rpc.error("domain_read8", json!({"domain": "nowhere", "address": 0}), -32602);
    rpc.error("unsubscribe", json!({"subscription": 9}), -32004);
}

#[test]
fn the_subscriptions_and_requests_of_a_connection_are_limited() {
    let server = Server::start();
    let mut rpc = Rpc::open(&server);
    for _ in 0..64 {
        rpc.result("subscribe", json!({"events": true}));
    }
    let data = rpc.error("subscribe", json!({"events": true}), -32012);
    assert!(data["detail"].as_str().unwrap().contains("64 waits and subscriptions"), "{data}");
    rpc.error("wait", json!({"until": "false"}), -32012);
    rpc.result("unsubscribe", json!({"subscription": 1}));
    rpc.result("subscribe", json!({"events": true}));
    let mut rpc = Rpc::open(&server);
    let quick = |id| json!({"jsonrpc": "2.0", "id": id, "method": "get_keys"});
    let wait =
        json!({"jsonrpc": "2.0", "id": "w", "method": "wait", "params": {"until": "false", "frames": 600}});
    let all = std::iter::once(wait).chain((0..1023).map(quick));
    rpc.send(Value::from(all.collect::<Vec<_>>()).to_string());
    let data = rpc.error("get_keys", json!({}), -32012);
    assert!(data["detail"].as_str().unwrap().contains("1024 requests"), "{data}");
}

/// The waits of one client do not use up the limit of others.
#[test]
fn the_waits_of_a_connection_are_limited_and_others_are_served() {
    let server = Server::start();
    let mut greedy = Rpc::open(&server);
    for id in 0..200 {
        let wait = json!({"until": "u8[0x02000100] == 1", "frames": 216_000});
        greedy.send(json!({"jsonrpc": "2.0", "id": id, "method": "wait", "params": wait}).to_string());
    }
    for _ in 64..200 {
        let refusal = greedy.receive().unwrap();
        let detail = refusal["error"]["data"]["detail"].as_str().unwrap();
        assert!(detail.contains("64 waits and subscriptions"), "{refusal}");
    }
    let mut other = Rpc::open(&server);
    assert_eq!(other.result("wait", json!({"until": "frame > 0"}))["held"], true);
    other.result("write8", json!([ADDRESS, 1]));
    for _ in 0..64 {
        assert_eq!(greedy.receive().unwrap()["result"]["held"], true);
    }
    assert_eq!(greedy.result("wait", json!({"until": "1"}))["held"], true);
}

#[test]
fn a_message_that_is_too_large_ends_the_connection_with_the_reason() {
    let server = Server::with(|app| app.limits.max_body = 100_000);
    let mut rpc = Rpc::open(&server);
    assert!(rpc.result("get_keys", json!({}))["value"].is_number());
    rpc.send(" ".repeat(5_000_000));
    let (code, reason) = rpc.closed();
    assert_eq!(code, 1009);
    assert!(reason.contains("100000 bytes"), "{reason}");
}

#[test]
fn read_only_callers_change_nothing() {
    let [full, read] = [Token::random().unwrap(), Token::random().unwrap()];
    let tokens = Tokens::new(Some(full), Some(read.clone())).unwrap();
    let server = Server::with(|app| app.access.tokens = tokens);
    let mut rpc = Rpc::with_token(&server, server.connect(), "/v1/ws", Some(read.reveal()));
    assert_eq!(rpc.result("read16", json!([ADDRESS]))["value"], 0);
    rpc.result("subscribe", json!({"watch": [SCRATCH]}));
    assert_eq!(rpc.result("wait", json!({"until": "true"}))["held"], true);
    for params in
        [json!({"address": ADDRESS, "value": 1}), json!({"address": ADDRESS, "value": 1, "emulator": "demo"})]
    {
        let data = rpc.error("write16", params, -32001);
        assert!(data["detail"].as_str().unwrap().contains("is read-only"), "{data}");
    }
    rpc.error("tap", json!({"keys": ["A"]}), -32001);
    rpc.error("batch", json!({"ops": [{"op": "read8", "address": 0}, {"op": "reset"}]}), -32001);
    assert_eq!(rpc.result("read16", json!([ADDRESS]))["value"], 0);
}

#[test]
fn subscriptions_and_waits_end_with_their_connection() {
    let server = Server::start();
    let mut rpc = Rpc::open(&server);
    rpc.result("subscribe", json!({"watch": [SCRATCH]}));
    let wait = json!({"jsonrpc": "2.0", "id": "w", "method": "wait", "params": {"until": "false", "frames": 100_000}});
    rpc.send(wait.to_string());
    let mut other = Rpc::open(&server);
    assert_eq!(readers(&server), 1);
    drop(rpc);
    wait_for("the subscription's end", || readers(&server) == 0);
    assert!(other.result("read32", json!([field("frame")]))["value"].is_u64());
}
