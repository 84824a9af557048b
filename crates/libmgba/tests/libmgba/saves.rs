use framewire_libmgba::{Core, Error, MAX_SAVE_SIZE, flags};

use crate::support::{file, gb, gb_core, gba, gba_core, run};

const GBA_SRAM: u32 = 0x0E00_0000;
const GB_SRAM: u32 = 0xA000;

/// Lets the Game Boy cartridge's RAM be written: the game's first task.
fn unlock(core: &mut Core) {
    core.write8(0x0000, 0x0A);
}

#[test]
fn a_save_is_not_loaded_unasked() {
    let (dir, path) = file("game.gba", &gba("FRAMEWIRE", "BFWE"));
    std::fs::write(dir.path().join("game.sav"), [0x5A; 0x8000]).unwrap();
    let mut core = Core::open(&path).unwrap();
    run(&mut core, 2);
    assert_ne!(core.read8(GBA_SRAM), 0x5A);
    assert!(core.autoload_save());
    core.reset();
    run(&mut core, 2);
    assert_eq!(core.read8(GBA_SRAM), 0x5A);
}

#[test]
fn what_the_game_saves_reaches_its_file() {
    for (name, rom, sram) in
        [("game.gba", gba("FRAMEWIRE", "BFWE"), GBA_SRAM), ("game.gb", gb("FRAMEWIRE"), GB_SRAM)]
    {
        let (_dir, path) = file(name, &rom);
        let mut core = Core::open(&path).unwrap();
        assert!(core.autoload_save());
        core.reset();
        unlock(&mut core);
        core.write8(sram + 5, 0x77);
        assert_eq!(core.read8(sram + 5), 0x77, "{name}");
        run(&mut core, 60);
        assert_eq!(core.save_data().unwrap()[5], 0x77, "{name}");
        drop(core);
        let saved = std::fs::read(path.with_extension("sav")).unwrap();
        assert_eq!(saved[5], 0x77, "{name}");
    }
}

#[test]
fn a_temporary_save_is_read_and_never_written() {
    let (dir, _) = file("x", b"");
    for (mut core, sram) in [(gba_core(), GBA_SRAM), (gb_core(), GB_SRAM)] {
        let save = dir.path().join("s.sav");
        std::fs::write(&save, [0x11; 0x8000]).unwrap();
        core.load_save_file(&save, true).unwrap();
        unlock(&mut core);
        core.write8(sram + 1, 0x99);
        run(&mut core, 60);
        drop(core);
        assert_eq!(std::fs::read(&save).unwrap()[1], 0x11);
    }
}

#[test]
fn save_data_goes_in_and_out_as_bytes() {
    for (mut core, sram) in [(gba_core(), GBA_SRAM), (gb_core(), GB_SRAM)] {
        unlock(&mut core);
        core.write8(sram, 1); // shows libmgba that there is a save
        run(&mut core, 1);
        let mut data = core.save_data().unwrap();
        assert!(!data.is_empty());
        data[0] = 0xC3;
        data[9] = 0x3C;
        core.set_save_data(&data).unwrap();
        assert_eq!(core.save_data().unwrap(), data);
        assert_eq!(core.read8(sram), 0xC3);
        assert_eq!(core.read8(sram + 9), 0x3C);
    }
}

#[test]
fn impossible_save_data_is_refused() {
    for mut core in [gba_core(), gb_core()] {
        assert!(matches!(core.set_save_data(&[]), Err(Error::SaveSize { .. })));
        assert!(matches!(core.set_save_data(&vec![0; MAX_SAVE_SIZE + 1]), Err(Error::SaveSize { .. })));
        // Odd sizes may be taken or refused; they must do no harm.
        for len in [1, 3, 0x1FF, 0x2000, 0x2001, 0x10000, 0x20001, MAX_SAVE_SIZE] {
            let _ = core.set_save_data(&vec![0xAB; len]);
            run(&mut core, 2);
            core.save_data().unwrap();
        }
        core.reset();
        run(&mut core, 2);
    }
}

#[test]
fn save_files_that_cannot_be_are_errors() {
    let (dir, path) = file("big.sav", b"");
    std::fs::File::options().write(true).open(&path).unwrap().set_len(8 << 30).unwrap();
    let mut core = gba_core();
    assert!(matches!(core.load_save_file(&path, false), Err(Error::SaveSize { .. })));
    assert!(matches!(core.load_save_file(dir.path(), false), Err(Error::NotAFile { .. })));
    assert!(matches!(
        core.load_save_file(&dir.path().join("none/s.sav"), false),
        Err(Error::SaveFile { .. })
    ));
    let (_dir, odd) = file("odd.sav", &[7; 3]);
    for mut core in [core, gb_core()] {
        core.load_save_file(&odd, false).unwrap();
        core.reset();
        unlock(&mut core);
        run(&mut core, 20);
    }
}

/// A state made with the save in it and loaded without, mGBA's defaults, covers
/// the cartridge's save by the state's until the next reset.
#[test]
fn a_states_save_covers_the_cartridges_until_reset() {
    for (mut core, sram) in [(gba_core(), GBA_SRAM), (gb_core(), GB_SRAM)] {
        for autoload in [false, true] {
            if autoload {
                assert!(core.autoload_save());
                core.reset();
            }
            unlock(&mut core);
            core.write8(sram, 0x21);
            run(&mut core, 5);
            let state = core.save_state(flags::ALL).unwrap();
            core.write8(sram, 0x43);
            run(&mut core, 5);
            core.load_state(&state, flags::LOAD).unwrap();
            assert_eq!(core.read8(sram), 0x21);
            run(&mut core, 60);
            core.save_data().unwrap();
            core.reset();
            run(&mut core, 5);
            unlock(&mut core);
            core.read8(sram);
        }
    }
}
