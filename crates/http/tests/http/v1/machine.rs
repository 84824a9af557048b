//! Registers of the processor, I/O registers and cycle counts, on both kinds of emulator and both consoles.

use framewire_emulator::Embedded;
use framewire_emulator::embedded::Rom;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::live::client::Rpc;
use super::live::script::{ScriptPort, connected, ready};
use super::problems::{problem, problem_says};
use super::{json_of, posted, sent};
use crate::support::{Server, game_boy, wait_for};

fn put(server: &Server, path: &str, value: i64, status: u16) -> Value {
    sent(server, "PUT", path, &json!({"value": value}), status)
}

/// The registers of the processor, over HTTP.
fn registers(server: &Server) -> Value {
    json_of(&server.get("/v1/registers"), 200)["registers"].clone()
}

/// The name and the JSON of each I/O register whose name contains this text.
fn io(server: &Server, contains: &str) -> Vec<(String, Value)> {
    let all = json_of(&server.get(&format!("/v1/io?contains={contains}")), 200);
    let registers = all["registers"].as_array().unwrap().iter();
    registers.map(|one| (one["name"].as_str().unwrap().to_owned(), one.clone())).collect()
}

/// Stops the frames between the requests of a test, with lockstep.
fn stop_frames(server: &Server) {
    wait_for("frames", || json_of(&server.get("/v1/emulator"), 200)["frame"].as_u64() > Some(10));
    posted(server, "/v1/lockstep", &json!({"timeout": 20_000}));
}

/// Lists, reads and writes registers of the Game Boy Advance's processor by name.
fn uses_registers_of_the_gba(server: &Server) {
    stop_frames(server);
    let before = json_of(&server.get("/v1/registers"), 200);
    assert_eq!(before["console"], "Game Boy Advance");
    let names: Vec<&str> = before["registers"].as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "cpsr", "r0", "r1", "r10", "r11", "r12", "r13", "r14", "r15", "r2", "r3", "r4", "r5", "r6", "r7",
        "r8", "r9",
    ];
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    put(server, "/v1/registers/r3", 4_000_000_000, 200);
    put(server, "/v1/registers/r5", -2, 200);
    let after = registers(server);
    assert_eq!((&after["r3"], &after["r5"]), (&json!(4_000_000_000_u32), &json!(u32::MAX - 1)));
    assert_eq!(after["r4"], before["registers"]["r4"]);
    let mut rpc = Rpc::open(server);
    rpc.result("write_register", json!({"register": "r6", "value": 77}));
    assert_eq!(rpc.result("read_register", json!(["r6"]))["value"], 77);
    assert_eq!(rpc.result("registers", json!({}))["registers"]["r6"], 77);
    rpc.result("writeRegister", json!({"name": "r6", "value": 78}));
    assert_eq!(registers(server)["r6"], 78);
    refuses_registers(server, "r99", "cpsr");
}

/// The same for the Game Boy.
fn uses_registers_of_the_game_boy(server: &Server) {
    stop_frames(server);
    let before = json_of(&server.get("/v1/registers"), 200);
    assert_eq!(before["console"], "Game Boy");
    let mut names: Vec<&str> = before["registers"].as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "af", "b", "bc", "c", "d", "de", "e", "f", "h", "hl", "l", "pc", "sp"]);
    // The program is a loop: inc (hl); jr back to inc.
    assert_eq!(before["registers"]["hl"], 0xc000);
    assert!((0x153..=0x155).contains(&before["registers"]["pc"].as_u64().unwrap()), "{before}");
    put(server, "/v1/registers/de", 0x1234, 200);
    put(server, "/v1/registers/b", 0xab, 200);
    let after = registers(server);
    assert_eq!((&after["d"], &after["e"], &after["b"]), (&json!(0x12), &json!(0x34), &json!(0xab)));
    assert_eq!(after["c"], before["registers"]["c"]);
    let mut rpc = Rpc::open(server);
    rpc.result("write_register", json!({"register": "a", "value": 7}));
    assert_eq!(rpc.result("read_register", json!(["a"]))["value"], 7);
    refuses_registers(server, "r0", "sp");
}

/// Checks that an unknown name is refused with a list of the names, and that a number that is too large is refused.
fn refuses_registers(server: &Server, unknown: &str, known: &str) {
    let refusal = put(server, &format!("/v1/registers/{unknown}"), 1, 400);
    assert!(refusal["detail"].as_str().unwrap().contains(known), "{refusal}");
    assert_eq!(put(server, "/v1/registers/pc", 5_000_000_000, 400)["parameter"], "value");
}

/// Reads and writes I/O registers of the Game Boy Advance that the demo game does not use.
fn uses_io_of_the_gba(server: &Server) {
    stop_frames(server);
    for (name, value) in [("SIOMULTI2", 0x1234), ("JOY_TRANS", 0x1234_5678), ("WAVE_RAM1_H", 0xa5c3)] {
        put(server, &format!("/v1/io/{name}"), value, 200);
        let found = io(server, name);
        assert_eq!((found.len(), &found[0].1["value"]), (1, &json!(value)), "{found:?}");
    }
    let wave = &io(server, "wave_ram1_h")[0].1["fields"];
    assert_eq!(*wave, json!({"sample0": 0xc, "sample1": 3, "sample2": 0xa, "sample3": 5}));
    assert_eq!(io(server, "FIFO_").len(), 2);
    assert_eq!(put(server, "/v1/io/HALTCNT", 256, 400)["parameter"], "value");
    let refusal = put(server, "/v1/io/WAVE_0", 1, 404);
    assert!(refusal["detail"].as_str().unwrap().contains("GET /v1/io"), "{refusal}");
}

/// The same for the Game Boy Color.
fn uses_io_of_the_game_boy(server: &Server) {
    stop_frames(server);
    assert_eq!(io(server, "").len(), 76);
    for (name, value, fields) in [
        ("NR50", 0x95, json!({"vin_left": 1, "left": 1, "vin_right": 0, "right": 5})),
        ("NR12", 0xf3, json!({"volume": 15, "envelope_up": 0, "envelope_step": 3})),
        ("NR43", 0x5c, json!({"shift": 5, "narrow": 1, "divider": 4})),
        ("WAVE_3", 0xa5, json!({"first": 0xa, "second": 5})),
        ("BCPS", 0x82, json!({"index": 2, "increment": 1})),
        ("BGP", 0xe4, json!({"color0": 0, "color1": 1, "color2": 2, "color3": 3})),
    ] {
        put(server, &format!("/v1/io/{name}"), value, 200);
        let found = io(server, name);
        assert_eq!(found[0].1["fields"], fields, "{found:?}");
    }
    let raw = json_of(&server.get("/v1/memory/0xff33"), 200)["value"].clone();
    assert_eq!(raw, 0xa5);
    // BCPD takes one byte of a colour at a time, and then BCPS points to the next byte. The next line writes a byte of
    // colour 1 of palette 0.
    put(server, "/v1/io/BCPD", 0x1f, 200);
    assert_eq!(io(server, "BCPS")[0].1["fields"]["index"], 3);
    assert_eq!(put(server, "/v1/io/HDMA5", 256, 400)["parameter"], "value");
}

/// Counts the cycles of frames over HTTP, in batches and over JSON-RPC.
fn counts_cycles(server: &Server, frequency: i64, frame_cycles: u64) {
    stop_frames(server);
    let before = json_of(&server.get("/v1/cycles"), 200);
    assert_eq!(before["frequency"], frequency);
    let ops = json!({"ops": [
        {"op": "cycles"}, {"op": "advance", "frames": 10}, {"op": "cycles"}, {"op": "step"}, {"op": "cycles"},
    ]});
    let done = posted(server, "/v1/batch", &ops);
    let value = |index: usize| done["results"][index]["value"].as_u64().unwrap_or_else(|| panic!("{done}"));
    assert_eq!(before["cycles"], value(0));
    assert!((value(2) - value(0)).abs_diff(10 * frame_cycles) < 200, "{done}");
    assert!((1..200).contains(&(value(4) - value(2))), "{done}");
    let mut rpc = Rpc::open(server);
    assert_eq!(rpc.result("cycles", json!({}))["value"], value(4));
    assert_eq!(rpc.result("cycleCounter", json!({}))["cycles"], value(4));
}

/// A server that runs a Game Boy Color.
fn server_of_the_game_boy() -> Server {
    let folder = tempfile::tempdir().unwrap();
    Server::playing(game_boy(&folder), folder, false, |_| {})
}

/// An emulator that runs a Game Boy Color and the script, a server that is connected to the script, and the folder of
/// the game.
fn connected_game_boy() -> (Embedded, Server, TempDir) {
    let (port, folder) = (ScriptPort::new(), tempfile::tempdir().unwrap());
    let (core, server) = (port.core_of(Rom::File(game_boy(&folder))), port.server(|_| {}));
    ready(&server);
    (core, server, folder)
}

#[test]
fn registers_are_listed_and_written_by_name() {
    uses_registers_of_the_gba(&Server::start());
}

#[test]
fn registers_of_the_game_boy_are_listed_and_written_by_name() {
    uses_registers_of_the_game_boy(&server_of_the_game_boy());
}

#[test]
fn registers_of_an_attached_mgba_are_listed_and_written_by_name() {
    let (_core, server) = connected();
    uses_registers_of_the_gba(&server);
}

#[test]
fn registers_of_an_attached_game_boy_are_listed_and_written_by_name() {
    let (_core, server, _folder) = connected_game_boy();
    uses_registers_of_the_game_boy(&server);
}

#[test]
fn io_registers_are_read_and_written_by_name() {
    uses_io_of_the_gba(&Server::start());
    uses_io_of_the_game_boy(&server_of_the_game_boy());
}

#[test]
fn io_registers_of_attached_consoles_are_read_and_written_by_name() {
    let (core, server) = connected();
    uses_io_of_the_gba(&server);
    drop((server, core));
    let (_core, server, _folder) = connected_game_boy();
    uses_io_of_the_game_boy(&server);
}

#[test]
fn cycles_are_counted_on_both_consoles() {
    counts_cycles(&Server::start(), 16_777_216, 280_896);
    counts_cycles(&server_of_the_game_boy(), 4_194_304, 70_224);
}

#[test]
fn an_attached_mgba_refuses_to_count_cycles_with_the_reason() {
    let (_core, server) = connected();
    problem_says(&server.get("/v1/cycles"), 501, "mGBA's Lua cannot read the cycle counter");
    let done = posted(&server, "/v1/batch", &json!({"ops": [{"op": "cycles"}]}));
    assert_eq!(done["results"][0]["error"]["status"], 501, "{done}");
    Rpc::open(&server).error("cycles", json!({}), -32010);
}

#[test]
fn io_registers_are_decoded() {
    let server = Server::start();
    let frames = json!({"steps": [{"frames": 90}]});
    posted(&server, "/v1/run", &frames);
    posted(&server, "/v1/hold", &json!({"keys": ["Left"]}));
    posted(&server, "/v1/run", &json!({"steps": [{"frames": 2}]}));
    let all = json_of(&server.get("/v1/io"), 200);
    let registers = all["registers"].as_array().unwrap();
    assert!(registers.len() > 80, "{all}");
    let named = |name: &str| registers.iter().find(|register| register["name"] == name).unwrap();
    let raw = json_of(&server.get("/v1/memory/0x04000000?type=u16"), 200)["value"].clone();
    assert_eq!((&named("DISPCNT")["value"], &named("DISPCNT")["address"]), (&raw, &0x0400_0000.into()));
    assert_eq!(named("DISPCNT")["fields"]["mode"].as_u64().unwrap(), raw.as_u64().unwrap() & 7);
    assert_eq!(
        (&named("KEYINPUT")["fields"]["left"], &named("KEYINPUT")["fields"]["a"]),
        (&0.into(), &1.into())
    );
    let some = json_of(&server.get("/v1/io?contains=tm0"), 200);
    let names: Vec<_> = some["registers"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["TM0CNT_L", "TM0CNT_H"]);
    assert_eq!(problem(&server.get("/v1/io?contains=none"), 400)["parameter"], "contains");
}
