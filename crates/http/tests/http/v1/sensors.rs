//! The routes of sensors and layers.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::live::script::{Place, ready};
use super::ok;
use super::problems::problem;
use crate::support::Server;

fn put(server: &Server, path: &str, body: Value) -> Value {
    ok(&server.request("PUT", path, body.to_string().as_bytes()))
}

#[test]
fn sensors_are_set_together_and_read() {
    let server = Server::start();
    put(&server, "/v1/sensors", json!({"tilt_x": -0.25, "light": 0.5}));
    put(&server, "/v1/sensors", json!({"gyro": 1}));
    let mut sensors = ok(&server.get("/v1/sensors"));
    sensors.as_object_mut().unwrap().remove("frame").unwrap();
    assert_eq!(sensors, json!({"tilt_x": -0.25, "tilt_y": 0.0, "gyro": 1.0, "light": 0.5}));
    let recording = json!({"name": "a"}).to_string();
    let told = problem(&server.request("POST", "/v1/recordings", recording.as_bytes()), 503);
    assert!(told["detail"].as_str().unwrap().contains("recordings do not hold sensors"), "{told}");
    for (body, says) in [
        (json!({"tilt_y": 1.5}), "tilt_y is 1.5; accepted is -1 to 1"),
        (json!({"light": -0.1}), "light is -0.1; accepted is 0 to 1"),
        (json!({}), "no sensor is given"),
        (json!({"tilt": 1}), "tilt"),
    ] {
        let told = problem(&server.request("PUT", "/v1/sensors", body.to_string().as_bytes()), 400);
        assert!(told["detail"].as_str().unwrap().contains(says), "{body}: {told}");
    }
}

#[test]
fn layers_are_listed_and_switched() {
    let server = Server::paused();
    let picture = || {
        ok(&server.request("POST", "/v1/advance", b"{\"frames\": 60}"));
        server.get("/v1/screen?format=rgb").body
    };
    let whole = picture();
    let switch = |enabled: bool| {
        for name in ["bg0", "bg1", "bg2", "bg3", "obj"] {
            put(&server, &format!("/v1/layers/{name}"), json!({"enabled": enabled}));
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
    let told = problem(&server.request("PUT", "/v1/layers/bg9", b"{\"enabled\": true}"), 400);
    assert!(told["detail"].as_str().unwrap().contains("there is no layer \"bg9\""), "{told}");
}

#[test]
fn an_attached_mgba_has_no_sensors_and_layers() {
    let place = Place::new();
    let (_core, server) = (place.core(), place.server(|_| {}));
    ready(&server);
    for (method, path, body, says) in [
        ("GET", "/v1/sensors", "", "Game Pak sensors"),
        ("PUT", "/v1/sensors", "{\"gyro\": 1}", "Game Pak sensors"),
        ("GET", "/v1/layers", "", "Video layers"),
        ("PUT", "/v1/layers/bg0", "{\"enabled\": false}", "Video layers"),
    ] {
        let told = problem(&server.request(method, path, body.as_bytes()), 501);
        assert!(told["detail"].as_str().unwrap().contains(says), "{told}");
    }
}
