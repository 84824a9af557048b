//! Tests of cheats of each kind, with the demo game and a small Game Boy ROM.

use framewire_libmgba::{Cheat, CheatKind, Core, read_cheats};

use crate::support::{DEMO, file, gb, gb_core, gba, run};

/// An address to which the demo game never writes.
const SCRATCH: u32 = 0x0200_0100;
/// The address of the title in the header of a GBA ROM.
const TITLE: u32 = 0x0800_00A0;
/// An address in the ROM of `gb`, after its program.
const GB_UNUSED: u32 = 0x0160;

/// The keys of encrypted GameShark and Action Replay codes.
const GAMESHARK: [u32; 4] = [0x09F4_FBBD, 0x9681_884A, 0x3520_27E9, 0xF3DE_E5A7];
const ACTION_REPLAY: [u32; 4] = [0x7AA9_648F, 0x7FAE_6994, 0xC0EF_AAD5, 0x4271_2C57];

/// Encrypts a code as these devices do, with the Tiny Encryption Algorithm.
fn encrypted(key: [u32; 4], mut a: u32, mut b: u32) -> String {
    let mix = |value: u32, sum: u32, first: u32, second: u32| {
        (value << 4).wrapping_add(first) ^ value.wrapping_add(sum) ^ (value >> 5).wrapping_add(second)
    };
    let mut sum = 0u32;
    for _ in 0..32 {
        sum = sum.wrapping_add(0x9E37_79B9);
        a = a.wrapping_add(mix(b, sum, key[0], key[1]));
        b = b.wrapping_add(mix(a, sum, key[2], key[3]));
    }
    format!("{a:08X} {b:08X}")
}

/// Makes a Game Genie code. `replaced` is the byte that the code replaces. Without `replaced`, the code is shorter and
/// replaces any byte.
fn game_genie(address: u32, value: u8, replaced: Option<u8>) -> String {
    let value = u32::from(value);
    let first = value << 4 | address >> 8 & 0xF;
    let second = (address & 0xFF) << 4 | (address >> 12 ^ 0xF);
    let Some(replaced) = replaced else { return format!("{first:03X}-{second:03X}") };
    let check = u32::from(replaced) ^ 0xBA;
    let third = (check >> 2 & 0xF) << 8 | (check & 3) << 2 | check >> 6;
    format!("{first:03X}-{second:03X}-{third:03X}")
}

fn demo() -> Core {
    Core::from_bytes(DEMO).expect("the demo game")
}

#[track_caller]
fn add(core: &mut Core, kind: CheatKind, codes: &str) {
    core.add_cheat(&Cheat::new("test", kind, codes)).expect(codes);
}

#[test]
fn codes_of_each_kind_change_memory_in_each_frame() {
    for (kind, codes, width, value) in [
        (CheatKind::Raw, "02000100:63".to_owned(), 1, 0x63),
        (CheatKind::Raw, "02000100:1234".to_owned(), 2, 0x1234),
        (CheatKind::Auto, "02000100:12345678".to_owned(), 4, 0x1234_5678),
        (CheatKind::CodeBreaker, "32000100 0063".to_owned(), 1, 0x63),
        (CheatKind::CodeBreaker, "82000100 1234".to_owned(), 2, 0x1234),
        (CheatKind::Auto, "82000100 4321".to_owned(), 2, 0x4321),
        (CheatKind::CodeBreaker, "42000100 00AA\n00000002 0002".to_owned(), 4, 0x00AA_00AA),
        (CheatKind::GameSharkRaw, "02000100 00000055".to_owned(), 1, 0x55),
        (CheatKind::GameShark, encrypted(GAMESHARK, 0x1200_0100, 0x4321), 2, 0x4321),
        (CheatKind::Auto, encrypted(GAMESHARK, 0x1200_0100, 0x4321), 2, 0x4321),
        (CheatKind::ActionReplayRaw, "00200100 00000077".to_owned(), 1, 0x77),
        (CheatKind::ActionReplay, encrypted(ACTION_REPLAY, 0x0420_0100, 0x1111_2222), 4, 0x1111_2222),
        (CheatKind::Auto, encrypted(ACTION_REPLAY, 0x0220_0100, 0x1111), 2, 0x1111),
    ] {
        let mut core = demo();
        run(&mut core, 2);
        add(&mut core, kind, &codes);
        let read = |core: &mut Core| match width {
            1 => u32::from(core.read8(SCRATCH)),
            2 => u32::from(core.read16(SCRATCH)),
            _ => core.read32(SCRATCH),
        };
        assert_eq!(read(&mut core), value, "{kind} {codes}: at once");
        for drawn in [true, false] {
            core.write32(SCRATCH, 0);
            core.set_drawing(drawn);
            run(&mut core, 1);
            assert_eq!(read(&mut core), value, "{kind} {codes}: after a frame, drawn: {drawn}");
        }
        core.enable_cheat(0, false);
        core.write32(SCRATCH, 0);
        run(&mut core, 2);
        assert_eq!(read(&mut core), 0, "{kind} {codes}: switched off");
        core.enable_cheat(0, true);
        core.reset();
        run(&mut core, 1);
        assert_eq!(read(&mut core), value, "{kind} {codes}: after a reset");
    }
}

#[test]
fn a_condition_is_checked_in_each_frame() {
    let mut core = demo();
    add(&mut core, CheatKind::CodeBreaker, "72000100 0063\n82000104 0001");
    run(&mut core, 1);
    assert_eq!(core.read16(SCRATCH + 4), 0);
    core.write16(SCRATCH, 0x63);
    run(&mut core, 1);
    assert_eq!(core.read16(SCRATCH + 4), 1);
}

#[test]
fn codes_that_change_the_rom_are_undone() {
    for (kind, codes) in [
        (CheatKind::Raw, "080000A0:4142".to_owned()),
        (CheatKind::GameSharkRaw, "60000050 00004142".to_owned()),
        (CheatKind::ActionReplayRaw, "00000000 18000050\n00004142 00000000".to_owned()),
    ] {
        let mut core = demo();
        let original = core.read16(TITLE);
        let checksum = core.crc32();
        add(&mut core, kind, &codes);
        run(&mut core, 3);
        assert_eq!(core.read16(TITLE), 0x4142, "{kind}");
        // Another cheat changes the same bytes. Each of the two is switched off or removed while the other one is on.
        add(&mut core, CheatKind::Raw, "080000A0:5555");
        assert_eq!(core.read16(TITLE), 0x5555);
        core.enable_cheat(0, false);
        run(&mut core, 1);
        assert_eq!(core.read16(TITLE), 0x5555, "{kind}");
        core.enable_cheat(0, true);
        core.remove_cheat(1);
        assert_eq!(core.read16(TITLE), 0x4142, "{kind}");
        core.clear_cheats();
        assert_eq!((core.read16(TITLE), core.crc32()), (original, checksum), "{kind}");
    }
}

#[test]
fn codes_with_a_master_code_are_applied_when_the_game_reaches_it() {
    // add r0, pc, #1; bx r0; then, in Thumb code at 0x080000C8: nop; b back to nop.
    let mut rom = gba("MASTER", "BFWE");
    rom[0xC0..0xC8].copy_from_slice(&[0x01, 0x00, 0x8F, 0xE2, 0x10, 0xFF, 0x2F, 0xE1]);
    rom[0xC8..0xCC].copy_from_slice(&[0xC0, 0x46, 0xFD, 0xE7]);
    let mut core = Core::from_bytes(&rom).unwrap();
    add(&mut core, CheatKind::CodeBreaker, "100000C8 0007");
    add(&mut core, CheatKind::CodeBreaker, "82000100 0063");
    assert_eq!(core.read16(SCRATCH), 0, "the game has not reached the master code");
    run(&mut core, 1);
    assert_eq!(core.read16(SCRATCH), 0x63);
    core.enable_cheat(1, false);
    core.write16(SCRATCH, 0);
    run(&mut core, 1);
    assert_eq!(core.read16(SCRATCH), 0);
    core.clear_cheats();
    assert_eq!(core.read16(0x0800_00C8), 0x46C0, "the master code is gone from the ROM");
    run(&mut core, 1);
}

#[test]
fn codes_of_the_game_boy_change_memory_and_the_rom() {
    for (kind, codes) in [
        (CheatKind::GameShark, "0163A0C0"),
        (CheatKind::Auto, "0163A0C0"),
        (CheatKind::CodeBreaker, "00C0A0-63"),
        (CheatKind::Raw, "C0A0:63"),
    ] {
        let mut core = gb_core();
        add(&mut core, kind, codes);
        core.write8(0xC0A0, 0);
        run(&mut core, 1);
        assert_eq!(core.read8(0xC0A0), 0x63, "{kind} {codes}");
        core.set_drawing(false);
        core.write8(0xC0A0, 0);
        run(&mut core, 1);
        assert_eq!(core.read8(0xC0A0), 0x63, "{kind} {codes}, not drawn");
    }
    for replaced in [None, Some(0)] {
        let mut core = gb_core();
        add(&mut core, CheatKind::GameGenie, &game_genie(GB_UNUSED, 0x3E, replaced));
        run(&mut core, 2);
        assert_eq!(core.read8(GB_UNUSED), 0x3E, "{replaced:?}");
        core.enable_cheat(0, false);
        assert_eq!(core.read8(GB_UNUSED), 0);
    }
}

#[test]
fn a_game_genie_code_changes_only_the_banks_with_its_byte() {
    let mut rom = gb("BANKS");
    rom.resize(0x10000, 0);
    rom[0x148] = 1;
    rom[0x14D] = rom[0x134..0x14D].iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte).wrapping_sub(1));
    // The bytes that banks 1 to 3 have at the address 0x5000.
    for (bank, byte) in [(1, 0x11), (2, 0x22), (3, 0x33)] {
        rom[bank * 0x4000 + 0x1000] = byte;
    }
    let mut core = Core::from_bytes(&rom).unwrap();
    add(&mut core, CheatKind::GameGenie, &game_genie(0x5000, 0x99, Some(0x22)));
    let banks = |core: &mut Core| {
        [1, 2, 3].map(|bank| {
            core.write8(0x2000, bank);
            run(core, 2);
            core.read8(0x5000)
        })
    };
    assert_eq!(banks(&mut core), [0x11, 0x99, 0x33]);
    core.clear_cheats();
    assert_eq!(banks(&mut core), [0x11, 0x22, 0x33]);
    add(&mut core, CheatKind::GameGenie, &game_genie(0x5000, 0x99, None));
    assert_eq!(banks(&mut core), [0x99, 0x99, 0x99]);
}

#[test]
fn states_do_not_change_cheats_and_a_script_that_loads_a_state_does_no_harm() {
    let mut core = demo();
    run(&mut core, 2);
    let before = core.save_state(31).unwrap();
    add(&mut core, CheatKind::Raw, "02000100:63");
    let with = core.save_state(31).unwrap();
    for state in [&before, &with] {
        core.load_state(state, 31).unwrap();
        assert_eq!(core.cheats(), 1);
        core.write8(SCRATCH, 0);
        run(&mut core, 1);
        assert_eq!(core.read8(SCRATCH), 0x63);
    }
    // A script loads states with libmgba's own function, which replaces libmgba's cheats.
    crate::support::lua(&mut core, "emu:loadStateBuffer(emu:saveStateBuffer(31), 31)");
    core.clear_cheats();
    assert_eq!(core.cheats(), 0);
    core.write8(SCRATCH, 0);
    run(&mut core, 1);
    assert_eq!(core.read8(SCRATCH), 0);
    add(&mut core, CheatKind::Raw, "02000100:64");
    run(&mut core, 1);
    assert_eq!(core.read8(SCRATCH), 0x64);
}

#[test]
fn the_cheats_of_a_state_that_a_script_loads_are_removed() {
    let (_home, path) = file("cheats.state", b"");
    let path = format!("{:?}", path.to_str().unwrap());
    let mut other = demo();
    run(&mut other, 2);
    add(&mut other, CheatKind::Raw, "02000100:63");
    crate::support::lua(&mut other, &format!("emu:saveStateFile({path}, 31)"));
    let mut core = demo();
    run(&mut core, 2);
    let original = core.read8(TITLE);
    for ours in [0, 1, 2] {
        core.clear_cheats();
        let name = format!("{ours} cheats");
        if ours > 0 {
            add(&mut core, CheatKind::Raw, "080000A0:42");
            assert_eq!(core.read8(TITLE), 0x42);
        }
        if ours > 1 {
            add(&mut core, CheatKind::Raw, "02000102:11");
        }
        crate::support::lua(&mut core, &format!("emu:loadStateFile({path}, 31)"));
        assert_eq!(core.cheats(), 0, "{name}");
        assert_eq!(core.read8(TITLE), original, "{name}: the ROM");
        core.write8(SCRATCH, 0);
        run(&mut core, 1);
        assert_eq!(core.read8(SCRATCH), 0, "{name}: the state's cheat");
    }
}

#[test]
fn loading_another_game_removes_the_cheats() {
    let mut core = demo();
    add(&mut core, CheatKind::Raw, "02000100:63\n080000A0:4142");
    let (_home, path) = file("other.gba", &gba("OTHER", "BFWE"));
    core.load_file(&path).unwrap();
    core.reset();
    assert_eq!(core.cheats(), 0);
    assert_eq!(core.title(), "OTHER");
    run(&mut core, 2);
    assert_eq!(core.read8(SCRATCH), 0);
}

#[test]
fn a_cheat_file_of_mgba_is_loaded() {
    let text = "!GSAv1 raw\n# Byte\n02000100 00000055\n!reset\n!disabled\n# Off\n82000104 1234\n# Word\n82000108 1234\n";
    let (_home, path) = file("demo.cheats", text.as_bytes());
    let mut core = demo();
    for cheat in read_cheats(&path).unwrap() {
        core.add_cheat(&cheat).unwrap();
    }
    run(&mut core, 1);
    let read = [core.read16(SCRATCH), core.read16(SCRATCH + 4), core.read16(SCRATCH + 8)];
    assert_eq!(read, [0x55, 0, 0x1234]);
}

/// Adds a cheat, which must be refused. Returns the error message.
#[track_caller]
fn refused(core: &mut Core, kind: CheatKind, codes: &str) -> String {
    let error = core.add_cheat(&Cheat::new("test", kind, codes)).expect_err(codes).to_string();
    assert_eq!(core.cheats(), 0, "{codes}");
    error
}

#[test]
fn invalid_codes_are_refused_with_their_line_and_the_reason() {
    let (mut gba, mut gb) = (demo(), gb_core());
    for (kind, codes, line, reason) in [
        (CheatKind::Auto, "", "cheat \"test\"", "it has 0 codes"),
        (CheatKind::Auto, "82000100 0063\n8200010G 0063", "line 2", "'G' in column 8"),
        (CheatKind::Auto, "82000100 006", "line 1", "it has 8 and 3 digits"),
        (CheatKind::Auto, "82000100 00063", "line 1", "it has 8 and 5 digits"),
        (CheatKind::Auto, "82000100", "line 1", "it has 8 digits"),
        (CheatKind::Auto, "\n\n82000100 0063 0063", "line 3", "it has 8 and 4 and 4 digits"),
        (CheatKind::CodeBreaker, "82000100 00630000", "line 1", "XXXXXXXX YYYY (CodeBreaker)"),
        (CheatKind::GameShark, "82000100 0063", "line 1", "XXXXXXXX YYYYYYYY"),
        (CheatKind::GameGenie, "00A-17B-C49", "line 1", "no game_genie codes"),
        (CheatKind::Raw, "02000100:123456", "line 1", "ADDRESS:VALUE"),
        (CheatKind::Raw, "02000101:1234", "line 1", "not a multiple of 2"),
        (CheatKind::Raw, "00000100:12", "line 1", "writes to 0x00000100"),
        (CheatKind::Raw, "09000000:12", "line 1", "changes the ROM at 0x09000000"),
        (CheatKind::CodeBreaker, "42000100 00AA", "line 1", "not complete"),
        (CheatKind::CodeBreaker, "52000100 00AA", "line 1", "does not know"),
        (CheatKind::CodeBreaker, "81000100 0063", "line 1", "writes to 0x01000100"),
        (CheatKind::CodeBreaker, "11000000 0007", "line 1", "changes the ROM at 0x09000000"),
        (CheatKind::GameSharkRaw, "92000100 00000000", "line 1", "does not know"),
        (CheatKind::GameSharkRaw, "6FFFFFFF 00000000", "line 1", "the ROM has no byte"),
        (CheatKind::ActionReplayRaw, "00000000 18000050", "line 1", "not complete"),
        (CheatKind::ActionReplayRaw, "88200100 00000001", "line 1", "not complete"),
        // Not encrypted, so decrypting it gives a random code.
        (CheatKind::ActionReplay, "00200100 00000077", "line 1", ""),
    ] {
        let error = refused(&mut gba, kind, codes);
        assert!(error.starts_with(line) && error.contains(reason), "{codes}: {error}");
    }
    for (kind, codes, line, reason) in [
        (CheatKind::GameShark, "0163A0C", "line 1", "it has 7 digits"),
        (CheatKind::GameShark, "01630040", "line 1", "writes to 0x00004000"),
        (CheatKind::ActionReplay, "0163A0C0", "line 1", "no action_replay codes"),
        (CheatKind::GameGenie, "00A-17", "line 1", "XXX-XXX"),
        (CheatKind::GameGenie, "3E1-607", "line 1", "changes the ROM at 0x00008160"),
        (CheatKind::Raw, "0160:12", "line 1", "writes to 0x00000160"),
        (CheatKind::Raw, "C0A0:123", "line 1", "ADDRESS:VALUE"),
    ] {
        let error = refused(&mut gb, kind, codes);
        assert!(error.starts_with(line) && error.contains(reason), "{codes}: {error}");
    }
    let other = game_genie(GB_UNUSED, 0x3E, Some(0x77));
    let error = refused(&mut gb, CheatKind::GameGenie, &other);
    assert!(error.contains("replaces the byte 0x77"), "{error}");
}
