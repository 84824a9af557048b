//! The routes for sensors and layers.

use std::collections::HashSet;

use serde_json::json;

use super::live::client::{Events, Rpc};
use super::live::script::connected;
use super::problems::{problem, problem_says};
use super::{ok, sent};
use crate::support::Server;

/// A program that runs the cartridge's rumble motor while bit 3 at 0x02000000 is set.
const RUMBLE: [u32; 8] = [
    0xe3a0_0302, // mov r0, #0x08000000
    0xe280_00c4, // add r0, r0, #0xc4
    0xe3a0_5402, // mov r5, #0x02000000
    0xe3a0_2008, // mov r2, #8
    0xe1c0_20b2, // strh r2, [r0, #2]
    0xe1d5_30b0, // ldrh r3, [r5]
    0xe1c0_30b0, // strh r3, [r0]
    0xeaff_fffc, // b back to ldrh
];

/// A server with a game whose cartridge has a rumble motor.
fn rumbling() -> Server {
    let mut rom = vec![0_u8; 0x400];
    rom[..4].copy_from_slice(&0xea00_0040_u32.to_le_bytes()); // b 0x108
    rom[0xac..0xb0].copy_from_slice(b"V49E"); // a game code by which mGBA recognises the rumble motor
    rom[0xb2] = 0x96;
    for (at, word) in RUMBLE.iter().enumerate() {
        rom[0x108 + 4 * at..][..4].copy_from_slice(&word.to_le_bytes());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rumble.gba");
    std::fs::write(&path, &rom).unwrap();
    Server::playing(path, folder, true, |_| {})
}

#[test]
fn streams_and_subscriptions_report_rumble_as_an_event() {
    let server = rumbling();
    let mut events = Events::open(&server, "/v1/events");
    let mut rpc = Rpc::open(&server);
    rpc.result("subscribe", json!({"events": true}));
    for on in [true, false] {
        let value = if on { 8 } else { 0 };
        rpc.result("write16", json!({"address": 0x0200_0000, "value": value}));
        rpc.result("advance", json!({"frames": 2}));
        let (event, notification) = (events.wait_for("rumble"), rpc.wait_for("rumble"));
        assert_eq!((&event.data["on"], &event.data), (&json!(on), &notification.data));
        assert!(event.data["frame"].is_u64(), "{event:?}");
    }
}

#[test]
fn sensors_are_set_and_read() {
    let server = Server::start();
    sent(&server, "PUT", "/v1/sensors", &json!({"tilt_x": -0.25, "light": 0.5}), 200);
    sent(&server, "PUT", "/v1/sensors", &json!({"gyro": 1}), 200);
    let mut sensors = ok(&server.get("/v1/sensors"));
    sensors.as_object_mut().unwrap().remove("frame").unwrap();
    assert_eq!(sensors, json!({"tilt_x": -0.25, "tilt_y": 0.0, "gyro": 1.0, "light": 0.5}));
    let recording = json!({"name": "a"});
    let error = problem(&server.send("POST", "/v1/recordings", &recording), 503);
    assert!(error["detail"].as_str().unwrap().contains("recordings do not hold sensors"), "{error}");
    for (body, says) in [
        (json!({"tilt_y": 1.5}), "tilt_y is 1.5; accepted is -1 to 1"),
        (json!({"light": -0.1}), "light is -0.1; accepted is 0 to 1"),
        (json!({}), "no sensor is given"),
        (json!({"tilt": 1}), "tilt"),
    ] {
        problem_says(&server.send("PUT", "/v1/sensors", &body), 400, says);
    }
    // As a signed 32-bit number, this is -1000.
    let op = json!({"op": "set_sensor", "sensor": "gyro", "thousandths": 4_294_966_296_u32});
    let batch = json!({"ops": [op]});
    problem_says(&server.send("POST", "/v1/batch", &batch), 400, "-1000 to 1000");
}

#[test]
fn layers_are_listed_and_switched_off_and_on() {
    let server = Server::paused();
    let picture = || {
        ok(&server.request("POST", "/v1/advance", b"{\"frames\": 60}"));
        server.get("/v1/screen?format=rgb").body
    };
    let whole = picture();
    let switch = |enabled: bool| {
        for name in ["bg0", "bg1", "bg2", "bg3", "obj"] {
            sent(&server, "PUT", &format!("/v1/layers/{name}"), &json!({"enabled": enabled}), 200);
        }
    };
    switch(false);
    let without = picture();
    let colours = |picture: &[u8]| picture.chunks(3).collect::<HashSet<_>>().len();
    let (before, after) = (colours(&whole), colours(&without));
    assert!(after < before, "{before} colours, then {after}");
    let listed = ok(&server.get("/v1/layers"));
    let layers = listed["layers"].as_array().unwrap();
    let expected = json!({"name": "bg0", "title": "Background 0", "kind": "picture", "enabled": false});
    assert_eq!(layers[0], expected);
    assert!(layers.iter().any(|layer| layer["name"] == "chA" && layer["kind"] == "sound"));
    switch(true);
    assert!(picture() != without);
    let error = problem(&server.request("PUT", "/v1/layers/bg9", b"{\"enabled\": true}"), 400);
    assert!(error["detail"].as_str().unwrap().contains("there is no layer \"bg9\""), "{error}");
}

#[test]
fn an_attached_mgba_supports_neither_sensors_nor_layers() {
    let (_core, server) = connected();
    for (method, path, body, says) in [
        ("GET", "/v1/sensors", "", "Game Pak sensors"),
        ("PUT", "/v1/sensors", "{\"gyro\": 1}", "Game Pak sensors"),
        ("GET", "/v1/layers", "", "Video layers"),
        ("PUT", "/v1/layers/bg0", "{\"enabled\": false}", "Video layers"),
    ] {
        problem_says(&server.request(method, path, body.as_bytes()), 501, says);
    }
}
