//! Errors of watches and waits.

use serde_json::{Value, json};

use super::client::{Events, Rpc, watch};
use super::script::connected;
use crate::support::{Server, encoded, wait_for};
use crate::v1::json_of;
use crate::v1::problems::{problem, problem_says};

/// Checks that an error is about `parameter`, and that its text contains `part`.
#[track_caller]
fn about(error: &Value, parameter: &str, part: &str) {
    assert_eq!(error["parameter"], parameter, "{error}");
    assert!(error["detail"].as_str().unwrap().contains(part), "{part}: {error}");
}

#[test]
fn the_error_for_a_wrong_watch_says_what_is_wrong() {
    let server = Server::start();
    let refused = |target: &str| problem(&server.get(target), 400);
    about(&refused("/v1/watch"), "watch", "is missing");
    about(&refused(&watch(&["u8[0]", "u16[0x02000000"])), "watch[1]", "column 15");
    about(&refused(&watch(&["nothing > 1"])), "watch[0]", "column 1");
    about(&refused(&watch(&["u8[0]", "u8[0]"])), "watch[1]", "again");
    about(&refused(&format!("{}&buffer=0", watch(&["u8[0]"]))), "buffer", "1 to 16384");
    about(&refused("/v1/watch?id=w1&events=true"), "id", "either");
    for query in
        ["watch=u8[0]&buffer=x", "watch=u8[0]&encoding=octal", "watch=u8[0]&evnts=true", "events=maybe"]
    {
        refused(&format!("/v1/watch?{}", query.replace('[', &encoded("[")).replace(']', &encoded("]"))));
    }
    let many: Vec<String> = (0..65).map(|place| format!("u8[{place}]")).collect();
    about(&refused(&watch(&many.iter().map(String::as_str).collect::<Vec<_>>())), "watch", "at most 64");
    let ranges: Vec<String> = (0..17).map(|place| format!("bytes[{place}, 4096]")).collect();
    about(&refused(&watch(&ranges.iter().map(String::as_str).collect::<Vec<_>>())), "watch", "65536 bytes");
    assert_eq!(json_of(&server.get("/v1/watches"), 200), json!({"watches": []}), "a watch was created");
}

#[test]
fn a_batch_that_an_attached_mgba_refuses_says_which_operation_is_wrong() {
    let (_core, server) = connected();
    json_of(&server.request("PUT", "/v1/memory/scratch", br#"{"value": 0}"#), 200);
    let write = json!({"op": "write", "address": "scratch", "value": 7});
    for (wrong, status, says) in [
        (json!({"op": "advance", "frames": 1}), 400, "`advance` must be the last operation of its batch"),
        (json!({"op": "rewind", "frame": 4_000_000_000_u32, "line": 99}), 404, "kept"),
    ] {
        let ops = json!({"ops": [write, wrong, {"op": "current_frame"}]});
        let error = problem(&server.send("POST", "/v1/batch", &ops), status);
        assert_eq!(error["op"], 1, "{error}");
        assert!(error["detail"].as_str().unwrap().contains(says), "{error}");
        assert_eq!(json_of(&server.get("/v1/memory/scratch"), 200)["value"], 0, "nothing was written");
    }
}

#[test]
fn unknown_domains_and_emulators_are_refused() {
    let server = Server::start();
    problem_says(&server.get(&watch(&["u8[nowhere:0]"])), 400, "nowhere");
    problem(&server.get("/v1/watch?events=true&emulator=other"), 404);
}

#[test]
fn the_error_for_a_wrong_wait_says_what_is_wrong() {
    let server = Server::start();
    let refused = |body: &Value| problem(&server.send("POST", "/v1/wait", body), 400);
    assert!(refused(&json!({}))["detail"].as_str().unwrap().contains("until"));
    about(&refused(&json!({"until": "u8[0] ="})), "until", "column 7");
    about(&refused(&json!({"until": "u8[0]", "frames": 0})), "frames", "1 to 216000");
    about(&refused(&json!({"until": "u8[0]", "frames": 216_001})), "frames", "1 to 216000");
    about(&refused(&json!({"until": 5})), "until", "a text");
    about(&refused(&json!({"until": "1", "frmaes": 5})), "frmaes", "frmaes");
    problem(&server.request("POST", "/v1/wait", b"{"), 400);
    problem(&server.get("/v1/wait"), 405);
}

#[test]
fn the_numbers_of_streams_and_watches_are_limited() {
    let server = Server::with(|app| {
        app.limits.max_streams_per_address = 2;
        app.limits.max_watches = 3;
    });
    let open = [Events::open(&server, "/v1/events"), Events::open(&server, "/v1/events")];
    for target in ["/v1/events", "/v1/watch?watch=frame"] {
        let reply = server.get(target);
        assert_eq!(reply.header("retry-after"), Some("1"));
        assert!(problem(&reply, 503)["detail"].as_str().unwrap().contains("2 streams"));
    }
    drop(open);
    // The watch of `/v1/events` continues without readers and counts too, so only two more can be created.
    for number in 1..3 {
        json_of(&server.send("POST", "/v1/watches", &json!({"watch": [format!("u8[{number}]")]})), 201);
    }
    problem_says(&server.send("POST", "/v1/watches", &json!({"watch": ["u8[3]"]})), 503, "3 watches");
}

/// The number of readers of all watches.
fn all_readers(server: &Server) -> u64 {
    let list = json_of(&server.get("/v1/watches"), 200);
    list["watches"].as_array().unwrap().iter().map(|watch| watch["readers"].as_u64().unwrap()).sum()
}

/// Watches that are kept for clients that may return are dropped when others need the memory.
#[test]
fn watches_without_readers_are_dropped_if_the_memory_is_needed() {
    let server = Server::with(|app| app.limits.max_watches = 6);
    let large = |number: u32| -> Vec<String> {
        (0..16).map(|range| format!("bytes[{}, 4096]", 0x0200_0000 + 16 * number + range)).collect()
    };
    for number in 0..20 {
        let mut rpc = Rpc::open(&server);
        rpc.result("subscribe", json!({"watch": large(number)}));
        drop(rpc);
        wait_for("the reader to be gone", || all_readers(&server) == 0);
    }
    let mut rpc = Rpc::open(&server);
    for number in 100..104 {
        rpc.result("subscribe", json!({"watch": large(number)}));
    }
    let error = rpc.error("subscribe", json!({"watch": large(104)}), -32012);
    assert!(error["detail"].as_str().unwrap().contains("262144 bytes"), "{error}");
    rpc.result("unsubscribe", json!({"subscription": 1}));
    rpc.result("subscribe", json!({"watch": large(104)}));
}

/// Each choice of `buffer` makes a watch of its own.
#[test]
fn watches_of_events_without_readers_are_dropped_if_others_need_their_place() {
    let server = Server::with(|app| app.limits.max_watches = 3);
    for buffer in 1..=10 {
        let mut rpc = Rpc::open(&server);
        rpc.result("subscribe", json!({"events": true, "buffer": buffer}));
        drop(rpc);
        wait_for("the reader to be gone", || all_readers(&server) == 0);
    }
}

#[test]
fn a_request_without_a_websocket_handshake_is_refused() {
    let server = Server::start();
    problem_says(&server.get("/v1/ws"), 400, "WebSocket");
}
