//! Reading savestates of real cores: their memory, their game, and the differences between two of them.

use framewire_libmgba::{Core, Platform, flags};
use framewire_states::diff::differences;
use framewire_states::{Console, State, StateError};

use crate::support::{FRAME, SCRATCH, demo, demo_rom, game_boy, run, with_picture};

/// Compares the memory in a state with the core's memory domains.
fn compare(core: &mut Core, state: &State<'_>, domains: &[&str]) {
    let mut found = Vec::new();
    for region in state.memory() {
        found.push(region.domain);
        let Some(index) = core.domain_index(region.domain) else {
            assert_eq!((region.domain, region.bytes), ("sram", &core.save_data().unwrap()[..]));
            continue;
        };
        let on_bus = state.console().on_bus(region.domain, 0).expect("a place");
        assert_eq!(core.domains()[index].base, on_bus.address, "{}", region.domain);
        // For a Game Boy, compare only the first 4 KiB of each region, which are in the first bank.
        let size = if core.platform() == Platform::Gb { 0x1000 } else { usize::MAX };
        let size = size.min(region.bytes.len()).min(core.domains()[index].size as usize);
        let theirs = core.domain_read_range(index, 0, size).unwrap();
        // I/O registers are not compared, because reading a register may not return the value that was written to it.
        if region.domain != "io" {
            assert!(region.bytes[..size] == theirs, "{}", region.domain);
        }
    }
    assert_eq!(found, domains);
}

#[test]
fn bare_states_and_png_states_contain_the_cores_memory() {
    let mut core = demo();
    let frame = core.frame_counter();
    for flags in [0, flags::SAVEDATA, flags::ALL, flags::ALL & !flags::SCREENSHOT] {
        let bytes = core.save_state(flags).unwrap();
        let state = State::read(&bytes).unwrap();
        assert_eq!((state.console(), state.frame()), (Console::Gba, frame));
        assert_eq!((state.title().as_str(), state.checksum()), ("FRAMEWIRE", core.crc32()));
        let mut domains = vec!["wram", "iwram", "io", "palette", "vram", "oam"];
        if flags & flags::SAVEDATA != 0 {
            domains.push("sram");
        }
        compare(&mut core, &state, &domains);
    }
}

#[test]
fn a_save_in_an_eeprom_is_not_on_the_bus() {
    let bytes = demo().save_state(flags::SAVEDATA).unwrap();
    // A save of 0x2010 bytes ends with the data of a clock. Until a game uses its save, a state contains only one byte
    // of the save.
    for (size, domain) in
        [(0x200, "eeprom"), (0x2000, "eeprom"), (0x2010, "eeprom"), (1, "sram"), (0x8000, "sram")]
    {
        let bytes = State::read(&bytes).unwrap().with_save(&vec![7; size]);
        let state = State::read(&bytes).unwrap();
        let save = state.memory().last().unwrap();
        let is_on_bus = state.console().on_bus(save.domain, 0).is_some();
        assert_eq!((save.domain, is_on_bus), (domain, domain == "sram"), "{size}");
    }
}

#[test]
fn a_game_boy_state_has_the_game_boys_domains() {
    let mut core = game_boy();
    for flags in [0, flags::ALL] {
        let bytes = core.save_state(flags).unwrap();
        let state = State::read(&bytes).unwrap();
        assert_eq!((state.console(), state.checksum()), (Console::Gb, core.crc32()));
        assert_eq!((state.title().as_str(), state.frame()), ("COUNTER", core.frame_counter()));
        compare(&mut core, &state, &["vram", "wram", "oam", "io", "hram"]);
    }
}

#[test]
fn a_diff_contains_the_bytes_that_were_written() {
    let mut core = demo();
    core.write_range(SCRATCH, &[1, 2, 3, 4]).unwrap();
    let old = with_picture(&mut core);
    core.write_range(SCRATCH, &[1, 9, 9, 4]).unwrap();
    let new = core.save_state(flags::SAVEDATA).unwrap();
    let (old, new) = (State::read(&old).unwrap(), State::read(&new).unwrap());
    let found: Vec<_> = differences(&old, &new, 0).collect();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].domain, found[0].offset, found[0].on_bus.map(|place| place.address)),
        ("wram", 0x101, Some(SCRATCH + 1))
    );
    assert_eq!((found[0].old, found[0].new), (&[2, 3][..], &[9, 9][..]));
    assert_eq!(differences(&old, &old, 0).count(), 0);
}

#[test]
fn a_diff_across_a_frame_contains_the_games_frame_counter() {
    let mut core = demo();
    let old = core.save_state(0).unwrap();
    run(&mut core, 1);
    let new = core.save_state(0).unwrap();
    let (old, new) = (State::read(&old).unwrap(), State::read(&new).unwrap());
    assert!(differences(&old, &new, 0).any(|found| found.on_bus.is_some_and(|place| place.address == FRAME)));
}

#[test]
fn an_invalid_state_is_refused() {
    let mut core = demo();
    let (bare, png) = (core.save_state(0).unwrap(), with_picture(&mut core));
    let picture = core.screenshot_png().unwrap();
    let mut changed = png.clone();
    changed[png.len() / 2] ^= 1;
    for (what, bytes) in [
        ("nothing", &b""[..]),
        ("bytes", b"abc"),
        ("zeros", &[0; 0x61000]),
        ("a cut state", &bare[..bare.len() - 1]),
        ("a cut PNG", &png[..png.len() - 20]),
        ("a picture", &picture),
        ("a changed PNG", &changed),
    ] {
        assert!(matches!(State::read(bytes), Err(StateError::Format(_))), "{what}");
    }
}

#[test]
fn as_of_lets_another_game_load_a_state() {
    let (mut ours, mut rom) = (demo(), demo_rom());
    // Give the other game another title and code. mGBA does not check the header's checksum.
    rom[0xA0..0xB0].copy_from_slice(b"ANOTHER GAMEWXYZ");
    let mut other = Core::from_bytes(&rom).unwrap();
    run(&mut other, 60);
    ours.write8(SCRATCH, 77);
    let state = with_picture(&mut ours);
    assert!(other.load_state(&state, flags::LOAD).is_err());
    let (state, theirs) = (State::read(&state).unwrap(), other.save_state(0).unwrap());
    let forced = state.as_of(&State::read(&theirs).unwrap()).unwrap();
    other.load_state(&forced, flags::LOAD).unwrap();
    assert_eq!(other.read8(SCRATCH), 77);
    let of_game_boy = game_boy().save_state(0).unwrap();
    let refused = state.as_of(&State::read(&of_game_boy).unwrap()).unwrap_err();
    assert_eq!(refused.to_string(), "a state of a Game Boy Advance cannot be loaded into a Game Boy");
}
