use std::fs;
use std::path::Path;

use framewire_libmgba::{Core, Error, Platform};

use crate::support::{GBA_COUNTER, file, gb, gba, gba_core, run};

fn error(path: &Path) -> Error {
    Core::open(path).expect_err("this must not open")
}

#[test]
fn plain_rom_files_open() {
    for (name, rom, platform) in
        [("g.gba", gba("FRAMEWIRE", "BFWE"), Platform::Gba), ("g.gb", gb("FRAMEWIRE"), Platform::Gb)]
    {
        let (_dir, path) = file(name, &rom);
        let core = Core::open(&path).unwrap();
        assert_eq!(core.platform(), platform);
        assert_eq!(core.path(), path);
    }
}

#[test]
fn a_rom_that_does_not_match_its_header_is_reported() {
    let mut short = gb("FRAMEWIRE");
    short[0x148] = 1;
    short[0x14D] = short[0x14D].wrapping_sub(1);
    let mut damaged = gb("FRAMEWIRE");
    damaged[0x135] ^= 4;
    for (rom, says) in [
        (gb("FRAMEWIRE"), None),
        (gba("FRAMEWIRE", "BFWE"), None),
        (short, Some("has 32768 bytes and its header says 65536")),
        (damaged, Some("checksum of the ROM's header")),
    ] {
        let problems = Core::from_bytes(&rom).unwrap().rom_problems();
        assert_eq!(problems.len(), usize::from(says.is_some()), "{problems:?}");
        assert!(says.is_none_or(|says| problems[0].contains(says)), "{problems:?}");
    }
}

#[test]
fn a_title_does_not_include_the_flag_for_colour() {
    let mut rom = gb("PRICK OCH SOMMA");
    for flag in [0x80, 0xC0] {
        rom[0x143] = flag;
        assert_eq!(Core::from_bytes(&rom).unwrap().title(), "PRICK OCH SOMMA");
    }
    assert_eq!(Core::from_bytes(&gb("SIXTEEN LETTERS!")).unwrap().title(), "SIXTEEN LETTERS!");
}

#[test]
fn a_path_with_spaces_and_umlauts_opens() {
    let (_dir, path) = file("Spiel für zwei, +1.gba", &gba("FRAMEWIRE", "BFWE"));
    assert_eq!(Core::open(&path).unwrap().title(), "FRAMEWIRE");
}

#[test]
fn the_error_for_a_missing_file_is_a_system_error() {
    let error = error(Path::new("no/such/game.gba"));
    assert!(matches!(error, Error::Io { .. }), "{error}");
    // A program that also prints the causes must not print them twice.
    let cause = std::error::Error::source(&error).expect("a cause").to_string();
    assert!(!error.to_string().contains(&cause), "{error}");
    assert!(error.to_string().contains("no/such/game.gba"), "{error}");
}

#[test]
fn a_folder_is_not_a_file() {
    let (dir, _) = file("x", b"");
    assert!(matches!(error(dir.path()), Error::NotAFile { .. }));
}

#[test]
fn the_error_for_an_empty_file_says_so() {
    let (_dir, path) = file("g.gba", b"");
    assert!(matches!(error(&path), Error::Empty { .. }));
    assert!(matches!(Core::from_bytes(&[]), Err(Error::Empty { .. })));
}

#[test]
fn the_error_for_a_file_that_is_not_a_rom_says_so() {
    let mut broken_gb = gb("BROKEN");
    broken_gb[0x104..0x108].fill(0);
    let noise: Vec<u8> = (0..100_000u32).map(|i| (i.wrapping_mul(i) >> 3) as u8).collect();
    let text = "To be, or not to be.\n".repeat(2000);
    for bytes in [
        text.as_bytes(),
        &noise,
        &broken_gb,
        &[0xEA; 16],
        b"x",
        &gb("FRAMEWIRE")[..0x106],
        &gb("FRAMEWIRE")[..0x140],
    ] {
        let (_dir, path) = file("g.gba", bytes);
        let error = error(&path);
        assert!(matches!(error, Error::NotARom { .. }), "{error}");
    }
}

#[test]
fn the_error_for_a_rom_cut_short_in_its_header_says_so() {
    let (_dir, path) = file("g.gba", &gba("FRAMEWIRE", "BFWE")[..0xBF]);
    let error = error(&path);
    assert!(matches!(error, Error::Truncated { .. }), "{error}");
}

#[test]
fn the_error_for_an_elf_file_names_the_command_that_makes_a_rom() {
    let own = std::env::current_exe().unwrap();
    let error = error(&own);
    assert!(matches!(error, Error::Elf { .. }), "{error}");
    assert!(error.to_string().contains("objcopy"), "{error}");
}

#[test]
fn a_huge_file_is_refused_before_it_is_read() {
    let (_dir, path) = file("g.gba", &gba("FRAMEWIRE", "BFWE"));
    // A sparse file, which takes no space on the disk.
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(8 << 30).unwrap();
    assert!(matches!(error(&path), Error::RomTooLarge { .. }));
}

#[test]
fn a_path_with_a_nul_or_of_absurd_length_is_refused() {
    assert!(Core::open(Path::new("a\0b")).is_err());
    assert!(Core::open(Path::new(&"x/".repeat(5000))).is_err());
}

#[test]
fn another_rom_replaces_the_running_one_without_a_reset() {
    let mut core = gba_core();
    run(&mut core, 5);
    let counted = core.read32(GBA_COUNTER);
    let (_dir, path) = file("other.gba", &gba("OTHER", "OTHE"));
    core.load_file(&path).unwrap();
    assert_eq!(core.title(), "OTHER");
    assert_eq!(core.path(), path);
    assert_eq!(core.read32(GBA_COUNTER), counted);
    run(&mut core, 1);
    core.reset();
    run(&mut core, 5);
    assert_eq!(core.title(), "OTHER");
    core.save_state_slot(3, 0).unwrap();
    assert!(path.with_extension("ss3").exists(), "the state slots are next to the new ROM");
}

#[test]
fn a_rom_that_cannot_be_loaded_does_not_change_the_running_game() {
    let mut core = gba_core();
    run(&mut core, 5);
    let state = core.save_state(0).unwrap();
    let home = core.path().to_owned();

    let (_dir, text) = file("g.gba", &b"no rom".repeat(100));
    let (_dir2, empty) = file("g.gba", b"");
    for path in [text.as_path(), &empty, Path::new("/no/such/file")] {
        assert!(core.load_file(path).is_err());
    }
    let (_dir3, other) = file("g.gb", &gb("OTHER"));
    match core.load_file(&other).unwrap_err() {
        Error::OtherPlatform { rom, running, .. } => {
            assert_eq!((rom, running), (Platform::Gb, Platform::Gba));
        }
        error => panic!("{error}"),
    }

    assert_eq!(core.title(), "FRAMEWIRE");
    assert_eq!(core.path(), home);
    assert_eq!(core.save_state(0).unwrap(), state);
    core.save_state_slot(1, 0).unwrap();
    assert!(home.with_extension("ss1").exists());
    run(&mut core, 5);
}

#[test]
fn a_rom_rebuilt_in_place_does_not_disturb_the_running_game() {
    let (_dir, path) = file("g.gba", &gba("FRAMEWIRE", "BFWE"));
    let mut core = Core::open(&path).unwrap();
    run(&mut core, 2);
    fs::write(&path, b"").unwrap();
    run(&mut core, 2);
    core.read_range(0x0800_0000, 0x400).unwrap();
    assert_eq!(core.title(), "FRAMEWIRE");
}

#[test]
fn a_rom_from_bytes_leaves_no_files() {
    let core = gba_core();
    let home = core.path().parent().unwrap().to_owned();
    assert!(home.exists());
    drop(core);
    assert!(!home.exists());
}
