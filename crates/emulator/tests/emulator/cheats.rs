//! Tests of cheats and patches in an embedded core.

use framewire_emulator::embedded::{Config, Embedded, Mods, Options, Patching, Rom, Speed};
use framewire_emulator::{Emulator, WatchRequest};
use framewire_expression::Code;
use framewire_protocol::{Op, Status, Value};

use super::support::{
    DEMO, batch, call, config, number, rebuilt, refusal, rom_file, script, start, wait_for,
};

/// Memory that the game never uses: `scratch` in rom/memory-map.toml.
const SCRATCH: u32 = 0x0200_0100;

fn add(name: &str, codes: &str, enabled: bool) -> Op {
    Op::AddCheat { name: name.to_owned(), kind: "raw".to_owned(), codes: codes.to_owned(), enabled }
}

fn list(emulator: &Embedded) -> Vec<String> {
    let Value::List(texts) = call(emulator, Op::Cheats {}) else { panic!("a list") };
    texts.into_iter().map(|text| if let Value::Text(text) = text { text } else { panic!("a text") }).collect()
}

#[test]
fn cheats_act_in_exact_frames_and_stay_after_resets_and_loaded_states() {
    let emulator = start(Speed::Times(1.0), true);
    let state = call(&emulator, Op::SaveState { flags: 31 });
    let Value::Bytes(state) = state else { panic!("bytes") };
    let read = || Op::Read8 { address: SCRATCH };
    let poke = || Op::Write8 { address: SCRATCH, value: 1 };
    let outcome = batch(
        &emulator,
        vec![
            add("Scratch", "02000100:63", false),
            poke(),
            Op::Advance { frames: 1 },
            read(),
            Op::EnableCheat { id: 1, enabled: true },
            read(),
            poke(),
            read(),
            Op::Advance { frames: 1 },
            read(),
            Op::Reset {},
            Op::Advance { frames: 1 },
            read(),
            Op::LoadState { data: state, flags: 31 },
            poke(),
            Op::Advance { frames: 1 },
            read(),
            Op::RemoveCheat { id: 1 },
            poke(),
            Op::Advance { frames: 1 },
            read(),
        ],
    );
    let values: Vec<i64> = [3, 5, 7, 9, 12, 16, 20]
        .map(|index| number(outcome.results[index].clone().expect("a number")))
        .to_vec();
    assert_eq!(values, [1, 0x63, 1, 0x63, 0x63, 0x63, 1]);
}

#[test]
fn cheats_can_be_listed_switched_and_removed() {
    let emulator = start(Speed::Times(1.0), true);
    assert_eq!(call(&emulator, add("A", "02000100:63\n02000104:64", true)), Value::Int(1));
    assert_eq!(call(&emulator, add("B", "02000108:65", false)), Value::Int(2));
    assert_eq!(
        list(&emulator),
        ["1", "on", "raw", "A", "02000100:63\n02000104:64", "2", "off", "raw", "B", "02000108:65"]
    );
    call(&emulator, Op::RemoveCheat { id: 1 });
    call(&emulator, Op::EnableCheat { id: 2, enabled: true });
    assert_eq!(list(&emulator)[..2], ["2", "on"]);
    let refused = refusal(&emulator, Op::EnableCheat { id: 1, enabled: true });
    assert_eq!(
        (refused.status, refused.message.as_str()),
        (Status::NotFound, "there is no cheat 1; numbers in use: 2")
    );
    let refused = refusal(&emulator, add("C", "0200010X:63", true));
    assert_eq!(refused.status, Status::BadArgument);
    assert!(
        refused.message.starts_with("line 1 (\"0200010X:63\"): the character 'X' in column 8"),
        "{refused}"
    );
    call(&emulator, Op::RemoveCheat { id: 0 });
    assert!(list(&emulator).is_empty());
}

#[test]
fn a_file_of_cheats_is_loaded_completely_or_not_at_all() {
    let emulator = start(Speed::Times(1.0), true);
    let home = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, text).expect("written");
        Op::LoadCheats { path: path.to_str().expect("text").to_owned() }
    };
    let refused = refusal(&emulator, write("bad.cheats", "# A\n02000100:63\n# B\n02000104:6\n"));
    assert!(
        refused.message.contains("bad.cheats line 4 (\"02000104:6\"): it has 8 and 1 digits"),
        "{refused}"
    );
    assert!(list(&emulator).is_empty());
    let read = |address| call(&emulator, Op::Read8 { address });
    assert_eq!(read(SCRATCH), Value::Int(0), "a cheat of a refused file was applied");
    assert_eq!(call(&emulator, write("good.cheats", "# A\n02000100:63\n# B\n02000104:64\n")), Value::Int(2));
    assert_eq!((read(SCRATCH), read(SCRATCH + 4)), (Value::Int(0x63), Value::Int(0x64)));
    assert_eq!(list(&emulator).len(), 10);
    let refused = refusal(&emulator, Op::LoadCheats { path: "/no/such.cheats".to_owned() });
    assert_eq!(refused.status, Status::NotFound);
}

#[test]
fn loading_another_game_removes_the_cheats() {
    let emulator = start(Speed::Times(1.0), true);
    call(&emulator, add("A", "02000100:63", true));
    let (_file, path) = rom_file(&rebuilt());
    call(&emulator, Op::LoadRom { path });
    assert!(list(&emulator).is_empty());
    assert_eq!(call(&emulator, add("A", "02000100:63", true)), Value::Int(2));
}

#[test]
fn a_recording_and_cheats_exclude_each_other() {
    let emulator = start(Speed::Times(1.0), true);
    let request = || WatchRequest { keys: true, ..WatchRequest::default() };
    call(&emulator, add("A", "02000100:63", true));
    let watch = emulator.watch(request());
    let refused = refusal(&emulator, watch.op());
    assert!(refused.message.contains("recordings do not hold cheats"), "{refused}");
    call(&emulator, Op::EnableCheat { id: 1, enabled: false });
    call(&emulator, watch.op());
    for op in
        [Op::EnableCheat { id: 1, enabled: true }, add("B", "02000100:63", true), Op::RemoveCheat { id: 0 }]
    {
        let refused = refusal(&emulator, op);
        assert_eq!(refused.status, Status::Busy);
        assert!(refused.message.contains("being recorded or replayed"), "{refused}");
    }
    drop(watch);
    call(&emulator, Op::EnableCheat { id: 1, enabled: true });
    // In a replay with `ReplayClock::Own` (crates/recording), the flag for hashes alone shows that the watch belongs to
    // a replay.
    let replay = emulator.watch(WatchRequest { every: 10, hashes: true, ..WatchRequest::default() });
    let refused = refusal(&emulator, replay.op());
    assert!(refused.message.contains("recordings do not hold cheats"), "{refused}");
    // A replay cannot begin while a value is frozen, either.
    call(&emulator, Op::RemoveCheat { id: 0 });
    let address = Code::constant(0x0200_0100).encode();
    let freeze = Op::Freeze { name: "mark".to_owned(), kind: "u8".to_owned(), address, data: vec![1] };
    call(&emulator, freeze);
    let refused = refusal(&emulator, replay.op());
    assert!(refused.message.contains("the value at mark is frozen"), "{refused}");
    call(&emulator, Op::Unfreeze { name: "mark".to_owned() });
    call(&emulator, replay.op());
}

/// Options with which the patch file next to the ROM is applied.
fn next_to() -> Options {
    Options { patching: Patching::NextTo, ..Options::default() }
}

#[test]
fn a_game_starts_with_its_patch_and_cheats() {
    let home = tempfile::tempdir().expect("a folder");
    let file = |name: &str, bytes: &[u8]| {
        let path = home.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    let rom = file("game.gba", DEMO);
    let patch = file("game.ips", b"PATCH\0\0\xA0\0\x04MINEEOF");
    let cheats = file("game.cheats", b"# A\n02000100:63\n");
    let start = |mods: Mods| {
        let config = config(Speed::Times(1.0), true, vec![]);
        Embedded::start(Config { rom: Rom::File(rom.clone()), mods, ..config })
    };
    let emulator = start(Mods { options: next_to(), cheats: vec![cheats.clone()], ..Mods::default() })
        .expect("the game starts");
    let state = emulator.state();
    assert_eq!(state.title.as_deref(), Some("MINEEWIRE"));
    assert_eq!(state.patch.as_deref(), patch.to_str());
    assert_eq!(list(&emulator).len(), 5);
    drop(emulator);

    let emulator = start(Mods::default()).expect("the game starts");
    assert_eq!((emulator.state().title.as_deref(), emulator.state().patch), (Some("FRAMEWIRE"), None));
    drop(emulator);

    std::fs::write(&cheats, "# A\n02000100:6\n").expect("written");
    let refused = start(Mods { cheats: vec![cheats], ..Mods::default() }).err().expect("an error");
    assert!(refused.to_string().contains("game.cheats line 2"), "{refused}");
    std::fs::write(&patch, "PATCH").expect("written");
    let refused = start(Mods { options: next_to(), ..Mods::default() }).err().expect("an error");
    assert!(refused.to_string().contains("game.ips (byte 5): the end mark EOF is missing"), "{refused}");
}

#[test]
fn a_game_that_a_script_loads_has_no_patch() {
    let home = tempfile::tempdir().expect("a folder");
    let rom = home.path().join("game.gba");
    std::fs::write(&rom, DEMO).expect("written");
    std::fs::write(rom.with_extension("ips"), b"PATCH\0\0\xA0\0\x04MINEEOF").expect("written");
    // The script loads the same file, to which libmgba applies no patch.
    let script = script(&format!(
        "local done = false
         callbacks:add('frame', function()
           if not done then done = true; assert(emu:loadFile({rom:?})) end
         end)"
    ));
    let mods = Mods { options: next_to(), ..Mods::default() };
    let config = config(Speed::Times(1.0), true, vec![script.path().to_owned()]);
    let emulator =
        Embedded::start(Config { rom: Rom::File(rom.clone()), mods, ..config }).expect("the game starts");
    assert!(emulator.state().patch.is_some());
    call(&emulator, Op::Resume {});
    wait_for("the game without its patch", || emulator.state().title.as_deref() == Some("FRAMEWIRE"));
    assert_eq!(emulator.state().patch, None);
    assert_eq!(call(&emulator, Op::LoadRom { path: rom.display().to_string() }), Value::Bool(true));
    wait_for("the game with its patch", || emulator.state().title.as_deref() == Some("MINEEWIRE"));
    assert!(emulator.state().patch.is_some());
}

#[test]
fn a_short_rom_is_reported() {
    let mut rom = vec![0u8; 0x8000];
    rom[0x104..0x108].copy_from_slice(&[0xCE, 0xED, 0x66, 0x66]);
    rom[0x148] = 1;
    let emulator =
        Embedded::start(Config { rom: Rom::Bytes(rom.leak()), ..config(Speed::Times(1.0), true, vec![]) })
            .expect("it starts");
    let problems = emulator.state().rom_problems;
    assert!(problems.iter().any(|problem| problem.contains("cut short")), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("checksum")), "{problems:?}");
}
