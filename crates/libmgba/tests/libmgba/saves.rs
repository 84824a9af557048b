use std::fs;

use framewire_libmgba::{Core, Error, MAX_SAVE_SIZE, SaveId, flags};

use crate::support::{Transcript, file, gb_core, gba, gba_core, lua, run};

const GBA_SRAM: u32 = 0x0E00_0000;
const GB_SRAM: u32 = 0xA000;

/// Enables writes to the Game Boy cartridge's RAM, as a game does first.
fn unlock(core: &mut Core) {
    core.write8(0x0000, 0x0A);
}

/// The bytes for the file of a save.
fn bytes_of(core: &Core, id: SaveId) -> Vec<u8> {
    core.saves().find(|save| save.id == id).expect("it is not forgotten").bytes.to_vec()
}

#[test]
fn a_save_is_not_loaded_automatically() {
    let (dir, path) = file("game.gba", &gba("FRAMEWIRE", "BFWE"));
    fs::write(dir.path().join("game.sav"), [0x5A; 0x8000]).unwrap();
    let mut core = Core::open(&path).unwrap();
    run(&mut core, 2);
    assert_ne!(core.read8(GBA_SRAM), 0x5A);
    assert_eq!(core.save_path(), dir.path().join("game.sav"));
    core.load_save(&fs::read(core.save_path()).unwrap()).unwrap();
    core.reset();
    run(&mut core, 2);
    assert_eq!(core.read8(GBA_SRAM), 0x5A);
}

#[test]
fn a_save_stays_in_memory_until_it_is_forgotten() {
    for (mut core, sram) in [(gba_core(), GBA_SRAM), (gb_core(), GB_SRAM)] {
        let first = core.load_save(&[]).unwrap();
        core.reset();
        unlock(&mut core);
        core.write8(sram + 5, 0x77);
        assert_eq!(core.read8(sram + 5), 0x77);
        run(&mut core, 60);
        assert_eq!(core.save_data().unwrap()[5], 0x77);
        assert_eq!(bytes_of(&core, first)[5], 0x77);
        core.forget_save(first);
        assert_eq!(core.saves().count(), 1, "it is in use");
        let second = core.load_save(&[0x22; 0x8000]).unwrap();
        assert_eq!((core.saves().count(), bytes_of(&core, first)[5]), (2, 0x77));
        assert!(core.saves().all(|save| save.in_use == (save.id == second)));
        core.forget_save(first);
        core.unload_save();
        assert_eq!(bytes_of(&core, second), [0x22; 0x8000]);
        core.forget_save(second);
        assert_eq!(core.saves().count(), 0);
    }
}

#[test]
fn the_save_of_the_earlier_rom_stays_when_another_rom_is_loaded() {
    let (_dir, path) = file("game.gba", &gba("OTHER", "BOTE"));
    let mut core = gba_core();
    let save = core.load_save(&[1; 0x8000]).unwrap();
    core.read8(GBA_SRAM);
    core.write8(GBA_SRAM, 2);
    core.load_temporary_save(&[3; 0x8000]).unwrap();
    core.load_file(&path).unwrap();
    assert!(core.saves().all(|save| !save.in_use));
    assert_eq!(bytes_of(&core, save)[..2], [2, 1]);
    assert_eq!(core.save_path(), path.with_extension("sav"));
}

#[test]
fn changes_to_a_temporary_save_are_discarded() {
    for (mut core, sram) in [(gba_core(), GBA_SRAM), (gb_core(), GB_SRAM)] {
        let own = core.load_save(&[0x44; 0x8000]).unwrap();
        unlock(&mut core);
        core.read8(sram);
        core.load_temporary_save(&[0x11; 0x8000]).unwrap();
        assert_eq!(core.read8(sram + 1), 0x11);
        core.write8(sram + 1, 0x99);
        run(&mut core, 60);
        assert_eq!(core.saves().count(), 1);
        assert_eq!(bytes_of(&core, own)[1], 0x44);
    }
}

#[test]
fn a_reset_does_not_lose_the_save_of_a_game_that_continued_from_a_state() {
    for (mut core, sram) in [(gba_core(), GBA_SRAM), (gb_core(), GB_SRAM)] {
        let save = core.load_save(&[]).unwrap();
        core.reset();
        unlock(&mut core);
        core.write8(sram, 1);
        run(&mut core, 60);
        let state = core.save_state(flags::ALL).unwrap();
        core.write8(sram, 2);
        run(&mut core, 60);
        core.load_state(&state, flags::LOAD).unwrap();
        core.reset();
        assert_eq!(bytes_of(&core, save)[0], 2, "the state's save is not in the file");
        core.load_state(&state, flags::LOAD).unwrap();
        core.write8(sram, 3);
        core.reset();
        assert_eq!(bytes_of(&core, save)[0], 3);
        core.load_state(&state, flags::LOAD).unwrap();
        core.write8(sram, 4);
        core.unload_save();
        assert_eq!(bytes_of(&core, save)[0], 4);
    }
}

/// How many files in a folder this process has open.
#[cfg(target_os = "linux")]
fn descriptors(folder: &std::path::Path) -> usize {
    let open =
        fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    open.filter(|path| path.starts_with(folder)).count()
}

#[cfg(target_os = "linux")]
#[test]
fn a_scripts_save_is_in_memory_and_has_the_path_of_its_file() {
    for (mut core, sram) in [(gba_core(), GBA_SRAM), (gb_core(), GB_SRAM)] {
        let (dir, path) = file("s.sav", &[0x31; 0x8000]);
        let script = Transcript::attach(&mut core);
        let load = format!("print(emu:loadSaveFile('{}', false))", path.display());
        core.run_script_source("test", &load).unwrap();
        assert_eq!(script.take_info(), ["true"]);
        let found = core.saves().find(|save| save.in_use).and_then(|save| save.loaded_from).expect("a path");
        assert_eq!(found, fs::canonicalize(&path).unwrap());
        assert_eq!(descriptors(dir.path()), 0, "the file is closed");
        // If the process had mapped the file, SIGBUS would end it here.
        fs::write(&path, b"").unwrap();
        core.reset();
        unlock(&mut core);
        assert_eq!(core.read8(sram), 0x31);
        core.write8(sram, 0x32);
        run(&mut core, 60);
        assert_eq!(core.saves().find(|save| save.in_use).unwrap().bytes[0], 0x32);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_scripts_save_that_is_not_a_file_does_no_harm() {
    for mut core in [gba_core(), gb_core()] {
        let script = Transcript::attach(&mut core);
        for (path, temporary) in [
            ("/dev/null", true),
            ("/dev/null", false),
            ("/dev/full", true),
            ("/dev/zero", false),
            ("/proc/self/maps", true),
            ("/no/such/folder/a.sav", false),
        ] {
            let load = format!("emu:loadSaveFile('{path}', {temporary}) emu:autoloadSave()");
            core.run_script_source("test", &load).unwrap();
            script.take();
            core.reset();
            run(&mut core, 20);
            core.save_data().unwrap();
        }
    }
}

#[test]
fn saves_of_odd_sizes_do_no_harm() {
    for mut core in [gba_core(), gb_core()] {
        for len in [0, 3, 0x1FFF, 0x8010, 0x20030, MAX_SAVE_SIZE] {
            core.load_save(&vec![7; len]).unwrap();
            core.reset();
            unlock(&mut core);
            run(&mut core, 20);
        }
        let error = core.load_save(&vec![7; MAX_SAVE_SIZE + 1]).unwrap_err();
        assert!(matches!(error, Error::SaveSize { .. }), "{error}");
        assert!(error.to_string().contains("at most"), "{error}");
    }
}

/// With mGBA's defaults, a state is saved with the battery save, but loading the state does not replace the
/// cartridge's save. Instead, the game uses the state's save until the next reset.
#[test]
fn a_states_save_hides_the_save_of_the_cartridge_until_a_reset() {
    for (mut core, sram) in [(gba_core(), GBA_SRAM), (gb_core(), GB_SRAM)] {
        for (has_save, frames) in [(false, 5), (true, 5), (true, 60)] {
            if has_save {
                core.load_save(&[]).unwrap();
                core.reset();
            }
            unlock(&mut core);
            core.write8(sram, 0x21);
            run(&mut core, 5);
            let state = core.save_state(flags::ALL).unwrap();
            core.write8(sram, 0x43);
            run(&mut core, frames);
            core.load_state(&state, flags::LOAD).unwrap();
            assert_eq!(core.read8(sram), 0x21);
            run(&mut core, 60);
            core.save_data().unwrap();
            core.reset();
            run(&mut core, 5);
            unlock(&mut core);
            let after = core.read8(sram);
            // Without a save, the cartridge has nothing to return to. And 5 frames after a write, libmgba still counts
            // the save as changed, so it replaces the cartridge's save with the state's.
            if has_save && frames == 60 {
                assert_eq!(after, 0x43);
            }
        }
    }
}

#[test]
fn a_temporary_save_hides_the_save_in_use_and_the_save_of_a_state_does_not() {
    for mut core in [gba_core(), gb_core()] {
        assert_eq!(core.save_in_use(), None);
        let save = core.load_save(&[]).unwrap();
        core.reset();
        run(&mut core, 1);
        let state = core.save_state(flags::ALL).unwrap();
        for _ in 0..2 {
            assert_eq!(core.save_in_use(), Some(save));
            // A Game Boy replaces a temporary save that is too small.
            for bytes in [&[7; 0x8000][..], &[7]] {
                core.load_temporary_save(bytes).unwrap();
                assert_eq!(core.save_in_use(), None);
            }
            core.reset();
            assert_eq!(core.save_in_use(), Some(save));
            core.load_state(&state, flags::LOAD).unwrap();
        }
        core.unload_save();
        assert_eq!(core.save_in_use(), None);
    }
}

#[test]
fn a_state_can_replace_the_save_of_the_cartridge_while_the_save_of_another_state_hides_it() {
    for (mut core, sram) in [(gba_core(), GBA_SRAM), (gb_core(), GB_SRAM)] {
        let save = core.load_save(&[]).unwrap();
        core.reset();
        unlock(&mut core);
        let mut states = [1, 2, 3].map(|value| {
            core.write8(sram, value);
            run(&mut core, 60);
            core.save_state(flags::ALL - flags::SCREENSHOT).unwrap()
        });
        core.load_state(&states[1], flags::LOAD).unwrap();
        core.load_state(&states[0], flags::ALL).unwrap();
        assert_eq!((core.read8(sram), bytes_of(&core, save)[0]), (1, 3), "only the state's save is replaced");
        // A state of a game with another title is refused.
        states[2][0x10] ^= 1;
        core.load_state(&states[2], flags::ALL | flags::KEEP_SAVE).unwrap_err();
        assert_eq!((core.read8(sram), bytes_of(&core, save)[0]), (1, 3));
        core.load_state(&states[1], flags::ALL | flags::KEEP_SAVE).unwrap();
        assert_eq!((core.read8(sram), bytes_of(&core, save)[0]), (2, 2));
        core.reset();
        unlock(&mut core);
        assert_eq!(core.read8(sram), 2);
    }
}

#[test]
fn a_state_that_a_script_loads_can_replace_the_save_of_the_cartridge_while_another_state_hides_it() {
    for (mut core, sram) in [(gba_core(), GBA_SRAM), (gb_core(), GB_SRAM)] {
        let save = core.load_save(&[]).unwrap();
        core.reset();
        unlock(&mut core);
        let first = core.save_state(flags::ALL).unwrap();
        core.write8(sram, 1);
        run(&mut core, 60);
        core.load_state(&first, flags::LOAD).unwrap();
        let script = format!(
            "emu:write8({sram}, 2)
            local with_2 = emu:saveStateBuffer(31)
            emu:write8({sram}, 3)
            assert(emu:loadStateBuffer(with_2, 29))"
        );
        lua(&mut core, &script);
        assert_eq!(
            (core.read8(sram), bytes_of(&core, save)[0]),
            (2, 1),
            "the state's save hides the cartridge's"
        );
        lua(&mut core, "assert(emu:loadStateBuffer(emu:saveStateBuffer(31), 31))");
        assert_eq!((core.read8(sram), bytes_of(&core, save)[0]), (2, 2));
    }
}

/// The file of a cartridge with a clock is longer than its RAM, because the data of the clock follows.
#[test]
fn a_longer_save_of_a_game_boy_state_moves_no_memory_that_is_in_use() {
    let state_with = |save: &[u8]| {
        let mut core = gb_core();
        core.load_save(save).unwrap();
        core.reset();
        unlock(&mut core);
        run(&mut core, 1);
        core.save_state(flags::ALL).unwrap()
    };
    let (short, long) = (state_with(&[1; 0x2000]), state_with(&[2; 0x2030]));
    let without_save = gb_core();
    let mut hidden_save = gb_core();
    hidden_save.load_save(&[3; 0x2000]).unwrap();
    hidden_save.reset();
    hidden_save.load_state(&short, flags::LOAD).unwrap();
    for mut core in [without_save, hidden_save] {
        core.load_state(&long, flags::ALL).unwrap();
        assert_eq!((core.read8(GB_SRAM), core.read8(GB_SRAM + 0x1FFF)), (2, 2));
        core.write8(GB_SRAM, 7);
        run(&mut core, 1);
        let state = core.save_state(flags::ALL).unwrap();
        core.write8(GB_SRAM, 8);
        core.load_state(&state, flags::ALL).unwrap();
        assert_eq!(core.read8(GB_SRAM), 7);
    }
}

/// libmgba does not know the kind of a GBA game's save before the game uses it.
#[test]
fn the_save_of_a_state_is_loaded_even_before_the_game_has_used_its_save() {
    for flags in [flags::ALL, flags::LOAD] {
        let mut with_save = gba_core();
        with_save.load_save(&[0x5A; 0x8000]).unwrap();
        with_save.reset();
        run(&mut with_save, 1);
        let state = with_save.save_state(flags::ALL).unwrap();
        let mut without = gba_core();
        let mut another = gba_core();
        another.load_save(&[0x33; 0x10000]).unwrap();
        another.reset();
        for core in [&mut without, &mut another] {
            core.load_state(&state, flags).unwrap();
            assert_eq!((core.read8(GBA_SRAM), core.read8(GBA_SRAM + 0x7FFF)), (0x5A, 0x5A), "flags {flags}");
        }
    }
}

/// When the state is loaded again, the type of the game's save memory changes while the state's save hides the
/// cartridge's.
#[test]
fn a_state_that_is_loaded_again_from_before_the_game_used_its_save_does_not_remove_the_save_of_the_cartridge()
{
    let mut core = gba_core();
    let save = core.load_save(&[5; 0x8000]).unwrap();
    core.reset();
    run(&mut core, 1);
    let state = core.save_state(flags::ALL).unwrap();
    for _ in 0..3 {
        core.load_state(&state, flags::LOAD).unwrap();
        assert_eq!(core.read8(GBA_SRAM), 5);
        assert!(core.saves().any(|save| save.in_use));
    }
    let in_a_script = "local early = emu:saveStateBuffer(31); emu:read8(0x0E000000); assert(emu:loadStateBuffer(early, 29))";
    core.load_state(&state, flags::LOAD).unwrap();
    lua(&mut core, in_a_script);
    assert_eq!(core.read8(GBA_SRAM), 5);
    assert!(core.saves().any(|save| save.in_use));
    core.write8(GBA_SRAM, 9);
    run(&mut core, 60);
    assert_eq!((core.read8(GBA_SRAM), bytes_of(&core, save)[0]), (9, 9));
}

#[test]
fn a_state_with_an_empty_save_replaces_the_current_save() {
    for flags in [flags::ALL, flags::LOAD] {
        let mut empty = gba_core();
        empty.load_save(&[]).unwrap();
        empty.reset();
        run(&mut empty, 1);
        let state = empty.save_state(flags::ALL).unwrap();
        for is_used in [false, true] {
            let mut full = gba_core();
            full.load_save(&[0x33; 0x8000]).unwrap();
            full.reset();
            if is_used {
                assert_eq!(full.read8(GBA_SRAM), 0x33);
            }
            full.load_state(&state, flags).unwrap();
            let ends = (full.read8(GBA_SRAM), full.read8(GBA_SRAM + 0x7FFF));
            assert_eq!(ends, (0xFF, 0xFF), "flags {flags}, used before: {is_used}");
        }
    }
}
