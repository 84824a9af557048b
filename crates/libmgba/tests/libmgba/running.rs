use framewire_libmgba::{Core, Error, MAX_RANGE, Platform, version};

use crate::support::{GB_COUNTER, GBA_COUNTER, file, gb, gb_core, gba, gba_core, lua, run};

#[test]
fn the_library_returns_its_version() {
    let version = version();
    assert!(version.starts_with("0.1"), "{version}");
}

#[test]
fn a_gba_game_runs_and_its_facts_are_right() {
    let rom = gba("FRAMEWIRE", "BFWE");
    let mut core = Core::from_bytes(&rom).unwrap();
    assert_eq!(core.platform(), Platform::Gba);
    assert_eq!(core.platform().number(), 0);
    assert_eq!(core.title(), "FRAMEWIRE");
    assert!(core.code().ends_with("BFWE"), "{}", core.code());
    assert_eq!(core.crc32(), crc32fast::hash(&rom));
    assert_eq!(core.rom_size(), rom.len());
    assert_eq!(core.frequency(), 16_777_216);
    assert_eq!(core.frame_cycles(), 280_896);

    let before = core.frame_counter();
    run(&mut core, 10);
    assert_eq!(core.frame_counter(), before + 10);
    assert!(core.read32(GBA_COUNTER) > 1000);
}

#[test]
fn a_game_boy_game_runs_and_its_facts_are_right() {
    let rom = gb("FRAMEWIRE");
    let mut core = Core::from_bytes(&rom).unwrap();
    assert_eq!(core.platform(), Platform::Gb);
    assert_eq!(core.platform().number(), 1);
    assert_eq!(core.title(), "FRAMEWIRE");
    assert_eq!(core.crc32(), crc32fast::hash(&rom));
    assert_eq!(core.rom_size(), rom.len());
    assert_eq!(core.frequency(), 4_194_304);

    let before = core.frame_counter();
    core.write8(GB_COUNTER, 0);
    run(&mut core, 1);
    assert_eq!(core.frame_counter(), before + 1);
    assert_ne!(core.read8(GB_COUNTER), 0);
    assert_eq!((core.frame().width, core.frame().height), (160, 144));
}

#[test]
fn cycles_are_counted_from_the_reset_and_are_part_of_states() {
    for mut core in
        [Core::from_bytes(&gba("CYCLES", "BFWE")).unwrap(), Core::from_bytes(&gb("CYCLES")).unwrap()]
    {
        let frame = u64::from(core.frame_cycles());
        run(&mut core, 10);
        let (early, state) = (core.cycles(), core.save_state(0).unwrap());
        // The emulation may begin in the middle of a frame.
        assert!((9 * frame..=10 * frame + frame / 2).contains(&early), "{early}");
        run(&mut core, 100);
        let passed = core.cycles() - early;
        assert!(passed.abs_diff(100 * frame) < 100, "{passed} of {}", 100 * frame);
        let before = core.cycles();
        core.step();
        assert!((1..200).contains(&(core.cycles() - before)), "{}", core.cycles() - before);
        core.load_state(&state, 0).unwrap();
        assert_eq!(core.cycles(), early);
        core.reset();
        assert!(core.cycles() < frame, "{}", core.cycles());
    }
}

#[test]
fn a_game_boy_rom_smaller_than_a_bank_is_read_within_its_bounds() {
    let rom = &gb("SMALL")[..0x1000];
    let mut core = Core::from_bytes(rom).unwrap();
    run(&mut core, 5);
    assert_eq!(core.rom_size(), 0x1000);
    assert_eq!(core.crc32(), crc32fast::hash(rom));
    core.read_range(0, 0x8000).unwrap();
}

#[test]
fn the_facts_are_those_that_lua_returns() {
    for mut core in [gba_core(), gb_core()] {
        run(&mut core, 3);
        let facts = lua(
            &mut core,
            "print(emu:getGameTitle()) print(emu:getGameCode()) print(emu:romSize())
             print(emu:frequency()) print(emu:frameCycles()) print(emu:currentFrame())
             print(emu:platform())",
        );
        let ours = [
            core.title(),
            core.code(),
            core.rom_size().to_string(),
            core.frequency().to_string(),
            core.frame_cycles().to_string(),
            core.frame_counter().to_string(),
            core.platform().number().to_string(),
        ];
        assert_eq!(facts, ours);
    }
}

#[test]
fn reset_restarts_the_game() {
    let mut core = gba_core();
    run(&mut core, 20);
    let counted = core.read32(GBA_COUNTER);
    core.reset();
    run(&mut core, 2);
    assert!(core.read32(GBA_COUNTER) < counted);
}

#[test]
fn a_step_is_one_instruction() {
    let mut core = gba_core();
    let start = core.read_register("pc").unwrap();
    core.step(); // the branch over the header
    let body = core.read_register("pc").unwrap();
    assert!(body - start >= 0xBC, "{start:x} {body:x}");
    core.step();
    assert_eq!(core.read_register("pc").unwrap(), body + 4);
    assert_eq!(core.read_register("r0").unwrap(), 0x0400_0000);
}

/// Cores whose processor waits for an interrupt, while all interrupts are off or the one that is on never occurs.
fn halted() -> Vec<(&'static str, Core)> {
    let gb = |name, program: &[u8]| {
        let mut rom = gb("HALTED");
        rom[0x150..0x150 + program.len()].copy_from_slice(program);
        (name, Core::from_bytes(&rom).unwrap())
    };
    let gba = |name, enable: [u8; 2]| {
        let mut rom = gba("HALTED", "BHTE");
        let program: [u32; 8] = [
            0xE3A0_0404,                        // mov r0, #0x04000000
            0xE280_0C02,                        // add r0, r0, #0x200
            0xE3A0_1000 | u32::from(enable[0]), // mov r1, #enabled interrupts
            0xE1C0_10B0,                        // strh r1, [r0]
            0xE3A0_1000 | u32::from(enable[1]), // mov r1, #whether interrupts are on
            0xE1C0_10B8,                        // strh r1, [r0, #8]
            0xEF02_0000,                        // swi 2: halt
            0xEAFF_FFFD,                        // b back to swi
        ];
        for (i, word) in program.iter().enumerate() {
            rom[0xC0 + 4 * i..][..4].copy_from_slice(&word.to_le_bytes());
        }
        (name, Core::from_bytes(&rom).unwrap())
    };
    vec![
        // di; xor a; ldh (IE), a; halt; jr to halt
        gb("Game Boy", &[0xF3, 0xAF, 0xE0, 0xFF, 0x76, 0x18, 0xFD]),
        // The same with the screen off: ldh (LCDC), a
        gb("Game Boy, dark", &[0xF3, 0xAF, 0xE0, 0xFF, 0xE0, 0x40, 0x76, 0x18, 0xFD]),
        // ld a, 16; ldh (IE), a; ei; halt; jr to halt: the joypad's interrupt
        gb("Game Boy, keys", &[0x3E, 0x10, 0xE0, 0xFF, 0xFB, 0x76, 0x18, 0xFD]),
        // di; xor a; ldh (IE), a; stop; jr to stop
        gb("Game Boy, stop", &[0xF3, 0xAF, 0xE0, 0xFF, 0x10, 0x00, 0x18, 0xFC]),
        gba("GBA", [0, 0]),
        gba("GBA, serial port", [0x80, 1]),
    ]
}

#[test]
fn a_step_of_a_halted_processor_ends() {
    for (name, mut core) in halted() {
        let start = std::time::Instant::now();
        for _ in 0..200 {
            core.step();
        }
        run(&mut core, 3);
        for _ in 0..10 {
            core.step();
        }
        let state = core.save_state(0).expect(name);
        core.load_state(&state, 0).expect(name);
        assert!(start.elapsed().as_secs() < 5, "{name}: {:?}", start.elapsed());
    }
}

#[test]
fn keys_are_held_until_they_are_released_and_the_game_sees_them() {
    let mut core = gba_core();
    core.set_keys(0b11);
    core.add_keys(0b1000);
    core.clear_keys(0b1);
    assert_eq!(core.keys(), 0b1010);
    run(&mut core, 2);
    // The hardware's register has a 0 for each key held.
    assert_eq!(core.read16(0x0400_0130), 0x3FF & !0b1010);
    core.set_keys(0b11_0000); // left and right at once
    assert_eq!(core.read16(0x0400_0130), 0x3FF & !0b11_0000);
    core.set_keys(0);
    assert_eq!(core.keys(), 0);
}

/// A replay sets the keys of the recording again at the start of each of its parts.
#[test]
fn keys_that_stay_the_same_raise_no_interrupt() {
    const KEY_CONTROL: u32 = 0x0400_0132;
    const REQUESTED: u32 = 0x0400_0202;
    const KEYPAD: u16 = 1 << 12;
    let mut core = gba_core();
    core.write16(KEY_CONTROL, 1 << 14 | 1); // an interrupt while A is held
    let sets: [fn(&mut Core); 3] =
        [|core| core.set_keys(1), |core| core.add_keys(1), |core| core.clear_keys(2)];
    for set in sets {
        core.set_keys(0);
        core.set_keys(1);
        assert_eq!(core.read16(REQUESTED) & KEYPAD, KEYPAD);
        core.write16(REQUESTED, KEYPAD);
        set(&mut core);
        assert_eq!((core.keys(), core.read16(REQUESTED) & KEYPAD), (1, 0));
    }
}

#[test]
fn the_bus_can_be_written_and_read_in_every_width() {
    let mut core = gba_core();
    let at = 0x0300_0100;
    core.write32(at, 0xFEDC_BA98);
    assert_eq!(core.read32(at), 0xFEDC_BA98);
    assert_eq!(core.read16(at), 0xBA98);
    assert_eq!(core.read8(at + 3), 0xFE);
    core.write16(at, 0xFFFF);
    core.write8(at + 2, 0x00);
    assert_eq!(core.read_range(at, 4).unwrap(), [0xFF, 0xFF, 0x00, 0xFE]);
    core.write_range(at, &[1, 2, 3]).unwrap();
    assert_eq!(core.read32(at), 0xFE03_0201);
}

#[test]
fn every_address_of_the_bus_can_be_read() {
    for mut core in [gba_core(), gb_core()] {
        for region in 0..=0xFFu32 {
            for address in [region << 24, (region << 24) | 0x00FF_FFFC] {
                core.read8(address);
                core.read16(address);
                core.read32(address);
            }
        }
        assert_eq!(core.read_range(u32::MAX, 3).unwrap().len(), 3);
        assert!(matches!(core.read_range(0, MAX_RANGE + 1), Err(Error::RangeTooLong { .. })));
        assert!(matches!(core.read_range(0, usize::MAX), Err(Error::RangeTooLong { .. })));
    }
}

#[test]
fn registers_are_listed_read_and_written() {
    let mut core = gba_core();
    let names = core.registers();
    for name in ["r0", "r12", "pc", "cpsr"] {
        assert!(names.iter().any(|n| n == name), "{names:?}");
    }
    // libmgba lists the saved status registers, but cannot read them in any mode.
    for name in names.iter().filter(|n| !n.starts_with("spsr")) {
        assert!(core.read_register(name).is_some(), "{name}");
    }
    assert!(core.write_register("r7", -2));
    assert_eq!(core.read_register("r7"), Some(-2));
    assert_eq!(core.read_register("r99"), None);
    assert_eq!(core.read_register(""), None);
    assert_eq!(core.read_register("r\0"), None);
    assert!(!core.write_register("nonsense", 1));

    let mut core = gb_core();
    assert!(core.write_register("b", 0x1FF));
    assert_eq!(core.read_register("b"), Some(0xFF));
    assert!(core.write_register("hl", 0x1234));
    assert_eq!(core.read_register("hl"), Some(0x1234));
    assert_eq!(core.read_register("h"), Some(0x12));
}

#[test]
fn a_processor_that_is_switched_between_arm_and_thumb_continues() {
    const THUMB: i32 = 0x20;
    let mut core = gba_core();
    run(&mut core, 3);
    for _ in 0..2 {
        let pc = core.read_register("pc").unwrap();
        let cpsr = core.read_register("cpsr").unwrap();
        assert!(core.write_register("cpsr", cpsr ^ THUMB));
        assert_eq!((core.read_register("cpsr").unwrap() ^ cpsr) & THUMB, THUMB);
        // The register is one instruction ahead of the next instruction.
        let ahead = |cpsr: i32| if cpsr & THUMB != 0 { 2 } else { 4 };
        let next = core.read_register("pc").unwrap() - ahead(cpsr ^ THUMB);
        assert!((0..4).contains(&(pc - ahead(cpsr) - next)));
        run(&mut core, 3);
    }
}

#[test]
fn a_game_that_jumps_into_nothing_still_counts_frames() {
    for (mut core, pc) in [(gba_core(), 0x0FFF_FFF0), (gb_core(), 0xFFF0)] {
        core.write_register("pc", pc);
        let before = core.frame_counter();
        run(&mut core, 30);
        assert!(core.frame_counter() > before);
    }
}

#[test]
fn the_picture_is_what_the_game_drew() {
    let mut core = gba_core();
    run(&mut core, 5);
    let frame = core.frame();
    assert_eq!((frame.width, frame.height), (240, 160));
    assert_eq!(frame.rows().count(), 160);
    for row in frame.rows() {
        assert_eq!(row.len(), 240 * 4);
        for pixel in row.chunks(4) {
            assert_eq!(pixel[..3], [0xFF, 0, 0], "red, as the program paints it");
        }
    }
    assert!(frame.to_rgb() == [0xFF, 0, 0].repeat(240 * 160), "without gaps");

    let png = core.screenshot_png().unwrap();
    let (_dir, path) = file("picture.png", b"");
    core.screenshot_file(&path).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), png);
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (240, 160));
    let samples = info.color_type.samples();
    assert_eq!(pixels[..3], [0xFF, 0, 0]);
    let last = 240 * 160 * samples - samples;
    assert_eq!(pixels[last..last + 3], [0xFF, 0, 0]);
}

#[test]
fn a_picture_can_be_taken_before_the_first_frame() {
    let mut core = gba_core();
    assert!(!core.screenshot_png().unwrap().is_empty());
}

#[test]
fn sound_has_its_rate_and_a_slow_reader_gets_about_ten_frames() {
    for mut core in [gba_core(), gb_core()] {
        core.read_samples();
        let mut pairs = 0;
        for _ in 0..60 {
            core.run_frame();
            let samples = core.read_samples();
            assert_eq!(samples.len() % 2, 0);
            pairs += samples.len() / 2;
        }
        let wanted = f64::from(core.sample_rate()) * 60.0 / 59.7275;
        let ratio = pairs as f64 / wanted;
        assert!((0.98..1.02).contains(&ratio), "{pairs} of {wanted}");

        run(&mut core, 300);
        assert!(core.read_samples().len() / 2 <= 0x2000 + 2 * 1024);
        core.run_frame();
        assert!(!core.read_samples().is_empty());
    }
}
