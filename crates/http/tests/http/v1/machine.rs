//! Registers of the processor, and registers for input and output.

use serde_json::json;

use super::live::client::{json_of, post};
use super::problems::problem;
use crate::support::Server;

#[test]
fn registers_are_listed_and_written_by_name() {
    let server = Server::paused();
    let before = json_of(&server.get("/v1/registers"), 200);
    assert_eq!(before["console"], "Game Boy Advance");
    assert_eq!(before["registers"].as_object().unwrap().len(), 17, "{before}");
    let body = json!({"value": 4_000_000_000_u32}).to_string();
    json_of(&server.request("PUT", "/v1/registers/r3", body.as_bytes()), 200);
    let after = json_of(&server.get("/v1/registers"), 200);
    assert_eq!(after["registers"]["r3"], 4_000_000_000_u32);
    assert_eq!(after["registers"]["r4"], before["registers"]["r4"]);
    let told = problem(&server.request("PUT", "/v1/registers/r99", body.as_bytes()), 400);
    assert!(told["detail"].as_str().unwrap().contains("cpsr"), "{told}");
    let large = json!({"value": 5_000_000_000_u64}).to_string();
    assert_eq!(
        problem(&server.request("PUT", "/v1/registers/r3", large.as_bytes()), 400)["parameter"],
        "value"
    );
}

#[test]
fn io_registers_are_decoded() {
    let server = Server::start();
    let frames = json!({"steps": [{"frames": 90}]});
    json_of(&post(&server, "/v1/run", &frames), 200);
    json_of(&post(&server, "/v1/hold", &json!({"keys": ["Left"]})), 200);
    json_of(&post(&server, "/v1/run", &json!({"steps": [{"frames": 2}]})), 200);
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
