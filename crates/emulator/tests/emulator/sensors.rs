//! Tests of the sensors, rumble and layers of an embedded core.

use framewire_emulator::embedded::{Config, Embedded, Rom, Speed};
use framewire_emulator::{Emulator, EventKind, WatchRequest};
use framewire_protocol::{Op, Status, Value};

use super::support::{call, config, number, refusal, rom_file, start};

/// A GBA game that runs `program`, which is ARM code. From the game's `code`, libmgba knows that its cartridge has a
/// sensor or a motor.
fn game(code: &[u8; 4], program: &[u32]) -> Vec<u8> {
    let mut rom = vec![0u8; 0x400];
    rom[..4].copy_from_slice(&0xEA00_002Eu32.to_le_bytes()); // b 0xC0
    rom[0xAC..0xB0].copy_from_slice(code);
    rom[0xB2] = 0x96;
    let sum = rom[0xA0..0xBD].iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    rom[0xBD] = 0u8.wrapping_sub(sum.wrapping_add(0x19));
    for (index, word) in program.iter().enumerate() {
        rom[0xC0 + 4 * index..][..4].copy_from_slice(&word.to_le_bytes());
    }
    rom
}

/// A program that writes the tilt to 0x02000000 and 0x02000002 repeatedly.
const TILT: [u32; 18] = [
    0xE3A0_040E, // mov r0, #0x0E000000
    0xE280_0902, // add r0, r0, #0x8000
    0xE280_1C01, // add r1, r0, #0x100
    0xE3A0_5402, // mov r5, #0x02000000
    0xE3A0_2055, // mov r2, #0x55
    0xE5C0_2000, // strb r2, [r0]
    0xE3A0_20AA, // mov r2, #0xAA
    0xE5C1_2000, // strb r2, [r1]
    0xE5D1_3100, // ldrb r3, [r1, #0x100]
    0xE5D1_4200, // ldrb r4, [r1, #0x200]
    0xE204_400F, // and r4, r4, #0xF
    0xE183_3404, // orr r3, r3, r4, lsl #8
    0xE1C5_30B0, // strh r3, [r5]
    0xE5D1_3300, // ldrb r3, [r1, #0x300]
    0xE5D1_4400, // ldrb r4, [r1, #0x400]
    0xE183_3404, // orr r3, r3, r4, lsl #8
    0xE1C5_30B2, // strh r3, [r5, #2]
    0xEAFF_FFF1, // b back to mov r2, #0x55
];

/// A program that runs the motor while bit 3 at 0x02000000 is set.
const RUMBLE: [u32; 8] = [
    0xE3A0_0302, // mov r0, #0x08000000
    0xE280_00C4, // add r0, r0, #0xC4
    0xE3A0_5402, // mov r5, #0x02000000
    0xE3A0_2008, // mov r2, #8
    0xE1C0_20B2, // strh r2, [r0, #2]
    0xE1D5_30B0, // ldrh r3, [r5]
    0xE1C0_30B0, // strh r3, [r0]
    0xEAFF_FFFC, // b back to ldrh
];

fn embedded(rom: &[u8]) -> (tempfile::NamedTempFile, Embedded) {
    let (file, path) = rom_file(rom);
    let config = Config { rom: Rom::File(path.into()), ..config(Speed::Times(1.0), true, vec![]) };
    (file, Embedded::start(config).expect("the game starts"))
}

fn set(sensor: &str, thousandths: i32) -> Op {
    Op::SetSensor { sensor: sensor.to_owned(), thousandths }
}

fn off(layer: &str) -> Op {
    Op::SetLayer { layer: layer.to_owned(), enabled: false }
}

#[test]
fn a_game_sees_a_new_tilt_in_the_next_frame() {
    let (_file, emulator) = embedded(&game(b"KYGE", &TILT));
    let tilt = |address: u32| number(call(&emulator, Op::Read16 { address }));
    let step = || call(&emulator, Op::Advance { frames: 1 });
    step();
    assert_eq!((tilt(0x0200_0000), tilt(0x0200_0002)), (0x3A0, 0x3A0));
    for (thousandths, seen) in [(500, 0x3A0 - 255), (-500, 0x3A0 + 256), (0, 0x3A0)] {
        call(&emulator, set("tilt_x", thousandths));
        step();
        assert_eq!((tilt(0x0200_0000), tilt(0x0200_0002)), (seen, 0x3A0));
    }
    call(&emulator, set("tilt_y", 1000));
    let texts = ["tilt_x", "0", "tilt_y", "1000", "gyro", "0", "light", "0"];
    let listed = Value::List(texts.map(|text| Value::Text(text.to_owned())).to_vec());
    assert_eq!(call(&emulator, Op::Sensors {}), listed);
    // The values of the sensors and the keys are kept when a game of the other console is loaded.
    call(&emulator, Op::SetKeys { keys: 1 });
    let mut other = vec![0u8; 0x8000];
    other[0x100..0x104].copy_from_slice(&[0x00, 0xC3, 0x50, 0x01]);
    other[0x104..0x108].copy_from_slice(&[0xCE, 0xED, 0x66, 0x66]);
    other[0x150..0x152].copy_from_slice(&[0x18, 0xFE]);
    let (_other, path) = rom_file(&other);
    call(&emulator, Op::LoadRom { path });
    assert_eq!(call(&emulator, Op::Platform {}), Value::Int(1));
    assert_eq!(call(&emulator, Op::Sensors {}), listed);
    assert_eq!(call(&emulator, Op::GetKeys {}), Value::Int(1));
}

#[test]
fn rumble_is_reported_as_an_event() {
    let (_file, emulator) = embedded(&game(b"V49E", &RUMBLE));
    let mut events = emulator.events();
    let mut rumble = |value: u16| {
        call(&emulator, Op::Write16 { address: 0x0200_0000, value });
        call(&emulator, Op::Advance { frames: 2 });
        let frame = number(call(&emulator, Op::CurrentFrame {}));
        let mut seen = Vec::new();
        while let Ok(event) = events.try_recv() {
            if let EventKind::Rumble { on } = event.kind {
                seen.push((i64::from(event.frame) - frame, on));
            }
        }
        seen
    };
    assert_eq!(rumble(0), []);
    assert_eq!(rumble(8), [(-1, true)]);
    assert_eq!(rumble(8), []);
    // The event comes only after the second frame, because the motor still ran at the beginning of the first.
    assert_eq!(rumble(0), [(0, false)]);
}

#[test]
fn a_recording_and_sensors_or_layers_exclude_each_other() {
    let emulator = start(Speed::Times(1.0), true);
    let request = || WatchRequest { keys: true, ..WatchRequest::default() };
    for (change, back, says) in [
        (set("gyro", -1), set("gyro", 0), "the sensor gyro is not 0"),
        (off("obj"), Op::SetLayer { layer: "obj".to_owned(), enabled: true }, "the layer obj is off"),
    ] {
        call(&emulator, change);
        let watch = emulator.watch(request());
        let refused = refusal(&emulator, watch.op());
        assert_eq!(refused.status, Status::Busy);
        assert!(refused.message.contains(says), "{refused}");
        call(&emulator, back);
    }
    // A recording does not contain sound, so sound channels can be switched off.
    call(&emulator, off("ch1"));
    let watch = emulator.watch(request());
    call(&emulator, watch.op());
    for op in [set("gyro", 1), off("bg0")] {
        let refused = refusal(&emulator, op);
        assert_eq!(refused.status, Status::Busy);
        assert!(refused.message.contains("being recorded or replayed"), "{refused}");
    }
    call(&emulator, off("ch2"));
    drop(watch);
    call(&emulator, off("bg0"));
}

#[test]
fn unknown_sensors_and_layers_are_refused() {
    let emulator = start(Speed::Times(1.0), true);
    for (op, says) in [
        (set("tilt", 0), "there is no sensor \"tilt\"; there are tilt_x, tilt_y, gyro, light"),
        (set("light", -1), "light is -1 thousandths; use 0 to 1000"),
        (off("bg4"), "there is no layer \"bg4\"; there are bg0, bg1"),
    ] {
        let refused = refusal(&emulator, op);
        assert_eq!(refused.status, Status::BadArgument);
        assert!(refused.message.contains(says), "{refused}");
    }
}
