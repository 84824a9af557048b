//! Pointers, structures, texts, frozen values and appended key timelines, on both kinds of emulator.

use serde_json::{Value, json};

use super::client::{Events, Rpc, watch};
use super::script::connected;
use crate::support::{Server, encoded, field, wait_for};
use crate::v1::problems::{problem, problem_says};
use crate::v1::{json_of, posted, sent};

fn batch(server: &Server, ops: Value) -> Value {
    posted(server, "/v1/batch", &json!({"ops": ops, "encoding": "hex"}))
}

fn values(server: &Server, ops: Value) -> Vec<Value> {
    let done = batch(server, ops);
    let results = done["results"].as_array().unwrap();
    results.iter().map(|result| result.get("value").unwrap_or_else(|| panic!("{done}")).clone()).collect()
}

/// The addresses of a pointer and of the number that it points to. The game uses neither of them.
fn pointer() -> (u32, u32) {
    (field("scratch"), field("scratch") + 16)
}

fn follows_pointers(server: &Server) {
    let (pointer, number) = pointer();
    let text = format!("u32[{pointer:#x}] + 4");
    let found = values(
        server,
        json!([
            {"op": "write32", "address": pointer, "value": number - 4},
            {"op": "write", "address": text, "value": -5, "type": "i16"},
            {"op": "read", "address": text, "type": "i16"},
            {"op": "read", "address": number, "type": "i16"},
            {"op": "read_many", "addresses": [text, number, "u32[scratch] + 5"]},
            {"op": "read16", "address": text},
            {"op": "write8", "address": "u32[scratch]+6", "value": 7},
            {"op": "write_range", "address": "u32[scratch]+7", "data": "0809"},
            {"op": "read_range", "address": "u32[scratch]+4", "length": 5},
            {"op": "write_many", "writes": [{"address": text, "value": 0x1234, "type": "u16"}]},
            {"op": "read", "address": number, "type": "u16"},
        ]),
    );
    assert_eq!(found[2..5], [json!(-5), json!(-5), json!([0xfb, 0xfb, 0xff])]);
    assert_eq!((&found[5], &found[8], &found[10]), (&json!(0xfffb), &json!("fbff070809"), &json!(0x1234)));

    let path = format!("/v1/memory/{}", encoded("u32[scratch] + 4"));
    let read = json_of(&server.get(&format!("{path}?type=u16")), 200);
    assert_eq!((&read["address"], &read["value"]), (&number.into(), &0x1234.into()), "{read}");
    let read = json_of(&server.get(&format!("{path}?length=2&encoding=hex")), 200);
    assert_eq!((&read["address"], &read["data"]), (&number.into(), &"3412".into()), "{read}");
    assert_eq!(server.get(&format!("{path}?length=2&format=raw")).body, [0x34, 0x12]);
    sent(server, "PUT", &path, &json!({"value": 77, "type": "u32"}), 200);
    sent(server, "PUT", &format!("/v1/memory/{}", encoded("u32[scratch]+8")), &json!({"data": "AQI="}), 200);
    let many = format!(
        "/v1/memory?address={0}&address={1}&type=u32",
        encoded("u32[scratch]+4"),
        encoded("scratch+16")
    );
    assert_eq!(json_of(&server.get(&many), 200)["values"], json!([77, 77]));
    let done = Rpc::open(server).result("read", json!({"address": "u32[scratch]+8", "type": "u16"}));
    assert_eq!(done["value"], json!(0x0201));
}

fn refuses_invalid_pointers(server: &Server) {
    let (pointer, _) = pointer();
    sent(server, "PUT", &format!("/v1/memory/{pointer}"), &json!({"value": 0x1000_0000, "type": "u32"}), 200);
    let path = |text: &str| format!("/v1/memory/{}", encoded(text));
    for (text, says) in [
        ("u32[scratch]", "address is 0x10000000, which is not on the bus"),
        ("u8[u32[scratch]]", "address has no value at the moment"),
        ("u32[scratch] - 0x20000000", "address is -268435456 at the moment"),
        ("u32[scrtch]", "did you mean"),
        ("u32[scratch", "`]` is missing"),
        ("u8[0x10000000]", "0x10000000"),
    ] {
        problem_says(&server.get(&path(text)), 400, says);
    }
    let done = batch(
        server,
        json!([{"op": "current_frame"}, {"op": "write", "address": "u32[scratch]", "value": 1}]),
    );
    assert_eq!(done["failed"], 1, "{done}");
    let in_domain = json!({"ops": [{"op": "read", "address": "u32[scratch]", "domain": "wram"}]});
    problem(&server.send("POST", "/v1/batch", &in_domain), 400);
}

fn freezes_values(server: &Server) {
    let (pointer, number) = pointer();
    values(server, json!([{"op": "write32", "address": pointer, "value": number}]));
    sent(server, "PUT", "/v1/freeze/lives", &json!({"value": 3}), 200);
    sent(server, "PUT", &format!("/v1/freeze/{}", encoded("u32[scratch]")), &json!({"data": "AQID"}), 200);
    let kept = values(
        server,
        json!([
            {"op": "freeze", "address": number + 8, "value": 513, "type": "u16"},
            {"op": "freeze", "address": "lives", "value": 5},
            {"op": "frozen"},
        ]),
    );
    let expected = json!([
        {"address": "u32[scratch]", "data": "AQID"},
        {"address": format!("{:#010x}", number + 8), "type": "u16", "value": 513},
        {"address": "lives", "type": "u16", "value": 5},
    ]);
    assert_eq!(kept[2], expected);
    assert_eq!(json_of(&server.get("/v1/freeze"), 200)["frozen"], expected);
    let lives = || json_of(&server.get("/v1/memory/lives"), 200)["value"].clone();
    for _ in 0..3 {
        values(
            server,
            json!([{"op": "write", "address": "lives", "value": 1}, {"op": "write8", "address": number, "value": 9}]),
        );
        wait_for("the values", || lives() == 5);
    }
    wait_for("the bytes", || {
        json_of(&server.get(&format!("/v1/memory/{number}?length=3")), 200)["data"] == "AQID"
    });
    assert_eq!(
        values(
            server,
            json!([{"op": "unfreeze", "address": number + 8}, {"op": "unfreeze", "address": "x"}])
        ),
        [json!(true), json!(false)]
    );
    json_of(&server.request("DELETE", "/v1/freeze/lives", b""), 200);
    problem_says(&server.request("DELETE", "/v1/freeze/lives", b""), 404, "\"lives\"");
    // The ball is moved up, so that it is not lost within these frames. A lost ball would change `lives`.
    let written = json!([
        {"op": "write", "address": "lives", "value": 2},
        {"op": "write", "address": "ball_y", "value": 1000},
    ]);
    let later =
        json!({"ops": written, "steps": [{"frames": 3}], "then": [{"op": "read", "address": "lives"}]});
    assert_eq!(posted(server, "/v1/run", &later)["then"][0]["value"], 2);
    json_of(&server.request("DELETE", "/v1/freeze", b""), 200);
    assert_eq!(json_of(&server.get("/v1/freeze"), 200)["frozen"], json!([]));
    // If frozen values overlap, the later one is written last.
    let overlapping = json!([
        {"op": "freeze", "address": number + 8, "value": 0x1111, "type": "u16"},
        {"op": "freeze", "address": number + 8, "value": 0x22, "type": "u8"},
    ]);
    values(server, overlapping);
    let until = json!({"until": format!("frame > {}", json_of(&server.get("/v1/emulator"), 200)["frame"].as_u64().unwrap() + 2)});
    posted(server, "/v1/wait", &until);
    let read = json!([{"op": "read16", "address": number + 8}, {"op": "unfreeze", "address": "*"}]);
    assert_eq!(values(server, read)[0], json!(0x1122));
    for (path, body, says) in [
        ("/v1/freeze/scroe", json!({"value": 1}), "did you mean"),
        ("/v1/freeze/lives", json!({"value": 70_000}), "0 to 65535"),
        ("/v1/freeze/lives", json!({"data": ""}), "1 to 64"),
        ("/v1/freeze/0", json!({"value": 1}), "BIOS"),
        ("/v1/freeze/lives", json!({}), "either value"),
    ] {
        problem_says(&server.send("PUT", path, &body), 400, says);
    }
}

fn appends_timelines(server: &Server) {
    let input = |body: Value| posted(server, "/v1/input", &body);
    let lockstep = |timeout: u32| posted(server, "/v1/lockstep", &json!({"timeout": timeout}));
    // Without lockstep, the timelines could end before the requests that depend on them.
    lockstep(60_000);
    let first = input(json!({"sequence": "A:40 .:20"}));
    let second = input(json!({"sequence": "A:5", "append": true}));
    let third = values(server, json!([{"op": "input", "sequence": "B:2 .:3", "append": true}])).remove(0);
    let start = first["first"].as_u64().unwrap();
    assert_eq!((&second["first"], &second["last"]), (&(start + 60).into(), &(start + 64).into()), "{second}");
    assert_eq!((&third["first"], &third["last"]), (&(start + 65).into(), &(start + 69).into()), "{third}");
    problem_says(&server.send("POST", "/v1/tap", &json!({"keys": ["B"]})), 409, "plays B");
    // `held` contains the keys that the game saw.
    let seen = |key: &str, frames: u32| json!({"until": format!("held == {key}"), "frames": frames});
    let body = json!({"steps": [seen("1", 60), seen("0", 60), seen("1", 60), seen("2", 60), seen("0", 60)]});
    let done = posted(server, "/v1/run", &body);
    assert_eq!(done["why"], "condition", "{done}");
    let frame = |step: usize| done["steps"][step]["frame"].as_u64().unwrap();
    assert_eq!((frame(2) - frame(1), frame(3) - frame(2), frame(4) - frame(3)), (20, 5, 2), "{done}");
    lockstep(0);
    let path = format!("/v1/input/{}", third["id"]);
    wait_for("the end of the timeline", || json_of(&server.get(&path), 200)["over"]["cancelled"] == false);
    let fourth = posted(server, "/v1/input?wait=true", &json!({"sequence": "L:2", "append": true}));
    assert_eq!(
        (&fourth["first"], &fourth["over"]["cancelled"]),
        (&(fourth["frame"].as_u64().unwrap() + 1).into(), &false.into())
    );
}

fn watches_pointers(server: &Server) {
    let (pointer, number) = pointer();
    let write = |address: u32, value: u32| {
        values(server, json!([{"op": "write32", "address": address, "value": value}]));
    };
    write(pointer, number);
    write(number, 7);
    write(number + 4, 9);
    let text = "u32[u32[scratch]]";
    let mut rpc = Rpc::open(server);
    let larger = format!("{text} > 8");
    rpc.result("subscribe", json!({"watch": [text, larger]}));
    assert_eq!(rpc.next().unwrap().data["values"], json!({text: 7, &larger: false}));
    write(pointer, number + 4);
    let change = rpc.next().unwrap().data;
    let expected = json!({text: {"old": 7, "new": 9}, larger: {"old": false, "new": true}});
    assert_eq!(change["changes"], expected, "{change}");
    let waited = posted(server, "/v1/wait", &json!({"until": format!("{text} == 9"), "frames": 600}));
    assert_eq!(waited["held"], true);
    let waiting = json!({"until": format!("{text} == 10"), "frames": 6});
    assert_eq!(posted(server, "/v1/wait", &waiting)["held"], false);
    write(pointer, 0xFFFF_FFFF);
    let waited = posted(server, "/v1/wait", &json!({"until": format!("{text} == 9"), "frames": 6}));
    assert_eq!(waited["held"], false, "there is no such memory");
    for (text, says) in [("u32[u32[scratch]", "`]` is missing"), ("u8[u32[0x10000000]]", "0x10000000")] {
        problem_says(&server.send("POST", "/v1/wait", &json!({"until": text})), 400, says);
    }
}

/// Recordings do not contain writes to memory, so a recording and a frozen value exclude each other.
fn records_no_frozen_values(server: &Server) {
    let record = |name: &str| server.send("POST", "/v1/recordings", &json!({"name": name}));
    sent(server, "PUT", "/v1/freeze/lives", &json!({"value": 3}), 200);
    problem_says(&record("first"), 503, "value at lives is frozen");
    json_of(&server.request("DELETE", "/v1/freeze", b""), 200);
    json_of(&record("second"), 201);
    let error = problem(&server.request("PUT", "/v1/freeze/lives", br#"{"value": 3}"#), 503);
    assert!(error["detail"].as_str().unwrap().contains("is being recorded or replayed"), "{error}");
    json_of(&server.request("DELETE", "/v1/recording", b""), 200);
    sent(server, "PUT", "/v1/freeze/lives", &json!({"value": 3}), 200);
    json_of(&server.request("DELETE", "/v1/freeze", b""), 200);
}

/// `crates/http/tests/http/structures.toml` defines `party`, `speed` and `angle`. In a monster of the party, `kind` is
/// three bits of the byte at 4, and `money` is a BCD number. `speed` has a fixed point, and `angle` is a float.
fn names_structures(server: &Server) {
    let written = json!([
        {"op": "write32", "address": "scratch", "value": 0x0200_0110},
        {"op": "write", "address": "party[2].hp", "value": 345},
        {"op": "write8", "address": "party[2]+4", "value": 0x5f},
        {"op": "write", "address": "party[2].money", "value": 0x1234, "type": "u16"},
        {"op": "write", "address": "speed", "value": -384, "type": "i16"},
        {"op": "write", "address": "angle", "value": 0x3fc0_0000, "type": "u32"},
        {"op": "read_many", "addresses": ["party[2].hp", "party[2].kind", "party[2].money", "speed", "angle"]},
        {"op": "evaluate", "values": ["party[u8[0x02000114] * 0 + 2].hp", "party[2].kind + party[2].money"]},
    ]);
    let found = values(server, written);
    assert_eq!(found[6], json!([345, 5, 1234, -1.5, 1.5]));
    assert_eq!(
        found[7],
        json!({"party[u8[0x02000114] * 0 + 2].hp": 345, "party[2].kind + party[2].money": 1239})
    );
    let path = format!("/v1/memory/{}", encoded("party[2].hp"));
    let read = json_of(&server.get(&path), 200);
    assert_eq!(read, json!({"frame": read["frame"], "address": 0x0200_0126, "type": "u16", "value": 345}));
    sent(server, "PUT", &format!("/v1/freeze/{}", encoded("party[1].hp")), &json!({"value": 9}), 200);
    let until = json!({"until": "party[1].hp == 9 and party[2].money == 1234", "frames": 300});
    assert_eq!(posted(server, "/v1/wait", &until)["held"], true);
    json_of(&server.request("DELETE", "/v1/freeze", b""), 200);
    for (text, says) in
        [("party[3].hp", "0 to 2"), ("party[2].xp", "fields of `party`"), ("party.hp", "fields of `party`")]
    {
        let error = problem(&server.get(&format!("/v1/memory/{}", encoded(text))), 400);
        assert!(error["detail"].as_str().unwrap().contains(says), "{text}: {error}");
    }
    problem_says(&server.request("PUT", "/v1/memory/speed", br#"{"value": 1}"#), 400, "fraction");
    let listed = json_of(&server.get("/v1/symbols?contains=part"), 200);
    let hp = json!({"name": "hp", "offset": 2, "type": "u16", "count": 1, "doc": "What is left."});
    let party = &listed["variables"][0];
    assert_eq!(
        (&party["pointer"], &party["type"], &party["count"], &party["size"], &party["fields"][0]),
        (&json!("u32[scratch] + 4"), &json!("monster"), &json!(3), &json!(8), &hp)
    );
}

fn reads_texts(server: &Server) {
    let written = json!([
        {"op": "write_range", "address": "scratch+32", "data": "46574f52445300"},
        {"op": "read_text", "address": "scratch+32", "length": 20},
        {"op": "write32", "address": "scratch", "value": field("scratch") + 32},
        {"op": "read_text", "address": "u32[scratch] + 1", "length": 4},
        {"op": "evaluate", "values": ["text[scratch+32] == \"FWORDS\"", "text[u32[scratch]] != \"FWORDS\""]},
        {"op": "write32", "address": "scratch+48", "value": 0x3fd0_0000},
        {"op": "write16", "address": "scratch+52", "value": 0x1357},
    ]);
    let found = values(server, written);
    assert_eq!((&found[1], &found[3]), (&json!("FWORDS"), &json!("WORD")));
    assert_eq!(found[4].as_object().unwrap().values().collect::<Vec<_>>(), [&json!(1), &json!(0)]);
    let waited = posted(server, "/v1/wait", &json!({"until": "text[scratch+33] == \"WORDS\"", "frames": 60}));
    assert_eq!(waited["held"], true);
    watches_texts(server);
    let path = "/v1/memory/scratch?length=4&format=text";
    assert_eq!(json_of(&server.get(path), 200)["text"], " \u{1}");
    let find = |body: Value| {
        let found = posted(server, "/v1/find", &body);
        (found["count"].clone(), found["places"][0]["address"].clone(), found["places"][0]["symbol"].clone())
    };
    let at = |offset: u32| (json!(1), json!(field("scratch") + offset), json!(format!("scratch[{offset}]")));
    let area = json!([{"address": "scratch", "length": 256}]);
    for (name, value, offset) in [
        ("text", json!("WORDS"), 33),
        ("bytes", json!("RFM="), 36),
        ("float", json!(1.625), 48),
        ("bcd", json!(1357), 52),
        ("bcd", json!(5713), 52),
        ("pointer_to", json!("scratch+32"), 0),
    ] {
        assert_eq!(find(json!({name: value, "areas": area})), at(offset), "{name}");
    }
    for (body, says) in [
        (json!({}), "exactly one"),
        (json!({"text": "A", "bcd": 1}), "exactly one"),
        (json!({"text": ""}), "no bytes"),
        (json!({"text": "A".repeat(4097)}), "text has too many bytes; accepted is 4096 or fewer"),
        (json!({"bcd": 100_000_000}), "99999999"),
        (json!({"bytes": "?"}), "base64"),
        (json!({"text": "A", "limit": 0}), "1 to 10000"),
    ] {
        let error = problem(&server.send("POST", "/v1/find", &body), 400);
        assert!(error["detail"].as_str().unwrap().contains(says), "{body}: {error}");
    }
    for (text, says) in [
        ("text[scratch] == 5", "expected a text"),
        ("text[scratch] > \"A\"", "== or !="),
        ("\"A\" == 1", "the text"),
        ("text[scratch] == \"A", "no end"),
        ("text[scratch, 4]", "not a number"),
        ("bytes[scratch, 4]", "not a number"),
        ("bytes[scratch, 4] > 5", "be compared"),
        ("bytes[scratch, 4] == \"0102\"", "2 bytes are compared with 4"),
    ] {
        let error = problem(&server.send("POST", "/v1/wait", &json!({"until": text})), 400);
        assert!(error["detail"].as_str().unwrap().contains(says), "{text}: {error}");
    }
}

/// Watches report texts as values. Watches, waits and runs can compare bytes.
fn watches_texts(server: &Server) {
    let (text, bytes) = ("text[scratch+32, 20]", "bytes[scratch+32, 3] == \"46574f\"");
    let mut events = Events::open(server, &watch(&[text, bytes, "bytes[u32[scratch], 2] == \"4657\""]));
    let values = events.wait_for("values").data["values"].clone();
    assert_eq!((&values[text], &values[bytes]), (&json!("FWORDS"), &json!(true)));
    // Nobody plays the game, so one ball after another is lost. With nine balls, `lives` is still above 0 when a
    // condition below checks that.
    let written = json!([
        {"op": "write_range", "address": "scratch+32", "data": "47"},
        {"op": "write", "address": "lives", "value": 9},
    ]);
    batch(server, written);
    // The emulator evaluates the expression with the pointer separately, so its change may come in an event of its own.
    let mut changes = serde_json::Map::new();
    while changes.len() < 3 {
        changes.extend(events.wait_for("change").data["changes"].as_object().unwrap().clone());
    }
    assert_eq!(changes[text], json!({"old": "FWORDS", "new": "GWORDS"}));
    assert_eq!(changes[bytes], json!({"old": true, "new": false}));
    let held = |until: &str| {
        let waited = posted(server, "/v1/wait", &json!({"until": until, "frames": 60}));
        waited["held"] == true
    };
    assert!(held("bytes[scratch+32, 2] == \"4757\" and lives > 0"));
    let ran = json!({"steps": [{"until": "bytes[u32[scratch], 1] != \"46\"", "frames": 60}]});
    assert_eq!(posted(server, "/v1/run", &ran)["why"], "condition");
    batch(server, json!([{"op": "write_range", "address": "scratch+32", "data": "46"}]));
}

fn writes_io(server: &Server) {
    sent(server, "PUT", "/v1/io/bldy", &json!({"value": 5}), 200);
    problem(&server.request("PUT", "/v1/io/NOTHING", br#"{"value": 5}"#), 404);
    problem_says(&server.request("PUT", "/v1/io/DISPCNT", br#"{"value": 65536}"#), 400, "0 to 65535");
    // Registers can also be written as memory. This one is BG0VOFS.
    let body = json!({"ops": [{"op": "write16", "address": 0x0400_0012, "value": 0}]});
    posted(server, "/v1/batch", &body);
}

fn check(server: &Server) {
    let game = json!({"steps": [{"until": "u32[frame] > 60"}]});
    posted(server, "/v1/run", &game);
    follows_pointers(server);
    refuses_invalid_pointers(server);
    freezes_values(server);
    appends_timelines(server);
    watches_pointers(server);
    names_structures(server);
    reads_texts(server);
    writes_io(server);
    records_no_frozen_values(server);
}

#[test]
fn pointers_frozen_values_and_appended_timelines_work() {
    check(&Server::start());
}

#[test]
fn pointers_frozen_values_and_appended_timelines_work_on_an_attached_mgba() {
    let (_core, server) = connected();
    check(&server);
}
