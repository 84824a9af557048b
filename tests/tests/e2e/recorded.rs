//! Recordings are made with each kind of emulator and replayed in an embedded core.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use framewire_e2e::{Framewire, paths, until};
use serde_json::{Value, json};

use super::gameboy;
use super::served::{PATIENCE, Served, wait_until};

/// The smallest number of recorded frames.
const FRAMES: u64 = 300;

/// Records at least `frames` frames with keys at arbitrary times. Returns the recording's file.
fn record(served: &Served, start: &str, frames: u64) -> PathBuf {
    served.wait_for_game();
    let request = json!({"name": "run", "start": start, "every": 20, "replace": true});
    served.ask("POST", "/v1/recordings", &request, 201);
    let mut seed = 12345u32;
    // On a busy machine, a window may run at only a third of its normal speed.
    let patience = PATIENCE + Duration::from_secs(frames / 20);
    until("enough frames are recorded", patience, || {
        seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let button = ["A", "B", "Select", "Start", "Right", "Left", "Up", "Down", "R", "L"]
            [(seed >> 16) as usize % 10];
        served.post(&format!("/mgba-http/button/hold?button={button}&duration={}", 1 + (seed >> 20) % 9));
        Ok(served.ask("GET", "/v1/recording", &Value::Null, 200)["frames"].as_u64() >= Some(frames))
    })
    .unwrap();
    let done = served.ask("DELETE", "/v1/recording", &Value::Null, 200);
    assert_eq!(done["ended"], "stopped", "{done}");
    assert!(done["frames"].as_u64() >= Some(frames), "{done}");
    download(served, "run")
}

/// Writes a recording to a file in the folder. Returns the file's path.
fn download(served: &Served, name: &str) -> PathBuf {
    let file = served.folder.path().join(format!("{name}.fwr"));
    fs::write(&file, served.get(&format!("/v1/recordings/{name}/file")).body).unwrap();
    file
}

/// Runs `framewire replay` with these arguments. Returns its exit code and its output.
fn replay(args: &[&str]) -> (Option<i32>, String) {
    let all = [&["replay"], args].concat();
    let (status, said, failed) = Framewire::run(&all, Duration::from_secs(60)).unwrap();
    (status.code(), said + &failed)
}

/// The number before a text in the output of `framewire replay`.
fn number_before(said: &str, text: &str) -> u64 {
    let (before, _) = said.split_once(text).unwrap_or_else(|| panic!("{said}"));
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Checks that the same keys produce the same pictures and memory in an embedded core, and that pictures were compared
/// only if `pictures` is set. Returns how many times memory was compared.
fn check_replay(file: &Path, pictures: bool) -> u64 {
    let path = file.to_str().unwrap();
    let (code, said) = replay(&[path]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(number_before(&said, " hashes of pictures") >= FRAMES / 20, pictures, "{said}");
    let compared = number_before(&said, " of memory compared");
    assert!(compared >= 1, "{said}");
    compared
}

/// Checks that a replay reports a changed byte and its frame, and that `--write` does not change a damaged file.
fn damage_is_found(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let near_end = bytes.len() - 60;
    bytes[near_end] ^= 4;
    let damaged = file.with_extension("damaged");
    fs::write(&damaged, bytes).unwrap();
    let (code, said) = replay(&[damaged.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("damaged at frame "), "{said}");
    let before = fs::read(&damaged).unwrap();
    let (code, said) = replay(&[damaged.to_str().unwrap(), "--write"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(fs::read(&damaged).unwrap() == before, "a damaged file was changed");
    let mut bytes = fs::read(file).unwrap();
    bytes[30] ^= 1; // within the title
    fs::write(&damaged, bytes).unwrap();
    let (code, said) = replay(&[damaged.to_str().unwrap()]);
    assert!(code == Some(1) && said.contains("before its first frame"), "{said}");
}

#[test]
fn a_recording_of_an_embedded_core_is_replayed() {
    let served = Served::embedded();
    let file = record(&served, "power-on", FRAMES);
    check_replay(&file, true);
    damage_is_found(&file);
    let played = served.ask("POST", "/v1/recordings/run/replay", &json!({}), 200);
    assert_eq!(played["equal"], true, "{played}");
}

/// The recording contains the model of the console.
#[test]
fn a_recording_is_replayed_on_the_model_of_its_console() {
    let folder = tempfile::tempdir().unwrap();
    let rom = fs::read(gameboy::game(&folder)).unwrap();
    let served = Served::game_of(&rom, "game.gb", &["--gb-model", "sgb"]);
    assert_eq!(served.get("/v1/screen?format=rgb").body.len(), 256 * 224 * 3);
    let file = stepped(&served, "state");
    let game = served.folder.path().join("game.gb");
    let (code, said) = replay(&[file.to_str().unwrap(), "--rom", game.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
}

/// The recording does not contain the BIOS.
#[test]
fn a_recording_with_a_bios_needs_the_same_bios_for_its_replay() {
    let mut rom = fs::read(paths::rom()).unwrap();
    // The logo of this game is empty. With these bytes, it has the checksum of the real logo. libmgba does not use the
    // BIOS for games with another logo.
    rom[0x9C..0xA0].copy_from_slice(&0x7858_84D1u32.to_le_bytes());
    // Each vector is a branch to 0x20, where `mov pc, #0x08000000` starts the game.
    let mut bios = [0u8; 0x4000];
    for (number, vector) in (0u32..).zip(bios[..0x1C].as_chunks_mut::<4>().0) {
        *vector = (0xEA00_0006 - number).to_le_bytes();
    }
    bios[0x20..0x24].copy_from_slice(&0xE3A0_F302u32.to_le_bytes());
    let folder = tempfile::tempdir().unwrap();
    let bios_file = folder.path().join("gba.bios");
    fs::write(&bios_file, bios).unwrap();
    let bios_file = bios_file.to_str().unwrap();
    let served = Served::game_of(&rom, "game.gba", &["--bios", bios_file]);
    let file = stepped(&served, "power-on");
    let game = served.folder.path().join("game.gba");
    let args = [file.to_str().unwrap(), "--rom", game.to_str().unwrap()];
    let (code, said) = replay(&[&args[..], &["--bios", bios_file]].concat());
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = replay(&args);
    assert_ne!(code, Some(0), "{said}");
}

/// The recording's hashes of pictures depend on these options, which the recording does not contain.
#[test]
fn a_recording_with_other_colours_or_without_a_border_needs_the_same_options_for_its_replay() {
    let folder = tempfile::tempdir().unwrap();
    // The recording's state contains the colours at its start. This game changes the palette all the time:
    // ld hl, 0xFF47; inc (hl); jr back to inc
    let rom = fs::read(gameboy::rom(&folder, &[0x21, 0x47, 0xFF, 0x34, 0x18, 0xFD])).unwrap();
    let palette = ["--gb-palette", "e0f8d0,88c070,346856,081820"];
    for (model, options) in [("dmg", &palette[..]), ("sgb", &["--no-sgb-borders"])] {
        let served = Served::game_of(&rom, "game.gb", &[&["--gb-model", model], options].concat());
        let file = stepped(&served, "power-on");
        let game = served.folder.path().join("game.gb");
        let args = [file.to_str().unwrap(), "--rom", game.to_str().unwrap()];
        let (code, said) = replay(&[&args[..], options].concat());
        assert_eq!(code, Some(0), "{model}: {said}");
        let (code, said) = replay(&args);
        assert_eq!(code, Some(1), "{model}: {said}");
    }
}

/// Pauses the game, and records 100 frames that one request runs. Returns the recording's file.
fn stepped(served: &Served, start: &str) -> PathBuf {
    served.ask("POST", "/v1/pause", &Value::Null, 200);
    served.ask("POST", "/v1/recordings", &json!({"name": "run", "start": start, "every": 20}), 201);
    served.ask("POST", "/v1/advance", &json!({"frames": 100}), 200);
    served.ask("DELETE", "/v1/recording", &Value::Null, 200);
    download(served, "run")
}

/// The server is killed during a recording, and the next server recovers it.
#[test]
fn a_recording_survives_the_kill_of_its_server() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    let mut server = Framewire::serve(&["--speed", "1", "--data", data]).unwrap();
    let http = server.http();
    let send = |http: &framewire_e2e::Http, method: &str, target: &str, body: Value| -> Value {
        let reply = http.send_json(method, target, &body).unwrap();
        assert!(reply.status < 300, "{method} {target}: {}", reply.text());
        reply.json()
    };
    send(&http, "POST", "/v1/recordings", json!({"name": "run", "every": 10}));
    let frames =
        |http: &framewire_e2e::Http| send(http, "GET", "/v1/recording", Value::Null)["frames"].as_u64();
    wait_until("two seconds are recorded", || Ok(frames(&http) > Some(120)));
    let before = frames(&http).unwrap();
    // A busy disk may need more than a second for a write. The server may have prepared the next write before it
    // recorded frame `before`. The write after that contains this frame.
    let written = || -> u64 {
        let files = fs::read_dir(format!("{data}/recordings")).unwrap().flatten();
        let unfinished =
            files.filter(|file| file.file_name().to_string_lossy().starts_with(".recording-run-"));
        unfinished.map(|file| file.metadata().unwrap().len()).sum()
    };
    for _ in 0..2 {
        let size = written();
        wait_until("the server has written more", || Ok(written() > size));
    }
    wait_until("one more second is recorded, so that the frames up to `before` are on the disk", || {
        Ok(frames(&http) > Some(before + 70))
    });
    server.end(framewire_e2e::Signal::KILL, PATIENCE).unwrap();
    let server = Framewire::serve(&["--speed", "1", "--data", data]).unwrap();
    let full = send(&server.http(), "GET", "/v1/recordings/run", Value::Null);
    assert_eq!((&full["recovered"], &full["damage"]), (&true.into(), &Value::Null), "{full}");
    assert!(full["frames"].as_u64() >= Some(before), "{before}: {full}");
    assert!(server.log().contains("recovered"), "{}", server.log());
    let (code, said) = replay(&[&format!("{data}/recordings/run.fwr")]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_recording_of_a_stock_window_is_replayed() {
    let served = Served::stock();
    // The recording of an attached mGBA has no hashes of pictures. It has a hash of memory about every 20 frames, or
    // less often on a busy machine. If there are too few hashes, the test makes a longer recording.
    let file = [FRAMES, 3 * FRAMES, 9 * FRAMES]
        .into_iter()
        .map(|frames| record(&served, "state", frames))
        .find(|file| check_replay(file, false) >= 5)
        .expect("at least five hashes of memory");
    damage_is_found(&file);
    // `--write` adds hashes of pictures to the recording. From then on, pictures are also compared.
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let link = file.with_file_name("link");
    symlink(&file, &link).unwrap();
    let (code, said) = replay(&[link.to_str().unwrap(), "--write", "--every", "10"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(link.is_symlink(), "the link is replaced by a file");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    fs::remove_file(&link).unwrap();
    check_replay(&file, true);
    // A server with an embedded core can also replay it. A server with a window cannot, because the window cannot be
    // paused.
    let bytes = fs::read(&file).unwrap();
    let embedded = Served::embedded();
    let kept = embedded.http.send("PUT", "/v1/recordings/window/file", "", bytes).unwrap();
    assert_eq!(kept.status, 201, "{}", kept.text());
    let played = embedded.ask("POST", "/v1/recordings/window/replay", &json!({}), 200);
    assert_eq!(played["equal"], true, "{played}");
    let refused = served.ask("POST", "/v1/recordings/run/replay", &json!({}), 501);
    assert!(refused["detail"].as_str().unwrap().contains("pause"), "{refused}");
}

/// The recording contains all frames up to the reset or the state, not only those up to the previous hash.
#[test]
fn a_reset_or_a_state_ends_a_recording_of_a_stock_window_in_the_same_frame() {
    let served = Served::stock();
    served.wait_for_game();
    let slot = json!({"op": "save_state_slot", "slot": 7, "flags": 31});
    served.ask("POST", "/v1/batch", &json!({"ops": [slot]}), 200);
    let reset = (json!({"op": "reset"}), "the console was reset");
    let state = (json!({"op": "load_state_slot", "slot": 7, "flags": 29}), "a state was loaded");
    // With `every` = 10, there are hashes to compare. With 3600, there are no hashes, so only the event of the reset or
    // of the state can end the recording.
    for (name, every, (op, what)) in [
        ("reset", 10, &reset),
        ("state", 10, &state),
        ("reset-unhashed", 3600, &reset),
        ("state-unhashed", 3600, &state),
    ] {
        let request = json!({"name": name, "every": every});
        let now = || {
            let reply = served.ask("POST", "/v1/batch", &json!({"ops": [{"op": "current_frame"}]}), 200);
            reply["frame"].as_u64().unwrap()
        };
        let earliest = now();
        served.ask("POST", "/v1/recordings", &request, 201);
        let first = now();
        wait_until("some frames have run", || Ok(now() > first + 40));
        let before = served.ask("POST", "/v1/batch", &json!({"ops": [{"op": "current_frame"}, op]}), 200);
        let before = before["results"][0]["value"].as_u64().unwrap();
        let under_way = || served.ask("GET", "/v1/recording", &Value::Null, 200);
        wait_until("the recording has ended", || Ok(under_way()["ended"].is_string()));
        let ended = under_way();
        let frames = ended["frames"].as_u64().unwrap();
        assert_eq!(ended["ended"], format!("{what} after frame {frames}"));
        // The recording began between `earliest` and `first`.
        assert!(
            (before - first..=before - earliest).contains(&frames),
            "{before} {earliest} {first} {ended}"
        );
        let (code, said) = replay(&[download(&served, name).to_str().unwrap()]);
        let is_unhashed = every == 3600 && said.contains("nothing to compare");
        assert!(code == Some(0) || is_unhashed, "{code:?}: {said}");
    }
}

#[test]
fn recordings_that_cannot_be_played_lead_to_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.fwr");
    let path = file.to_str().unwrap();
    assert_eq!(replay(&[path]).0, Some(2));
    fs::write(&file, "no recording").unwrap();
    let (code, said) = replay(&[path]);
    assert!(code == Some(2) && said.contains("FRAMEWIRE RECORDING"), "{said}");
    assert_eq!(replay(&[path, "--every", "0"]).0, Some(2));
}
