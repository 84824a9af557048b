//! Tests of the embedded core's battery saves and their files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framewire_emulator::embedded::{Config, Embedded, Mods, Rom, SaveType, Speed};
use framewire_emulator::{Emulator, EmulatorError, EventKind, WatchRequest};
use framewire_protocol::{Op, Value};
use tempfile::TempDir;

use super::support::{DEMO, batch, bytes, call, config, number, refusal, script, soon, submit, wait_for};

/// The first byte of the cartridge's save memory.
const SRAM: u32 = 0x0E00_0000;

/// A folder with the demo game in it.
struct Home(TempDir);

impl Home {
    fn new() -> Home {
        let home = Home(tempfile::tempdir().expect("a folder"));
        fs::write(home.path("game.gba"), DEMO).expect("written");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn save(&self) -> PathBuf {
        self.path("game.sav")
    }

    /// Starts the game in a paused core.
    fn start(&self) -> Embedded {
        self.start_with(vec![])
    }

    fn start_with(&self, scripts: Vec<PathBuf>) -> Embedded {
        self.start_game("game.gba", scripts)
    }

    fn start_game(&self, game: &str, scripts: Vec<PathBuf>) -> Embedded {
        let rom = Rom::File(self.path(game));
        let config = Config { rom, ..config(Speed::Times(1.0), true, scripts) };
        Embedded::start(config).expect("the game starts")
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.0.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        names.sort();
        names
    }
}

fn poke(emulator: &Embedded, value: u8) {
    call(emulator, Op::Write8 { address: SRAM, value });
}

fn peek(emulator: &Embedded) -> i64 {
    number(call(emulator, Op::Read8 { address: SRAM }))
}

/// A type of Game Boy cartridge with RAM and a battery.
const MBC1: u8 = 0x03;
/// A type of Game Boy cartridge with RAM, a battery and a clock. The save contains the clock at its end.
const MBC3_WITH_CLOCK: u8 = 0x10;

/// A Game Boy game that does nothing.
fn game_boy(cartridge: u8) -> Vec<u8> {
    let mut rom = vec![0u8; 0x8000];
    rom[0x104..0x108].copy_from_slice(&[0xCE, 0xED, 0x66, 0x66]);
    rom[0x147] = cartridge;
    rom[0x149] = 0x02;
    rom[0x14D] = rom[0x134..0x14D].iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte).wrapping_sub(1));
    rom
}

/// Unlocks the RAM of a Game Boy cartridge, and writes its first byte.
fn poke_small(emulator: &Embedded, value: u8) {
    call(emulator, Op::Write8 { address: 0, value: 0x0A });
    call(emulator, Op::Write8 { address: 0xA000, value });
}

fn peek_small(emulator: &Embedded) -> i64 {
    call(emulator, Op::Write8 { address: 0, value: 0x0A });
    number(call(emulator, Op::Read8 { address: 0xA000 }))
}

/// The first byte of a save file.
fn first(path: &Path) -> Option<u8> {
    fs::read(path).expect("a save file").first().copied()
}

fn load(path: &Path, temporary: bool) -> Op {
    Op::LoadSaveFile { path: path.to_str().expect("text").to_owned(), temporary }
}

fn problem(emulator: &Embedded) -> String {
    emulator.state().save_problem.unwrap_or_default()
}

#[test]
fn a_save_is_written_even_if_the_game_is_paused() {
    let home = Home::new();
    let emulator = home.start();
    assert!(fs::read(home.save()).expect("an empty file is created, as in mGBA").is_empty());
    for value in [1, 2] {
        poke(&emulator, value);
        wait_for("the save on disk", || first(&home.save()) == Some(value));
    }
    call(&emulator, Op::Lockstep { timeout: 60_000 });
    poke(&emulator, 3);
    wait_for("the save on disk in lockstep", || first(&home.save()) == Some(3));
    assert_eq!(emulator.state().save_problem, None);
    assert_eq!(home.names(), ["game.gba", "game.sav"]);
}

#[test]
fn a_save_that_changes_in_every_frame_is_still_written() {
    let home = Home::new();
    let source =
        format!("callbacks:add('frame', function() emu:write8({SRAM}, emu:currentFrame() & 0x7f) end)");
    let script = script(&source);
    let emulator = home.start_with(vec![script.path().to_owned()]);
    call(&emulator, Op::Resume {});
    wait_for("a first save on disk", || first(&home.save()).is_some());
    let before = first(&home.save());
    wait_for("a second save on disk", || first(&home.save()) != before);
}

#[test]
fn no_save_is_lost_when_another_game_or_save_is_loaded_or_the_emulator_ends() {
    let home = Home::new();
    let other = home.path("other.gba");
    fs::write(&other, DEMO).expect("written");
    let emulator = home.start();
    poke(&emulator, 1);
    call(&emulator, Op::Reset {});
    assert_eq!(peek(&emulator), 1, "a reset keeps the save");
    call(&emulator, Op::LoadRom { path: other.to_str().expect("text").to_owned() });
    wait_for("the save of the game before", || first(&home.save()) == Some(1));
    poke(&emulator, 2);
    call(&emulator, load(&home.path("third.sav"), false));
    wait_for("the save of the other game", || first(&home.path("other.sav")) == Some(2));
    poke(&emulator, 3);
    drop(emulator);
    assert_eq!(first(&home.path("third.sav")), Some(3));
    assert_eq!(first(&home.save()), Some(1));
}

#[test]
fn a_game_that_is_loaded_without_its_save_is_reported() {
    let home = Home::new();
    let emulator = home.start();
    poke(&emulator, 1);
    call(&emulator, Op::LoadFile { path: home.path("game.gba").to_str().expect("text").to_owned() });
    wait_for("the report", || problem(&emulator).contains("autoload_save"));
    wait_for("the save of the game before", || first(&home.save()) == Some(1));
    call(&emulator, Op::AutoloadSave {});
    assert_eq!(emulator.state().save_problem, None);
    assert_eq!(peek(&emulator), 1);
}

#[test]
fn loading_a_game_of_the_other_console_keeps_the_save_of_the_previous_game() {
    let home = Home::new();
    fs::write(home.path("small.gb"), game_boy(MBC1)).expect("written");
    let emulator = home.start();
    poke(&emulator, 7);
    call(&emulator, Op::LoadRom { path: home.path("small.gb").to_str().expect("text").to_owned() });
    wait_for("the save of the game before", || first(&home.save()) == Some(7));
    poke_small(&emulator, 8);
    drop(emulator);
    assert_eq!(first(&home.path("small.sav")), Some(8));
}

/// Changes the save and then loads the game or the save again, several times. Each change must be there afterwards.
#[track_caller]
fn loads_again(home: &Home, game: &str, poke: fn(&Embedded, u8), peek: fn(&Embedded) -> i64) {
    let emulator = home.start_game(game, vec![]);
    for value in 1..20 {
        poke(&emulator, value);
        let again = match value % 3 {
            0 => Op::LoadRom { path: home.path(game).to_str().expect("text").to_owned() },
            1 => Op::AutoloadSave {},
            _ => load(&home.save(), false),
        };
        assert_eq!(call(&emulator, again), Value::Bool(true));
        assert_eq!(peek(&emulator), i64::from(value));
        assert_eq!(first(&home.save()), Some(value));
    }
}

#[test]
fn a_game_that_is_loaded_again_has_its_latest_save() {
    loads_again(&Home::new(), "game.gba", poke, peek);
}

#[test]
fn a_save_file_that_another_program_empties_does_not_crash_the_game() {
    let home = Home::new();
    fs::write(home.save(), [5; 0x8000]).expect("written");
    let emulator = home.start();
    assert_eq!(peek(&emulator), 5);
    fs::File::create(home.save()).expect("truncated");
    assert_eq!(number(call(&emulator, Op::Read8 { address: SRAM + 0x7000 })), 5);
    poke(&emulator, 6);
    wait_for("the save on disk", || fs::read(home.save()).expect("a file").len() == 0x8000);
    assert_eq!(first(&home.save()), Some(6));
    assert_eq!(home.names(), ["game.gba", "game.sav"], "an empty file is not copied");
}

#[test]
fn a_save_file_that_another_program_changed_is_copied() {
    let home = Home::new();
    fs::write(home.save(), [5; 0x8000]).expect("written");
    let emulator = home.start();
    poke(&emulator, 6);
    wait_for("the save on disk", || first(&home.save()) == Some(6));
    for (number, value) in [(1, 0x51), (2, 0x52)] {
        fs::write(home.save(), [value; 0x8000]).expect("written");
        poke(&emulator, number);
        wait_for("the save on disk", || first(&home.save()) == Some(number));
        let copy = home.path(&format!("game.sav.bak-{number}"));
        assert_eq!(fs::read(copy).expect("a copy"), [value; 0x8000]);
    }
    fs::write(home.save(), [0x53; 0x8000]).expect("written");
    call(&emulator, Op::AutoloadSave {});
    assert_eq!(peek(&emulator), 0x53, "a client can load the other program's file");
    drop(emulator);
    assert_eq!(first(&home.save()), Some(0x53));
}

#[test]
fn no_save_is_lost_if_a_script_never_ends() {
    let home = Home::new();
    let script = script("callbacks:add('shutdown', function() while true do end end)");
    let emulator = home.start_with(vec![script.path().to_owned()]);
    poke(&emulator, 1);
    drop(emulator);
    assert_eq!(first(&home.save()), Some(1));
}

/// When libmgba closes a save, it appends the clock, which is a change. This change must not replace the file that was
/// just loaded.
#[test]
fn closing_a_save_with_a_clock_does_not_overwrite_the_newly_loaded_file() {
    let home = Home::new();
    fs::write(home.path("game.gb"), game_boy(MBC3_WITH_CLOCK)).expect("written");
    let emulator = home.start_game("game.gb", vec![]);
    poke_small(&emulator, 0x11);
    wait_for("the save on disk", || first(&home.save()) == Some(0x11));
    for (value, again) in
        [(0x51, Op::AutoloadSave {}), (0x52, load(&home.save(), false)), (0x53, Op::AutoloadSave {})]
    {
        fs::write(home.save(), [value; 0x2000]).expect("written");
        call(&emulator, again);
        assert_eq!(peek_small(&emulator), i64::from(value));
        // Before this operation loads the file, it writes the changes that are still due.
        call(&emulator, Op::AutoloadSave {});
        assert_eq!(peek_small(&emulator), i64::from(value));
        assert_eq!(first(&home.save()), Some(value));
    }
    poke_small(&emulator, 0x54);
    drop(emulator);
    assert_eq!(first(&home.save()), Some(0x54));
    assert_eq!(home.names(), ["game.gb", "game.gba", "game.sav"], "no copy was needed");
}

#[test]
fn a_game_with_a_clock_that_is_loaded_again_has_its_latest_save() {
    let home = Home::new();
    fs::write(home.path("game.gb"), game_boy(MBC3_WITH_CLOCK)).expect("written");
    loads_again(&home, "game.gb", poke_small, peek_small);
}

/// A script that loads the game's save again as soon as the file `now` exists.
fn script_that_loads_again(home: &Home, save: &Path) -> tempfile::NamedTempFile {
    script(&format!(
        "callbacks:add('frame', function() local now = io.open({:?}); if now then now:close(); os.remove({:?})
         assert(emu:loadSaveFile({save:?}, false)) end end)",
        home.path("now"),
        home.path("now"),
    ))
}

#[test]
fn a_save_that_a_script_loads_again_is_the_latest_save() {
    for (game, cartridge) in [("small.gb", MBC1), ("clock.gb", MBC3_WITH_CLOCK)] {
        let home = Home::new();
        fs::write(home.path(game), game_boy(cartridge)).expect("written");
        let save = home.path(game).with_extension("sav");
        let script = script_that_loads_again(&home, &save);
        let emulator = home.start_game(game, vec![script.path().to_owned()]);
        for value in 1..6 {
            poke_small(&emulator, value);
            fs::write(home.path("now"), "").expect("written");
            call(&emulator, Op::Advance { frames: 1 });
            assert!(!home.path("now").exists(), "the script has loaded the save");
            wait_for("the save in the game", || peek_small(&emulator) == i64::from(value));
            wait_for("the save on disk", || first(&save) == Some(value));
        }
        // The script also gets the changes of another program.
        fs::write(&save, [0x51; 0x2000]).expect("written");
        fs::write(home.path("now"), "").expect("written");
        call(&emulator, Op::Advance { frames: 1 });
        assert_eq!(peek_small(&emulator), 0x51);
        drop(emulator);
        assert_eq!(first(&save), Some(0x51), "{game}");
    }
}

#[cfg(unix)]
#[test]
fn a_game_starts_even_if_its_save_file_is_not_a_regular_file() {
    use std::os::unix::fs::symlink;
    type Make = fn(&Path);
    let cases: [(Make, Option<&str>); 4] = [
        (|path| symlink("/dev/null", path).expect("a link"), None),
        (|path| symlink("/dev/full", path).expect("a link"), Some("is not a file")),
        (|path| fs::create_dir(path).expect("a folder"), Some("is not a file")),
        (
            |path| {
                let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
                assert!(made.success());
            },
            Some("is not a file"),
        ),
    ];
    for (make, expected) in cases {
        let home = Home::new();
        make(&home.save());
        let emulator = home.start();
        match emulator.state().save_problem {
            None => assert_eq!(expected, None),
            Some(problem) => assert!(expected.is_some_and(|text| problem.contains(text)), "{problem}"),
        }
        poke(&emulator, 9);
        assert_eq!(peek(&emulator), 9, "the game runs anyway");
        drop(emulator);
        assert!(!fs::symlink_metadata(home.save()).expect("it is there").is_file(), "it was not replaced");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_request_to_load_an_invalid_save_file_is_refused() {
    let home = Home::new();
    let emulator = home.start();
    poke(&emulator, 4);
    let pipe = home.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    for temporary in [true, false] {
        for path in [Path::new("/dev/full"), Path::new("/dev/zero"), &pipe, home.0.path()] {
            let error = refusal(&emulator, load(path, temporary));
            assert!(error.message.contains("is not a file"), "{error}");
        }
        let error = refusal(&emulator, load(&home.path("no/folder.sav"), temporary));
        assert!(error.message.contains("No such file"), "{error}");
    }
    assert_eq!(peek(&emulator), 4, "the game's own save is still in use");
    call(&emulator, load(Path::new("/proc/self/maps"), true));
    call(&emulator, load(Path::new("/dev/null"), true));
    call(&emulator, load(Path::new("/dev/null"), false));
    poke(&emulator, 5);
    drop(emulator);
    assert_eq!(first(&home.save()), Some(4));
}

#[test]
fn a_save_that_cannot_be_written_is_reported_until_it_is_written() {
    let home = Home::new();
    let emulator = home.start();
    let mut events = emulator.events();
    let mut next = || match soon(async { events.recv().await.ok() }).kind {
        EventKind::Save { problem } => problem,
        other => panic!("{other:?}"),
    };
    fs::remove_file(home.save()).expect("removed");
    fs::create_dir(home.save()).expect("made");
    poke(&emulator, 1);
    let problem = next().expect("a problem");
    assert!(problem.contains("game.sav") && problem.contains("is a directory"), "{problem}");
    assert_eq!(emulator.state().save_problem, Some(problem));
    fs::remove_dir(home.save()).expect("removed");
    assert_eq!(next(), None);
    assert_eq!(emulator.state().save_problem, None);
    assert_eq!(first(&home.save()), Some(1));
}

#[cfg(unix)]
#[test]
fn a_second_emulator_with_the_same_save_file_is_detected() {
    let home = Home::new();
    fs::write(home.save(), [5; 0x8000]).expect("written");
    let one = home.start();
    let two = home.start();
    assert_eq!(one.state().save_problem, None);
    assert!(problem(&two).contains("another emulator uses"), "{}", problem(&two));
    assert_eq!(peek(&two), 5, "the second emulator can read the save");
    poke(&one, 6);
    poke(&two, 7);
    wait_for("the first emulator's save", || first(&home.save()) == Some(6));
    let error = refusal(&two, load(&home.save(), false));
    assert!(error.message.contains("another emulator uses"), "{error}");
    drop(one);
    assert_eq!(first(&home.save()), Some(6));
    call(&two, Op::AutoloadSave {});
    assert_eq!((two.state().save_problem.clone(), peek(&two)), (None, 6));
    poke(&two, 8);
    drop(two);
    assert_eq!(first(&home.save()), Some(8));
}

#[cfg(target_os = "linux")]
#[test]
fn loading_saves_leaks_no_file_descriptors() {
    let home = Home::new();
    let emulator = home.start();
    let rom = home.path("game.gba").to_str().expect("text").to_owned();
    fs::write(home.path("b.sav"), [1; 0x8000]).expect("written");
    let open = || {
        let all = fs::read_dir("/proc/self/fd").expect("descriptors");
        let paths = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        paths.filter(|path| path.starts_with(home.0.path())).count()
    };
    let before = open();
    for _ in 0..20 {
        call(&emulator, load(&home.path("b.sav"), true));
        call(&emulator, Op::AutoloadSave {});
        call(&emulator, load(&home.path("b.sav"), true));
        call(&emulator, load(&home.path("b.sav"), false));
        call(&emulator, load(&home.path("b.sav"), true));
        call(&emulator, Op::LoadRom { path: rom.clone() });
    }
    wait_for("as few open files as before", || open() <= before);
}

#[test]
fn the_temporary_file_of_a_killed_process_is_removed() {
    let home = Home::new();
    fs::write(home.path(".unfinished-dead"), b"half").expect("written");
    drop(home.start());
    assert_eq!(home.names(), ["game.gba", "game.sav"]);
}

#[test]
fn states_are_saved_in_slots_and_errors_contain_the_path() {
    let home = Home::new();
    let emulator = home.start();
    call(&emulator, Op::SaveStateSlot { slot: 1, flags: 31 });
    let before = fs::read(home.path("game.ss1")).expect("a state");
    call(&emulator, Op::SaveStateSlot { slot: 1, flags: 0 });
    assert_ne!(fs::read(home.path("game.ss1")).expect("a state"), before);
    fs::create_dir(home.path("game.ss2")).expect("made");
    let error = refusal(&emulator, Op::SaveStateSlot { slot: 2, flags: 31 });
    assert!(error.message.contains("game.ss2"), "{error}");
    let error = refusal(&emulator, Op::LoadStateSlot { slot: 3, flags: 29 });
    assert!(error.message.contains("nothing is saved in slot 3"), "{error}");
    assert!(!home.names().iter().any(|name| name.starts_with(".unfinished")), "{:?}", home.names());
}

#[test]
fn a_save_that_a_script_loads_is_written_to_its_file() {
    let home = Home::new();
    let path = home.path("mine.sav");
    fs::write(&path, [0x21; 0x8000]).expect("written");
    let source = format!("assert(emu:loadSaveFile({path:?}, false))");
    let script = script(&source);
    let emulator = home.start_with(vec![script.path().to_owned()]);
    assert_eq!(peek(&emulator), 0x21);
    poke(&emulator, 0x22);
    wait_for("the save on disk", || first(&path) == Some(0x22));
}

#[test]
fn a_game_uses_the_save_file_from_the_settings() {
    let home = Home::new();
    let mods = Mods { save: Some(home.path("mine.sav")), ..Mods::default() };
    let start = |mods: Mods| {
        let rom = Rom::File(home.path("game.gba"));
        Embedded::start(Config { rom, mods, ..config(Speed::Times(1.0), true, vec![]) })
    };
    let emulator = start(mods.clone()).expect("the game starts");
    poke(&emulator, 0x4D);
    let other = home.path("other.gba");
    fs::write(&other, DEMO).expect("written");
    let load = |path: &Path| call(&emulator, Op::LoadRom { path: path.to_str().expect("text").into() });
    load(&other);
    poke(&emulator, 0x4E);
    // When the first game is loaded again, it gets the file from the settings again.
    load(&home.path("game.gba"));
    assert_eq!(number(call(&emulator, Op::Read8 { address: SRAM })), 0x4D);
    drop(emulator);
    assert_eq!(fs::read(home.path("mine.sav")).expect("a save")[0], 0x4D);
    assert_eq!(fs::read(home.path("other.sav")).expect("a save")[0], 0x4E);
    assert!(!home.save().exists());

    let refused = start(Mods { save: Some(home.path("none/mine.sav")), ..mods }).err().expect("an error");
    assert!(refused.to_string().contains("cannot write"), "{refused}");
}

#[test]
fn a_game_is_not_overwritten_with_its_save() {
    let home = Home::new();
    let game = home.path("game.gba");
    let mods = Mods { save: Some(home.path("./game.gba")), ..Mods::default() };
    let settings = config(Speed::Times(1.0), true, vec![]);
    let refused =
        Embedded::start(Config { rom: Rom::File(game.clone()), mods, ..settings }).err().expect("an error");
    assert!(refused.to_string().contains("is the game itself"), "{refused}");

    let emulator = home.start();
    let error = refusal(&emulator, load(&game, false));
    assert!(error.message.contains("is the game itself"), "{error}");
    poke(&emulator, 4);
    drop(emulator);
    assert_eq!((fs::read(&game).expect("the game"), first(&home.save())), (DEMO.to_vec(), Some(4)));

    // The save of this game would have the name of the game.
    fs::write(home.path("rom.sav"), DEMO).expect("written");
    let emulator = home.start_game("rom.sav", vec![]);
    assert!(problem(&emulator).contains("is the game itself"), "{}", problem(&emulator));
    poke(&emulator, 5);
    drop(emulator);
    assert_eq!(fs::read(home.path("rom.sav")).expect("the game"), DEMO);

    let script = script(&format!("emu:loadSaveFile({game:?}, false)"));
    let emulator = home.start_with(vec![script.path().to_owned()]);
    poke(&emulator, 6);
    wait_for("the problem", || problem(&emulator).contains("is the game itself"));
    drop(emulator);
    assert_eq!(fs::read(&game).expect("the game"), DEMO);
}

/// When a replay ends, it loads the state from before the replay. So during a replay, a save that this state does not
/// contain must not be changed.
#[test]
fn a_state_with_its_save_changes_the_save_file_after_another_state_was_loaded_except_in_a_replay() {
    for (is_replay, expected) in [(false, 1), (true, 2)] {
        let home = Home::new();
        let emulator = home.start();
        let state = |value| {
            poke(&emulator, value);
            call(&emulator, Op::Advance { frames: 60 });
            bytes(call(&emulator, Op::SaveState { flags: 31 }))
        };
        let (one, two) = (state(1), state(2));
        call(&emulator, Op::LoadState { data: two, flags: 29 });
        let watch = emulator.watch(WatchRequest { keys: true, ..WatchRequest::default() });
        if is_replay {
            call(&emulator, watch.op());
        }
        call(&emulator, Op::LoadState { data: one, flags: 31 });
        assert_eq!(peek(&emulator), 1);
        drop(emulator);
        assert_eq!(first(&home.save()), Some(expected));
    }
}

#[test]
fn a_state_that_a_script_loads_with_its_save_changes_the_save_file_except_in_a_replay() {
    for (is_replay, expected) in [(false, 1), (true, 2)] {
        let home = Home::new();
        let now = home.path("now");
        let source = format!(
            "local state
             callbacks:add('frame', function()
               state = state or emu:read8({SRAM}) == 1 and emu:saveStateBuffer(31)
               local file = io.open({now:?})
               if file then
                 file:close()
                 os.remove({now:?})
                 assert(emu:loadStateBuffer(state, 31))
               end
             end)"
        );
        let script = script(&source);
        let emulator = home.start_with(vec![script.path().to_owned()]);
        for value in [1, 2] {
            poke(&emulator, value);
            call(&emulator, Op::Advance { frames: 60 });
        }
        let two = bytes(call(&emulator, Op::SaveState { flags: 31 }));
        call(&emulator, Op::LoadState { data: two, flags: 29 });
        let watch = emulator.watch(WatchRequest { keys: true, ..WatchRequest::default() });
        if is_replay {
            call(&emulator, watch.op());
        }
        fs::write(&now, "").expect("written");
        call(&emulator, Op::Advance { frames: 1 });
        assert_eq!(peek(&emulator), 1);
        drop(emulator);
        assert_eq!(first(&home.save()), Some(expected));
    }
}

#[test]
fn going_back_does_not_overwrite_a_save_file_that_was_loaded_since() {
    let home = Home::new();
    fs::write(home.path("other.sav"), [7; 0x8000]).expect("written");
    fs::write(home.path("copy.gba"), DEMO).expect("written");
    let emulator = home.start();
    for (value, same, other, loaded) in [
        (2, load(&home.save(), false), load(&home.path("other.sav"), false), 7),
        (
            3,
            load(&home.path("other.sav"), false),
            Op::LoadRom { path: home.path("copy.gba").to_str().expect("text").to_owned() },
            0xFF,
        ),
    ] {
        poke(&emulator, value);
        let frame = number(call(&emulator, Op::Advance { frames: 60 })) as u32 - 20;
        call(&emulator, same);
        call(&emulator, Op::Rewind { frame, line: 0 });
        assert_eq!(peek(&emulator), i64::from(value), "the same file as before");
        call(&emulator, other);
        for line in 0..4 {
            refusal(&emulator, Op::Rewind { frame, line });
        }
        assert_eq!(peek(&emulator), loaded);
    }
    drop(emulator);
    assert_eq!((first(&home.save()), first(&home.path("other.sav"))), (Some(2), Some(3)));
}

#[test]
fn going_back_puts_neither_a_temporary_save_nor_the_save_of_no_file_into_the_save_file() {
    let home = Home::new();
    fs::write(home.path("other.sav"), [7; 0x8000]).expect("written");
    let temporary = load(&home.path("other.sav"), true);
    let without_save = Op::LoadFile { path: home.path("game.gba").to_str().expect("text").to_owned() };
    let emulator = home.start();
    for (hide, hiding, show) in [
        (temporary.clone(), 7, Op::Reset {}),
        (temporary, 7, Op::AutoloadSave {}),
        (without_save, 0xFF, Op::AutoloadSave {}),
    ] {
        poke(&emulator, 2);
        call(&emulator, hide);
        assert_eq!(peek(&emulator), hiding);
        let frame = number(call(&emulator, Op::Advance { frames: 60 })) as u32 - 20;
        call(&emulator, Op::Rewind { frame, line: 0 });
        assert_eq!(peek(&emulator), hiding);
        call(&emulator, show);
        for line in 0..4 {
            refusal(&emulator, Op::Rewind { frame, line });
        }
        assert_eq!(peek(&emulator), 2);
    }
    drop(emulator);
    assert_eq!(first(&home.save()), Some(2));
}

#[test]
fn going_back_does_not_overwrite_a_save_file_that_a_script_has_just_loaded() {
    let home = Home::new();
    let other = home.path("other.sav");
    fs::write(&other, [7; 0x8000]).expect("written");
    let script = script_that_loads_again(&home, &other);
    let emulator = home.start_with(vec![script.path().to_owned()]);
    poke(&emulator, 2);
    let frame = number(call(&emulator, Op::Advance { frames: 60 })) as u32;
    fs::write(home.path("now"), "").expect("written");
    let ops = vec![Op::Advance { frames: 1 }, Op::Rewind { frame, line: 0 }];
    batch(&emulator, ops).results.pop().expect("two results").expect_err("the history is empty");
    assert_eq!(peek(&emulator), 7);
    drop(emulator);
    assert_eq!((first(&home.save()), first(&other)), (Some(2), Some(7)));
}

/// When a replay ends, it loads the state from before the replay. That state's save would overwrite the other file.
#[test]
fn no_save_file_is_loaded_during_a_replay() {
    let home = Home::new();
    fs::write(home.path("other.sav"), [7; 0x8000]).expect("written");
    let emulator = home.start();
    let watch = emulator.watch(WatchRequest { keys: true, ..WatchRequest::default() });
    call(&emulator, watch.op());
    let other = home.path("other.sav");
    for op in [load(&other, false), load(&other, true), Op::AutoloadSave {}] {
        let message = refusal(&emulator, op).message;
        assert!(message.contains("recordings do not hold save files; end that first"), "{message}");
    }
    drop(watch);
    call(&emulator, load(&other, false));
    assert_eq!(peek(&emulator), 7);
}

#[test]
fn a_temporary_save_has_what_the_game_saved_last_in_its_file() {
    let home = Home::new();
    let emulator = home.start();
    for (value, other) in [(1, None), (2, Some(load(&home.path("other.sav"), false)))] {
        poke(&emulator, value);
        if let Some(other) = other {
            call(&emulator, other);
        }
        call(&emulator, load(&home.save(), true));
        assert_eq!(peek(&emulator), i64::from(value));
        call(&emulator, Op::Reset {});
    }
}

#[test]
fn a_game_keeps_the_save_type_of_the_settings_after_a_game_of_the_other_console() {
    let home = Home::new();
    fs::write(home.path("small.gb"), game_boy(MBC1)).expect("written");
    let mut other = DEMO.to_vec();
    other[0xAC..0xB0].copy_from_slice(b"BOTE");
    fs::write(home.path("other.gba"), other).expect("written");
    let mut mods = Mods::default();
    mods.options.hardware.save_type = SaveType::Flash1m;
    let rom = Rom::File(home.path("game.gba"));
    let emulator = Embedded::start(Config { rom, mods, ..config(Speed::Times(1.0), true, vec![]) })
        .expect("the game starts");
    // Before a game has used its save, there is a domain `sram` only if the type of the save is known.
    for (name, is_set) in [
        ("small.gb", false),
        ("game.gba", true),
        ("small.gb", false),
        ("other.gba", false),
        ("game.gba", true),
    ] {
        call(&emulator, Op::LoadRom { path: home.path(name).to_str().expect("text").to_owned() });
        let size = batch(&emulator, vec![Op::DomainSize { domain: "sram".to_owned() }]).single();
        assert_eq!(size == Ok(Value::Int(0x20000)), is_set, "{name}: {size:?}");
    }
}

/// libmgba's list of games has another save type for this game than the settings.
#[test]
fn a_save_file_keeps_its_size_when_its_game_is_loaded_after_a_game_of_the_other_console() {
    let home = Home::new();
    fs::write(home.path("small.gb"), game_boy(MBC1)).expect("written");
    let mut listed = DEMO.to_vec();
    listed[0xAC..0xB0].copy_from_slice(b"BPEE");
    fs::write(home.path("game.gba"), listed).expect("written");
    fs::write(home.save(), [7; 0x8000]).expect("written");
    let mut mods = Mods::default();
    mods.options.hardware.save_type = SaveType::Sram;
    let rom = Rom::File(home.path("game.gba"));
    let emulator = Embedded::start(Config { rom, mods, ..config(Speed::Times(1.0), true, vec![]) })
        .expect("the game starts");
    for name in ["small.gb", "game.gba"] {
        call(&emulator, Op::LoadRom { path: home.path(name).to_str().expect("text").to_owned() });
    }
    poke(&emulator, 0x4D);
    drop(emulator);
    let save = fs::read(home.save()).expect("a save");
    assert_eq!((save[0], save.len()), (0x4D, 0x8000));
}

#[cfg(unix)]
#[test]
fn a_game_that_is_loaded_by_another_path_has_the_save_file_from_the_settings() {
    let home = Home::new();
    fs::create_dir(home.path("folder")).expect("made");
    std::os::unix::fs::symlink(home.path("game.gba"), home.path("link.gba")).expect("a link");
    let rom = Rom::File(home.path("game.gba"));
    let mods = Mods { save: Some(home.path("mine.sav")), ..Mods::default() };
    let emulator = Embedded::start(Config { rom, mods, ..config(Speed::Times(1.0), true, vec![]) })
        .expect("the game starts");
    for (value, name) in [(1, "folder/../game.gba"), (2, "link.gba")] {
        poke(&emulator, value);
        call(&emulator, Op::LoadRom { path: home.path(name).to_str().expect("text").to_owned() });
        assert_eq!(peek(&emulator), i64::from(value), "{name}");
        poke(&emulator, value + 10);
        wait_for("the save on disk", || first(&home.path("mine.sav")) == Some(value + 10));
    }
    assert!(!home.save().exists() && !home.path("link.sav").exists());
}

#[test]
fn a_core_that_is_stopped_while_another_handle_exists_writes_its_save() {
    let home = Home::new();
    let core = Arc::new(home.start());
    let other = core.clone();
    poke(&core, 0x5A);
    core.stop();
    assert_eq!(fs::read(home.save()).expect("a save")[0], 0x5A);
    assert_eq!(submit(&*other, Op::Read8 { address: SRAM }), Err(EmulatorError::Stopped));
    other.stop();
}
