//! Recordings of every kind of emulator, replayed in an embedded core.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use framewire_e2e::{Framewire, demo, until};
use serde_json::{Value, json};

use super::served::{PATIENCE, Served};

/// Frames that are recorded at least.
const FRAMES: u64 = 300;

#[track_caller]
fn ask(served: &Served, method: &str, target: &str, body: &Value, status: u16) -> Value {
    let reply = served.http.send(method, target, "application/json", body.to_string().into_bytes()).unwrap();
    assert_eq!(reply.status, status, "{method} {target}: {}", reply.text());
    serde_json::from_slice(&reply.body).unwrap()
}

/// Records some seconds of play with keys that come whenever they come; returns the recording's file.
fn record(served: &Served, start: &str) -> PathBuf {
    until("the game runs", PATIENCE, || Ok(served.game(demo::field("frame")) > 5)).unwrap();
    ask(served, "POST", "/v1/recordings", &json!({"name": "run", "start": start, "every": 20}), 201);
    let mut seed = 12345u32;
    until("enough frames", PATIENCE, || {
        seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let button = ["A", "B", "Select", "Start", "Right", "Left", "Up", "Down", "R", "L"]
            [(seed >> 16) as usize % 10];
        served.post(&format!("/mgba-http/button/hold?button={button}&duration={}", 1 + (seed >> 20) % 9));
        Ok(ask(served, "GET", "/v1/recording", &Value::Null, 200)["frames"].as_u64() >= Some(FRAMES))
    })
    .unwrap();
    let done = ask(served, "DELETE", "/v1/recording", &Value::Null, 200);
    assert_eq!(done["ended"], "stopped", "{done}");
    assert!(done["frames"].as_u64() >= Some(FRAMES), "{done}");
    let file = served.folder.path().join("run.fwr");
    fs::write(&file, served.get("/v1/recordings/run/file").body).unwrap();
    file
}

/// Runs `framewire replay` with these arguments; returns its exit code and what it says.
fn replay(args: &[&str]) -> (Option<i32>, String) {
    let all = [&["replay"], args].concat();
    let (status, said, failed) = Framewire::run(&all, Duration::from_secs(60)).unwrap();
    (status.code(), said + &failed)
}

/// The number before a text of what `framewire replay` says.
fn number_before(said: &str, text: &str) -> u64 {
    let (before, _) = said.split_once(text).unwrap_or_else(|| panic!("{said}"));
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

/// The same keys give the same pictures and memory in a core of our own.
fn is_replayed(file: &Path, pictures: bool) {
    let path = file.to_str().unwrap();
    let (code, said) = replay(&[path]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(number_before(&said, " hashes of pictures") >= FRAMES / 20, pictures, "{said}");
    // An attached mGBA tells no pictures; then memory is compared about as often.
    assert!(number_before(&said, " of memory compared") >= if pictures { 1 } else { 5 }, "{said}");
}

/// A changed byte ends with code 1 and the frame.
fn damage_is_found(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let behind = bytes.len() - 60;
    bytes[behind] ^= 4;
    let damaged = file.with_extension("damaged");
    fs::write(&damaged, bytes).unwrap();
    let (code, said) = replay(&[damaged.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("damaged at frame "), "{said}");
    let mut bytes = fs::read(file).unwrap();
    bytes[30] ^= 1; // within the title
    fs::write(&damaged, bytes).unwrap();
    let (code, said) = replay(&[damaged.to_str().unwrap()]);
    assert!(code == Some(1) && said.contains("before its first frame"), "{said}");
}

#[test]
fn an_embedded_core() {
    let served = Served::embedded();
    let file = record(&served, "power-on");
    is_replayed(&file, true);
    damage_is_found(&file);
    let played = ask(&served, "POST", "/v1/recordings/run/replay", &json!({}), 200);
    assert_eq!(played["equal"], true, "{played}");
}

#[test]
fn a_stock_window() {
    let served = Served::stock();
    let file = record(&served, "state");
    is_replayed(&file, false);
    damage_is_found(&file);
    let path = file.to_str().unwrap();
    // With pictures written into it, those are compared too.
    let (code, said) = replay(&[path, "--write", "--every", "10"]);
    assert_eq!(code, Some(0), "{said}");
    is_replayed(&file, true);
    // A core in the server plays it as well, and the window cannot be stepped.
    let bytes = fs::read(&file).unwrap();
    let embedded = Served::embedded();
    let kept = embedded.http.send("PUT", "/v1/recordings/window/file", "", bytes).unwrap();
    assert_eq!(kept.status, 201, "{}", kept.text());
    let played = ask(&embedded, "POST", "/v1/recordings/window/replay", &json!({}), 200);
    assert_eq!(played["equal"], true, "{played}");
    let refused = ask(&served, "POST", "/v1/recordings/run/replay", &json!({}), 501);
    assert!(refused["detail"].as_str().unwrap().contains("pause"), "{refused}");
}

#[test]
fn what_cannot_be_played_is_told_apart_from_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.fwr");
    let path = file.to_str().unwrap();
    assert_eq!(replay(&[path]).0, Some(2));
    fs::write(&file, "no recording").unwrap();
    let (code, said) = replay(&[path]);
    assert!(code == Some(2) && said.contains("FRAMEWIRE RECORDING"), "{said}");
    assert_eq!(replay(&[path, "--every", "0"]).0, Some(2));
}
