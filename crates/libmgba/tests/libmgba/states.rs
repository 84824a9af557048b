use std::sync::mpsc;
use std::time::Duration;

use framewire_libmgba::{Core, Error, GbModel, Hardware, MAX_STATE_SIZE, Options, flags};

use crate::support::{GB_COUNTER, GBA_COUNTER, file, gb, gb_core, gba, gba_core, lua, run};

#[test]
fn a_state_restores_memory_and_the_frame_counter() {
    for (mut core, counter) in [(gba_core(), GBA_COUNTER), (gb_core(), GB_COUNTER)] {
        run(&mut core, 10);
        for flags in [0, flags::SCREENSHOT, flags::LOAD, flags::ALL] {
            let (value, frame) = (core.read8(counter), core.frame_counter());
            let state = core.save_state(flags).unwrap();
            run(&mut core, 7);
            core.write8(counter, value ^ 0xFF);
            core.load_state(&state, flags).unwrap();
            assert_eq!(core.read8(counter), value);
            assert_eq!(core.frame_counter(), frame);
            run(&mut core, 3);
        }
    }
}

#[test]
fn states_come_in_the_two_formats_of_mgba() {
    let mut core = gba_core();
    run(&mut core, 3);
    assert_eq!(core.save_state(0).unwrap().len(), 0x61000);
    let png = core.save_state(flags::ALL).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    let bare = core.save_state(flags::ALL & !flags::SCREENSHOT).unwrap();
    assert!(bare.len() > 0x61000, "the state and its other parts");
}

#[test]
fn the_same_frames_after_a_state_have_the_same_result() {
    let mut core = gba_core();
    run(&mut core, 5);
    let start = core.save_state(0).unwrap();
    let mut ends = Vec::new();
    for _ in 0..2 {
        core.load_state(&start, 0).unwrap();
        run(&mut core, 20);
        ends.push((core.read32(GBA_COUNTER), core.frame().to_rgb()));
    }
    assert_eq!(ends[0], ends[1]);
}

/// While the screen is off, the picture is white, or has a colour that the game has set meanwhile.
#[test]
fn a_state_restores_the_picture_of_a_game_boy_whose_screen_is_off() {
    const SCREEN: u32 = 0xFF40;
    const SHADES: u32 = 0xFF47;
    for darkened in [false, true] {
        let mut core = gb_core();
        core.reset();
        core.write8(SHADES, 0xFF);
        run(&mut core, 1);
        core.write8(SCREEN, 0x11);
        run(&mut core, 1);
        if darkened {
            core.write8(SHADES, 0xAA);
        }
        run(&mut core, 1);
        let state = core.save_state(flags::ALL).unwrap();
        run(&mut core, 1);
        let then = core.frame().to_rgb();
        core.load_state(&state, flags::ALL).unwrap();
        run(&mut core, 1);
        assert!(core.frame().to_rgb() == then, "{:?} and then {:?}", &then[..3], &core.frame().to_rgb()[..3]);
    }
}

#[test]
fn a_state_restores_the_shades_of_both_super_game_boys() {
    for model in [GbModel::Sgb, GbModel::Sgb2] {
        let hardware = Hardware { gb_model: Some(model), ..Hardware::default() };
        let options = Options { hardware, ..Options::default() };
        let mut core = Core::from_bytes_with(&gb("FRAMEWIRE"), &options).unwrap();
        core.write8(0xFF47, 0x1B); // BGP: dark and light are exchanged
        run(&mut core, 2);
        let state = core.save_state(flags::ALL).unwrap();
        run(&mut core, 1);
        let then = core.frame().to_rgb();
        core.load_state(&state, flags::ALL).unwrap();
        run(&mut core, 1);
        assert!(core.frame().to_rgb() == then, "{model:?}");
    }
}

#[test]
fn states_can_be_exchanged_with_scripts() {
    let mut core = gba_core();
    run(&mut core, 5);
    let (dir, path) = file("from-rust.ss", b"");
    core.save_state_file(&path, flags::ALL).unwrap();
    let value = core.read32(GBA_COUNTER);
    run(&mut core, 5);
    let back = dir.path().join("from-lua.ss");
    let printed = lua(
        &mut core,
        &format!(
            "print(emu:loadStateFile({path:?}, 29)) print(emu:read32({GBA_COUNTER}))
             print(emu:saveStateFile({back:?}, 31))"
        ),
    );
    assert_eq!(printed, ["true", &value.to_string(), "true"]);
    run(&mut core, 5);
    core.load_state_file(&back, flags::LOAD).unwrap();
    assert_eq!(core.read32(GBA_COUNTER), value);
}

#[test]
fn slots_are_next_to_the_rom() {
    let (dir, path) = file("game.gba", &gba("FRAMEWIRE", "BFWE"));
    let mut core = Core::open(&path).unwrap();
    run(&mut core, 5);
    let value = core.read32(GBA_COUNTER);
    core.save_state_slot(2, flags::ALL).unwrap();
    assert!(dir.path().join("game.ss2").exists());
    run(&mut core, 5);
    core.load_state_slot(2, flags::LOAD).unwrap();
    assert_eq!(core.read32(GBA_COUNTER), value);
    assert!(matches!(core.load_state_slot(3, 0), Err(Error::EmptySlot { .. })));
    assert!(matches!(core.load_state_slot(u32::MAX, 0), Err(Error::SlotNumber { .. })));
    assert!(matches!(core.save_state_slot(u32::MAX, 0), Err(Error::SlotNumber { .. })));
    std::fs::write(dir.path().join("game.ss4"), b"junk").unwrap();
    assert!(matches!(core.load_state_slot(4, 0), Err(Error::StateFormat)));
}

#[test]
fn state_files_that_cannot_be_read_or_written_are_errors() {
    let mut core = gba_core();
    let (dir, path) = file("s", b"");
    assert!(matches!(core.load_state_file(dir.path(), 0), Err(Error::NotAFile { .. })));
    assert!(matches!(core.load_state_file(&dir.path().join("none"), 0), Err(Error::Io { .. })));
    assert!(matches!(core.save_state_file(&dir.path().join("none/s"), 0), Err(Error::Io { .. })));
    std::fs::File::options().write(true).open(&path).unwrap().set_len(8 << 30).unwrap();
    assert!(matches!(core.load_state_file(&path, 0), Err(Error::StateTooLarge { .. })));
}

/// The kernel reports the length 0 for this file, but the file has 8 bytes for each page that a process could have.
#[test]
#[cfg(target_os = "linux")]
fn a_file_with_more_bytes_than_its_length_is_refused() {
    let mut core = gba_core();
    let path = std::path::Path::new("/proc/self/pagemap");
    assert_eq!(std::fs::metadata(path).unwrap().len(), 0);
    assert!(matches!(core.load_state_file(path, 0), Err(Error::Io { .. })));
    assert!(matches!(framewire_libmgba::read_cheats(path), Err(Error::Io { .. })));
}

#[test]
#[cfg(unix)]
fn a_pipe_is_refused_without_waiting() {
    let mut core = gba_core();
    let (dir, _) = file("s", b"");
    let pipe = dir.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(matches!(core.save_state_file(&pipe, 0), Err(Error::NotAFile { .. })));
    assert!(matches!(core.load_state_file(&pipe, 0), Err(Error::NotAFile { .. })));
    assert!(matches!(core.screenshot_file(&pipe), Err(Error::NotAFile { .. })));
    assert!(matches!(core.load_file(&pipe), Err(Error::NotAFile { .. })));
    assert!(matches!(framewire_libmgba::read_cheats(&pipe), Err(Error::NotAFile { .. })));
}

/// Loads a state that must be refused, and checks that the state of the console did not change.
fn refused(core: &mut Core, state: &[u8], what: &str) -> Error {
    let before = core.save_state(0).unwrap();
    let picture = core.frame().to_rgb();
    let error = core.load_state(state, flags::ALL).expect_err("this state must be refused");
    assert!(core.save_state(0).unwrap() == before, "{what}: changed");
    assert!(core.frame().to_rgb() == picture, "{what}: picture changed");
    error
}

#[test]
fn an_invalid_state_is_refused_and_changes_nothing() {
    let mut core = gba_core();
    run(&mut core, 5);
    let state = core.save_state(0).unwrap();
    let png = core.save_state(flags::ALL).unwrap();
    let picture = core.screenshot_png().unwrap();
    let noise: Vec<u8> = (0..0x70000u32).map(|i| (i.wrapping_mul(i) >> 5) as u8).collect();
    run(&mut core, 5);
    let cases: [(&str, &[u8]); 9] = [
        ("nothing", &[]),
        ("one byte", &[0]),
        ("a state cut short", &state[..state.len() - 1]),
        ("half a PNG", &png[..png.len() / 2]),
        ("a PNG without its end", &png[..png.len() - 20]),
        ("a PNG's first bytes", &png[..8]),
        ("a picture without a state", &picture),
        ("noise", &noise),
        ("zeros", &vec![0; 0x61000]),
    ];
    for (what, bytes) in cases {
        let error = refused(&mut core, bytes, what);
        assert!(matches!(error, Error::StateFormat), "{what}: {error}");
    }
    assert!(matches!(core.load_state(&vec![0; MAX_STATE_SIZE + 1], 0), Err(Error::StateTooLarge { .. })));
}

#[test]
fn states_of_other_consoles_and_games_are_refused_and_change_nothing() {
    let mut gba_game = gba_core();
    let mut gb_game = gb_core();
    let mut other = Core::from_bytes(&gba("OTHER", "OTHE")).unwrap();
    for core in [&mut gba_game, &mut gb_game, &mut other] {
        run(core, 5);
    }
    for flags in [0, flags::ALL & !flags::SCREENSHOT, flags::ALL] {
        let of_gba = gba_game.save_state(flags).unwrap();
        let of_gb = gb_game.save_state(flags).unwrap();
        let of_other = other.save_state(flags).unwrap();
        // A PNG with a picture of the wrong size is refused before the platform of
        // its state is read. Bare Game Boy states are too short for a GBA.
        let error = refused(&mut gba_game, &of_gb, "GB on GBA");
        assert!(matches!(error, Error::StateFormat | Error::StateOtherPlatform { .. }), "{error}");
        let error = refused(&mut gb_game, &of_gba, "GBA on GB");
        assert!(matches!(error, Error::StateOtherPlatform { .. }), "{error}");
        let error = refused(&mut gba_game, &of_other, "another game");
        assert!(matches!(error, Error::StateOtherGame), "{error}");
    }
}

/// A bare state with a valid head and a damaged body can be accepted. The process must
/// survive it, and a valid state must load after it.
#[test]
fn damaged_states_do_not_end_the_process() {
    for mut core in [gba_core(), gb_core()] {
        run(&mut core, 5);
        let valid = core.save_state(0).unwrap();
        let full = core.save_state(flags::ALL & !flags::SCREENSHOT).unwrap();
        let png = core.save_state(flags::ALL).unwrap();
        let mut seed = 1u32;
        let mut random = move || {
            seed ^= seed << 13;
            seed ^= seed >> 17;
            seed ^= seed << 5;
            seed as usize
        };
        for source in [&valid, &full, &png] {
            for _ in 0..100 {
                let mut damaged = source.clone();
                for _ in 0..1 + random() % 8 {
                    // Only bytes after the clocks in the head are changed. With wrong
                    // clocks, a Game Boy would have to catch up on hours of sound.
                    let at = 0x400 + random() % (damaged.len() - 0x400);
                    damaged[at] = random() as u8;
                }
                if core.load_state(&damaged, flags::ALL).is_ok() {
                    run(&mut core, 2);
                }
                core.load_state(&valid, 0).unwrap();
            }
        }
        run(&mut core, 5);
    }
}

/// The state says which events of the screen are scheduled. Without them, the next frame would never end.
#[test]
fn a_game_boy_state_whose_frames_never_end_is_refused() {
    let mut core = gb_core();
    run(&mut core, 5);
    for frames in [0, 1, 3] {
        run(&mut core, frames);
        let valid = core.save_state(0).unwrap();
        // Neither event is scheduled; the event of the mode is not scheduled; it is scheduled in 2^30 cycles.
        for (at, bits) in [(0xCD, 0x30), (0xCD, 0x10), (0xC3, 0x40)] {
            let mut damaged = valid.clone();
            damaged[at] |= bits;
            let error = refused(&mut core, &damaged, "an endless frame");
            assert!(matches!(error, Error::StateFormat), "{at:#x}: {error}");
        }
        // The screen is off. Then the event of the frame must be scheduled, but it is not.
        let mut off = valid.clone();
        off[0x340] &= 0x7F;
        let error = refused(&mut core, &off, "an endless frame without the screen");
        assert!(matches!(error, Error::StateFormat), "{error}");
        core.load_state(&valid, 0).unwrap();
    }
}

/// A Game Boy game that counts forever. Its timer is on and counts as fast as possible, and all channels of its sound
/// play.
fn busy_gb_core() -> Core {
    let mut rom = gb("FRAMEWIRE");
    let registers = [
        [0x26, 0x80], // sound on
        [0x12, 0xF0], // the volume of each channel, and its start
        [0x14, 0x87],
        [0x17, 0xF0],
        [0x19, 0x87],
        [0x1A, 0x80],
        [0x1E, 0x87],
        [0x21, 0xF0],
        [0x23, 0x80],
        [0x07, 0x05], // timer on
    ];
    // ld a, value; ldh (register), a
    let mut code: Vec<u8> = registers.iter().flat_map(|[at, value]| [0x3E, *value, 0xE0, *at]).collect();
    code.extend([0x21, 0x00, 0xC0, 0x34, 0x18, 0xFD]); // ld hl, 0xC000; inc (hl); jr back to inc
    rom[0x150..0x150 + code.len()].copy_from_slice(&code);
    Core::from_bytes(&rom).expect("a valid Game Boy ROM")
}

/// Changes each byte of the head of a state: the part before the memory.
#[test]
fn a_state_with_a_changed_head_is_refused_or_its_frames_end() {
    const NUMBER: [u8; 8] = [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80];
    let (report, reports) = mpsc::channel();
    // If a frame does not end, only this thread is lost.
    std::thread::spawn(move || {
        for (start, flips) in
            [(gba_core as fn() -> Core, &[0xFF][..]), (busy_gb_core, &NUMBER), (busy_gb_core, &[0xFF])]
        {
            let mut core = start();
            run(&mut core, 5);
            let valid = core.save_state(0).unwrap();
            for at in 0..0x200 {
                for flip in flips {
                    report.send(format!("{:?}, byte {at:#x}, change {flip:#x}", core.platform())).unwrap();
                    let mut changed = valid.clone();
                    changed[at] ^= flip;
                    if core.load_state(&changed, 0).is_ok() {
                        run(&mut core, 1);
                    }
                    core.load_state(&valid, 0).expect("a valid state");
                }
            }
        }
    });
    let mut last = String::new();
    loop {
        match reports.recv_timeout(Duration::from_secs(20)) {
            Ok(place) => last = place,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("a frame does not end: {last}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    assert_eq!(last, "Gb, byte 0x1ff, change 0xff");
}

/// The timer's interrupt is pending, but is due only after the timer has counted to the next one.
#[test]
fn a_game_boy_state_with_a_late_timer_or_interrupt_is_refused() {
    let mut core = busy_gb_core();
    run(&mut core, 5);
    let valid = core.save_state(0).unwrap();
    let mut pending = valid.clone();
    pending[0x165] |= 1;
    for cycles in [0x11_i32, 0x1000, i32::MAX] {
        pending[0x158..0x15C].copy_from_slice(&cycles.to_le_bytes());
        refused(&mut core, &pending, "an interrupt that comes late");
    }
    for (interrupt, accepted) in [(4_i32, true), (5, false)] {
        pending[0x154..0x158].copy_from_slice(&4_i32.to_le_bytes());
        pending[0x158..0x15C].copy_from_slice(&interrupt.to_le_bytes());
        if accepted {
            core.load_state(&pending, 0).unwrap();
        } else {
            refused(&mut core, &pending, "an interrupt after the timer's next step");
        }
    }
    let mut late = valid.clone();
    for cycles in [-0x201_i32, -0x10_0000, i32::MIN] {
        late[0x154..0x158].copy_from_slice(&cycles.to_le_bytes());
        refused(&mut core, &late, "a timer that is late");
    }
    // If the game writes the timer's registers, libmgba subtracts what is left of the step from its length.
    for (left, length) in [(0x21_i32, 0x20_i32), (4, -1), (i32::MAX, 0x20), (4, i32::MIN), (4, 0x401)] {
        let mut wrong = valid.clone();
        wrong[0x154..0x158].copy_from_slice(&left.to_le_bytes());
        wrong[0x15C..0x160].copy_from_slice(&length.to_le_bytes());
        refused(&mut core, &wrong, "a step of a wrong length");
    }
}

#[test]
fn a_gba_state_whose_line_is_beyond_the_last_one_is_refused() {
    let mut core = gba_core();
    run(&mut core, 5);
    let mut state = core.save_state(0).unwrap();
    for line in [228_u16, 256, u16::MAX] {
        state[0x406..0x408].copy_from_slice(&line.to_le_bytes());
        refused(&mut core, &state, "a line that the screen does not have");
    }
    state[0x406..0x408].copy_from_slice(&227_u16.to_le_bytes());
    core.load_state(&state, 0).unwrap();
    run(&mut core, 1);
}

/// A command of a Super Game Boy has up to eight packets, and libmgba has room for as many.
#[test]
fn a_super_game_boy_state_whose_packets_do_not_fit_is_refused() {
    let hardware = Hardware { gb_model: Some(GbModel::Sgb), ..Hardware::default() };
    let options = Options { hardware, ..Options::default() };
    let mut core = Core::from_bytes_with(&gb("FRAMEWIRE"), &options).unwrap();
    core.reset();
    run(&mut core, 5);
    let valid = core.save_state(0).unwrap();
    for (present, missing, fits) in [(1, 7, true), (7, 0, true), (7, 1, true), (7, 2, false), (2, 7, false)] {
        let mut state = valid.clone();
        state[0xC76A] = missing;
        state[0xC76C] = state[0xC76C] & 0x8F | present << 4;
        if fits {
            core.load_state(&state, 0).unwrap();
        } else {
            refused(&mut core, &state, "too many packets");
        }
    }
}

/// Each part after a bare state has a header with a length and an offset. After a header whose length is 0, libmgba
/// reads the next header at this offset, which can be a loop. It copies as many bytes as each header says.
#[test]
fn bare_states_with_endless_or_huge_parts_are_refused() {
    for mut core in [gba_core(), gb_core()] {
        run(&mut core, 5);
        let bare = core.save_state(0).unwrap();
        let end = bare.len() as u64;
        let header = |len: u32, offset: u64| {
            [&2_u32.to_le_bytes()[..], &len.to_le_bytes(), &offset.to_le_bytes()].concat()
        };
        let looped = [&bare[..], &header(0, end)].concat();
        let many: Vec<u8> = std::iter::repeat_n(header(1 << 20, 0), 20).flatten().collect();
        let many = [&bare[..], &many, &vec![0; 1 << 20]].concat();
        for (what, damaged) in [("a loop", looped), ("many parts", many)] {
            let error = refused(&mut core, &damaged, what);
            assert!(matches!(error, Error::StateFormat), "{what}: {error}");
        }
        let full = core.save_state(flags::ALL & !flags::SCREENSHOT).unwrap();
        core.load_state(&full, flags::ALL).unwrap();
    }
}

/// libmgba reserves as much memory as these files say.
#[test]
fn png_states_with_huge_parts_or_pictures_are_refused() {
    let mut core = gba_core();
    run(&mut core, 5);
    let png = core.save_state(flags::ALL).unwrap();
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let body = [&kind[..], data].concat();
        let sum = crc32fast::hash(&body);
        [&(data.len() as u32).to_be_bytes()[..], &body, &sum.to_be_bytes()].concat()
    };
    let end = png.len() - 12;
    let part = |tag: u32, size: u32| {
        chunk(b"gbAx", &[&tag.to_le_bytes()[..], &size.to_le_bytes(), b"zzzz"].concat())
    };
    let huge = [&png[..end], &part(0x40, 1_000_000_000), &png[end..]].concat();
    let many: Vec<u8> = (0x40..0x44).flat_map(|tag| part(tag, 5 << 20)).collect();
    let many = [&png[..end], &many, &png[end..]].concat();
    let wide = chunk(b"IHDR", &[0, 0x0D, 0xBB, 0xA0, 0, 0, 2, 0xBC, 8, 6, 0, 0, 0]);
    let wide = [&png[..8], &wide, &png[8 + 25..]].concat();
    for (what, damaged) in [("one part", huge), ("many parts", many), ("a picture", wide)] {
        let error = refused(&mut core, &damaged, what);
        assert!(matches!(error, Error::StateFormat), "{what}: {error}");
    }
    core.load_state(&png, flags::ALL).unwrap();
}
