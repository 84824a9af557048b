//! Several emulators in one server.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use framewire_emulator::Embedded;
use framewire_emulator::embedded::{Config, Rom};
use framewire_http::{NameError, Served};
use framewire_libmgba::Level;
use serde_json::json;

use super::live::client::Rpc;
use super::problems::problem;
use super::{ok, posted};
use crate::support::{Server, field, repository};

/// The settings of an embedded core with the demo game.
fn config(paused: bool) -> Config {
    Config {
        paused,
        console: || Box::new(crate::console::collect as fn(Level, &str)),
        ..Config::new(Rom::File(repository("rom/framewire-demo.gba")))
    }
}

/// Another emulator with the demo game, paused.
pub fn served(name: &str) -> Served {
    let emulator = Arc::new(Embedded::start(config(true)).unwrap());
    Served::new(name, emulator)
}

#[test]
fn emulators_are_chosen_by_name_and_the_first_is_the_default() {
    let server = Server::with(|app| app.emulators.add(served("second")).unwrap());
    let list = ok(&server.get("/v1/emulators"));
    let names: Vec<_> = list["emulators"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["demo", "second"]);
    assert_eq!(list["emulators"][1]["run"], "paused");
    let address = field("scratch");
    let write = |query: &str, value: u32| {
        let body = json!({"ops": [{"op": "write32", "address": address, "value": value}]});
        posted(&server, &format!("/v1/batch{query}"), &body)
    };
    write("", 1);
    write("?emulator=second", 2);
    let read =
        |query: &str| ok(&server.get(&format!("/v1/memory/{address}?type=u32{query}")))["value"].clone();
    assert_eq!((read(""), read("&emulator=demo"), read("&emulator=second")), (1.into(), 1.into(), 2.into()));
    assert_eq!(server.number(&format!("/core/read32?address={address}")), 1);
    // The second emulator has no symbols.
    problem(&server.get("/v1/memory/scratch?emulator=second"), 400);
    let error = problem(&server.get("/v1/memory/0?emulator=third"), 404);
    assert!(error["detail"].as_str().unwrap().ends_with("there are: demo, second"), "{error}");
}

#[test]
fn routes_about_all_emulators_refuse_the_name_of_an_emulator_that_does_not_exist() {
    let server = Server::with(|app| app.emulators.add(served("second")).unwrap());
    for path in ["/v1/emulators", "/v1/operations", "/v1/snapshots", "/v1/recordings"] {
        assert_eq!(server.get(&format!("{path}?emulator=second")).status, 200, "{path}");
        let error = problem(&server.get(&format!("{path}?emulator=third")), 404);
        assert_eq!(error["detail"], r#"no emulator is called "third"; there are: demo, second"#, "{path}");
    }
    problem(&server.request("DELETE", "/v1/snapshots/none?emulator=demo&emulator=demo", b""), 400);
}

#[cfg(target_os = "linux")]
#[test]
fn a_wait_says_that_a_program_on_a_channel_decides_when_frames_run() {
    use framewire_channel::{Endpoint, Options};

    let name = format!("http-test-{}", std::process::id());
    let emulator = Embedded::start_on_channel(config(false), &name).unwrap();
    let server = Server::with(|app| {
        app.deadline = Duration::from_millis(300);
        app.emulators.add(Served::new("channel", Arc::new(emulator))).unwrap();
    });
    let patience = Some(Duration::from_secs(10));
    let mut client = Endpoint::connect(&name, patience, Options::default()).unwrap();
    // Takes the clock, so frames run only when this client requests them.
    client.send(&[64, 0, 0, 0, 0, 0, 0, 0], patience).unwrap();
    assert_eq!(client.receiver.receive(patience).unwrap()[0], 72);
    let reply = server.request("POST", "/v1/wait?emulator=channel", br#"{"until": "0", "frames": 100}"#);
    let error = problem(&reply, 504);
    let reason = "a program on the emulator's channel decides when frames run";
    assert!(error["detail"].as_str().unwrap().contains(reason), "{error}");
}

/// Writes a memory map with one byte, and sets its modification time to `age` seconds ago.
pub fn write_map(path: &Path, name: &str, address: u32, age: u64) {
    let field = format!("[[field]]\nname = \"{name}\"\naddress = {address}\ntype = \"u8\"\n");
    std::fs::write(path, field).unwrap();
    let time = SystemTime::now() - Duration::from_secs(age);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_changed_symbol_file_is_read_again_when_the_same_rom_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map.toml");
    write_map(&path, "one", 0x0200_0100, 100);
    let mut files = framewire_symbols::SymbolFiles::default();
    files.load(&path).unwrap();
    let server = Server::with(|app| app.emulators.add(served("second").with_symbols(files)).unwrap());
    let rom = json!({"path": server.file("demo game.gba")});
    let load = || posted(&server, "/v1/load?emulator=second", &rom);
    load();
    ok(&server.get("/v1/memory/one?emulator=second"));
    write_map(&path, "two", 0x0200_0100, 50);
    problem(&server.get("/v1/memory/two?emulator=second"), 400);
    load();
    ok(&server.get("/v1/memory/two?emulator=second"));
}

#[test]
fn null_instead_of_a_name_means_the_emulator_of_the_websocket() {
    let server = Server::with(|app| app.emulators.add(served("second")).unwrap());
    let mut rpc = Rpc::open_at(&server, "/v1/ws?emulator=second");
    // Only the second emulator is paused.
    let none = json!({"emulator": null});
    assert_eq!(rpc.result("emulator", none)["run"], "paused");
    let written = json!({"address": field("scratch"), "value": 3, "emulator": null});
    rpc.result("write8", written);
    let read = |query: &str| {
        ok(&server.get(&format!("/v1/memory/{}?emulator={query}", field("scratch"))))["value"].clone()
    };
    assert_eq!((read("demo"), read("second")), (0.into(), 3.into()));
}

#[test]
fn names_must_be_unique_and_have_no_characters_that_need_escapes() {
    drop(Server::with(|app| {
        assert_eq!(app.emulators.add(served("demo")), Err(NameError::Taken("demo".to_owned())));
        for name in ["", "a b", "ä", "a/b", "a&b"] {
            assert_eq!(app.emulators.add(served(name)), Err(NameError::Unfit(name.to_owned())));
        }
    }));
}
