//! Saves, states and snapshots on full disks and after kills. Afterwards, the old file or the new file is there, and
//! complete.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use framewire_e2e::{Framewire, Http, Reply, Signal, SmallDisk, paths};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::served::{PATIENCE, wait_until};

/// The size of the demo game's battery save.
const SAVE: usize = 0x8000;

/// The number of rounds: the value of an environment variable, or else a small default.
fn runs(variable: &str, usual: u32) -> u32 {
    std::env::var(variable).ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

/// A small disk of this many KiB. Prints a message and returns `None` if this user may not mount one. For root, that
/// fails the test, unless `FRAMEWIRE_NO_MOUNT` is set: in most containers, root may not mount disks either.
fn small_disk(kib: u32) -> Option<SmallDisk> {
    let disk = SmallDisk::new(kib).unwrap();
    if disk.is_none() {
        assert!(
            !rustix::process::geteuid().is_root() || std::env::var_os("FRAMEWIRE_NO_MOUNT").is_some(),
            "root may not mount a small disk here; set FRAMEWIRE_NO_MOUNT to skip this test"
        );
        eprintln!("skipped: this user may not mount a small disk");
    }
    disk
}

/// Performs one operation. If it fails, the error is the server's response.
fn operation(http: &Http, op: &Value) -> Result<(), String> {
    let batch = json!({"ops": [op]});
    let reply = http.send_json("POST", "/v1/batch", &batch).map_err(|error| error.to_string())?;
    let outcome: Value = serde_json::from_slice(&reply.body).map_err(|_| reply.text())?;
    match outcome["results"][0].get("value") {
        Some(value) if *value != json!(false) => Ok(()),
        _ => Err(reply.text()),
    }
}

/// Fills the cartridge's save memory with one byte, between two frames.
fn fill_save(http: &Http, byte: u8) -> framewire_e2e::Result<Reply> {
    http.send("PUT", "/v1/memory/0x0E000000", "application/octet-stream", vec![byte; SAVE])
}

/// The byte that fills a save file; `None` if the file is empty, because it was never written.
#[track_caller]
fn whole_save(path: &Path) -> Option<u8> {
    let bytes = fs::read(path).unwrap();
    let first = *bytes.first()?;
    assert!(
        bytes.len() == SAVE && bytes.iter().all(|byte| *byte == first),
        "a torn save of {} bytes",
        bytes.len()
    );
    Some(first)
}

/// The temporary files in a folder, which exist while a file is being replaced.
fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let is_unfinished =
        |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(".unfinished");
    entries.map(|entry| entry.unwrap().path()).filter(is_unfinished).collect()
}

/// The folder of a game and its files.
struct Place {
    /// The path of the folder for the server.
    inside: PathBuf,
    /// The path of the folder for this process.
    outside: PathBuf,
}

impl Place {
    fn args(&self) -> [String; 4] {
        let text = |name: &str| self.inside.join(name).display().to_string();
        ["--rom".to_owned(), text("game.gba"), "--data".to_owned(), text("data")]
    }

    fn state_file(&self) -> Value {
        self.inside.join("state").display().to_string().into()
    }

    /// Checks that each file is complete: compares the bytes of saves, and loads states and snapshots.
    #[track_caller]
    fn check(&self, http: &Http) {
        whole_save(&self.outside.join("game.sav"));
        if self.outside.join("game.ss1").exists() {
            operation(http, &json!({"op": "load_state_slot", "slot": 1, "flags": 29})).unwrap();
        }
        if self.outside.join("state").exists() {
            operation(http, &json!({"op": "load_state_file", "path": self.state_file(), "flags": 29}))
                .unwrap();
        }
        let list = http.get("/v1/snapshots").unwrap().json();
        let folder = self.outside.join("data/snapshots");
        let files = fs::read_dir(&folder).into_iter().flatten().count();
        assert_eq!((list["total"].as_u64(), unfinished(&folder)), (Some(files as u64), vec![]), "{list}");
        for snapshot in list["snapshots"].as_array().unwrap() {
            let target = format!("/v1/snapshots/{}/load", snapshot["name"].as_str().unwrap());
            assert_eq!(http.send_json("POST", &target, &json!({})).unwrap().status, 200, "{target}");
        }
        let picture = self.outside.join("picture.png");
        if picture.exists() {
            framewire_media::png::decode(&fs::read(picture).unwrap()).unwrap();
        }
    }

    /// Writes each kind of file once. Continues after failures, and returns them.
    fn write_all(&self, http: &Http, byte: u8) -> Vec<String> {
        let picture = self.inside.join("picture.png").display().to_string();
        let ops = [
            // States alternate between two sizes.
            json!({"op": "save_state_slot", "slot": 1, "flags": if byte.is_multiple_of(2) { 31 } else { 0 }}),
            json!({"op": "save_state_file", "path": self.state_file(), "flags": if byte.is_multiple_of(2) { 0 } else { 31 }}),
            json!({"op": "screenshot_file", "path": picture}),
        ];
        let mut failed: Vec<String> =
            fill_save(http, byte).err().map(|error| error.to_string()).into_iter().collect();
        failed.extend(ops.iter().filter_map(|op| operation(http, op).err()));
        let snapshot = json!({"name": "kept", "note": "x".repeat(byte.into()), "replace": true});
        match http.send_json("POST", "/v1/snapshots", &snapshot) {
            Ok(reply) if reply.status < 300 => {}
            Ok(reply) => failed.push(reply.text()),
            Err(error) => failed.push(error.to_string()),
        }
        failed
    }
}

#[test]
fn a_kill_while_saving_leaves_the_old_file_or_the_new_one() {
    let home = TempDir::new().unwrap();
    let place = Place { inside: home.path().to_owned(), outside: home.path().to_owned() };
    fs::copy(paths::rom(), home.path().join("game.gba")).unwrap();
    let args = place.args();
    let args = args.each_ref().map(String::as_str);
    let count = runs("FRAMEWIRE_KILLS", 4);
    let mut killed_within = 0;
    for run in 0..count {
        let mut server = Framewire::serve(&args).unwrap();
        assert_eq!(unfinished(home.path()), Vec::<PathBuf>::new(), "left by the run before");
        place.check(&server.http());
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..3u8 {
                let (http, over, place) = (server.http(), &over, &place);
                scope.spawn(move || {
                    let mut byte = writer;
                    while !over.load(Ordering::Relaxed) {
                        byte = byte.wrapping_add(3);
                        place.write_all(&http, byte);
                        // Sometimes the writer pauses for so long that the server writes the battery save.
                        if byte.is_multiple_of(4) {
                            std::thread::sleep(Duration::from_millis(510));
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(200 + fastrand::u64(0..1500)));
            server.end(Signal::KILL, PATIENCE).unwrap();
            over.store(true, Ordering::Relaxed);
        });
        killed_within += u32::from(
            !unfinished(home.path()).is_empty()
                || !unfinished(&home.path().join("data/snapshots")).is_empty(),
        );
        whole_save(&home.path().join("game.sav"));
        if run == count - 1 {
            place.check(&Framewire::serve(&args).unwrap().http());
        }
    }
    eprintln!("{count} kills, {killed_within} of them while writing a file: all files are complete");
}

#[test]
fn a_full_disk_leaves_the_old_file_or_the_new_one() {
    let Some(disk) = small_disk(4096) else { return };
    let place = Place { inside: disk.inside("").into(), outside: disk.outside("") };
    fs::copy(paths::rom(), disk.outside("game.gba")).unwrap();
    let args = place.args();
    let args = args.each_ref().map(String::as_str);
    let (count, mut kept, mut refusals) = (runs("FRAMEWIRE_FULL_DISKS", 3), 0, 0);
    let mut server = disk.serve(&args).unwrap();
    let save = disk.outside("game.sav");
    for run in 0..count {
        let http = server.http();
        let (old, new) = ((run * 2 % 250) as u8, (run * 2 % 250) as u8 + 1);
        assert_eq!(place.write_all(&http, old), [""; 0]);
        wait_until("the old save is on disk", || Ok(whole_save(&save) == Some(old)));

        // Leaves space for nothing, or for a part of the files.
        disk.fill_up_to(fastrand::u64(0..100) * 4096 * u64::from(!run.is_multiple_of(3))).unwrap();
        refusals += place.write_all(&http, new).len();
        let change = json!({"name": "renamed", "note": "changed"});
        let changed = http.send_json("PATCH", "/v1/snapshots/kept", &change).unwrap().status;
        let renamed = http.get("/v1/snapshots/renamed").unwrap().status == 200;
        assert_eq!(
            (changed == 200, http.get("/v1/snapshots/kept").unwrap().status == 404),
            (renamed, renamed)
        );
        wait_until("the new save is written, or a problem is reported", || {
            Ok(whole_save(&save) == Some(new) || !save_problem(&server).is_empty())
        });
        let problem = save_problem(&server);
        if !problem.is_empty() {
            kept += 1;
            assert!(problem.contains("No space left"), "{problem}");
            assert_eq!(whole_save(&save), Some(old));
        }
        if run.is_multiple_of(10) {
            // The server tries again when it ends, and reports what it cannot write.
            server.end(Signal::TERM, PATIENCE).unwrap();
            let lost = server.log().contains("is lost");
            assert_eq!(whole_save(&save), Some(if lost { old } else { new }));
            disk.empty().unwrap();
            server = disk.serve(&args).unwrap();
        } else {
            disk.empty().unwrap();
            wait_until("the new save is on disk", || Ok(whole_save(&save) == Some(new)));
            wait_until("the problem is over", || Ok(save_problem(&server).is_empty()));
        }
        place.check(&server.http());
        if renamed {
            let back = json!({"name": "kept"});
            let reply = server.http().send_json("PATCH", "/v1/snapshots/renamed", &back).unwrap();
            assert_eq!(reply.status, 200);
        }
        // Once the save has been written, states contain it until the next reset. This reset makes all rounds begin in
        // the same way.
        server.http().post("/coreadapter/reset").unwrap();
    }
    eprintln!("{count} full disks, {kept} saves delayed, {refusals} requests failed: all files complete");
}

#[test]
fn a_game_starts_on_a_full_disk_and_its_save_is_written_later() {
    let Some(disk) = small_disk(64) else { return };
    fs::copy(paths::rom(), disk.outside("game.gba")).unwrap();
    disk.fill_up_to(0).unwrap();
    let server = disk.serve(&["--rom", &disk.inside("game.gba")]).unwrap();
    let http = server.http();
    assert!(fill_save(&http, 7).unwrap().status < 300);
    wait_until("it is reported", || Ok(save_problem(&server).contains("No space left")));
    disk.empty().unwrap();
    let save = disk.outside("game.sav");
    wait_until("the save is on disk", || Ok(save.exists() && whole_save(&save) == Some(7)));
}

/// The reason why the save of the server's emulator is not written; empty if it is written.
fn save_problem(server: &Framewire) -> String {
    let state = server.http().get("/v1/emulator").unwrap().json();
    state["save_problem"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_read_only_folder_is_reported_at_the_start() {
    let Some(disk) = small_disk(256) else { return };
    let (rom, save) = (disk.inside("game.gba"), disk.outside("game.sav"));
    fs::copy(paths::rom(), disk.outside("game.gba")).unwrap();
    for has_save in [false, true] {
        if has_save {
            fs::write(&save, [3; SAVE]).unwrap();
        }
        disk.set_read_only(true).unwrap();
        let server = disk.serve(&["--rom", &rom]).unwrap();
        assert!(save_problem(&server).contains("Read-only file system"), "{}", save_problem(&server));
        assert!(server.log().contains("WARN") && server.log().contains("game.sav"), "{}", server.log());
        assert!(fill_save(&server.http(), 4).unwrap().status < 300);
        disk.set_read_only(false).unwrap();
        wait_until("the save is on disk", || Ok(save.exists() && whole_save(&save) == Some(4)));
        wait_until("the problem is over", || Ok(save_problem(&server).is_empty()));
    }
}

#[test]
fn two_servers_on_one_save_do_not_overwrite_each_other() {
    let home = TempDir::new().unwrap();
    let (rom, save) = (home.path().join("game.gba"), home.path().join("game.sav"));
    fs::copy(paths::rom(), &rom).unwrap();
    let args = ["--rom", rom.to_str().unwrap()];
    let mut one = Framewire::serve(&args).unwrap();
    let mut two = Framewire::serve(&args).unwrap();
    assert_eq!(save_problem(&one), "");
    assert!(save_problem(&two).contains("another emulator uses"), "{}", save_problem(&two));
    assert!(fill_save(&two.http(), 2).unwrap().status < 300);
    assert!(fill_save(&one.http(), 1).unwrap().status < 300);
    wait_until("the first one's save is on disk", || Ok(whole_save(&save) == Some(1)));
    two.end(Signal::TERM, PATIENCE).unwrap();
    assert_eq!(whole_save(&save), Some(1));
    assert!(two.log().contains("is lost"), "{}", two.log());
    // A killed server leaves no lock.
    one.end(Signal::KILL, PATIENCE).unwrap();
    assert_eq!(save_problem(&Framewire::serve(&args).unwrap()), "");
}

#[test]
fn a_signal_writes_the_save_before_the_program_ends() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = TempDir::new().unwrap();
        let rom = home.path().join("game.gba");
        fs::copy(paths::rom(), &rom).unwrap();
        let mut server = Framewire::serve(&["--rom", rom.to_str().unwrap()]).unwrap();
        assert!(server.http().send_json("POST", "/v1/pause", &json!({})).unwrap().status < 300);
        assert!(fill_save(&server.http(), 7).unwrap().status < 300);
        assert_eq!(server.end(signal, PATIENCE).unwrap().code(), Some(0), "{}", server.log());
        assert_eq!(whole_save(&home.path().join("game.sav")), Some(7));
    }
}

#[test]
fn a_data_folder_that_cannot_be_created_is_detected_before_the_server_listens() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let data = file.join("data");
    let args = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    let (status, out, errors) = Framewire::run(&args, PATIENCE).unwrap();
    assert!(!status.success() && out.is_empty(), "{out}");
    assert!(errors.contains("--data") && errors.contains(data.to_str().unwrap()), "{errors}");
}
