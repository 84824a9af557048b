//! Tests of sensors and rumble, through the cartridge's registers, and of layers.

use framewire_libmgba::{Core, Sensor, flags};

use crate::support::{gb, gba, run};

/// A core with a game that has this code. libmgba recognises games with sensors by their codes.
fn cartridge(code: &str) -> Core {
    let mut core = Core::from_bytes(&gba("SENSORS", code)).unwrap();
    core.reset();
    core
}

/// Reads the tilt from a GBA cartridge: x and y.
fn tilt(core: &mut Core) -> [u16; 2] {
    core.write8(0x0E00_8000, 0x55);
    core.write8(0x0E00_8100, 0xAA);
    [0x8200, 0x8400].map(|place| {
        let high = core.read8(0x0E00_0100 + place) & 0xF;
        u16::from_le_bytes([core.read8(0x0E00_0000 + place), high])
    })
}

const PINS: u32 = 0x0800_00C4;

/// Sets which pins of the cartridge's port are outputs, and makes the port readable.
fn port(core: &mut Core, outputs: u16) {
    core.write16(PINS + 4, 1);
    core.write16(PINS + 2, outputs);
}

/// Reads the speed of rotation. The cartridge sends one bit of it with each pulse.
fn gyro(core: &mut Core) -> u16 {
    port(core, 0b1011);
    core.write16(PINS, 1);
    let mut value = 0;
    for _ in 0..16 {
        value = value << 1 | (core.read16(PINS) >> 2 & 1);
        core.write16(PINS, 2);
        core.write16(PINS, 0);
    }
    value
}

/// Reads the light: how many pulses the cartridge counts. In brighter light, it counts fewer.
fn light(core: &mut Core) -> u32 {
    port(core, 0b0111);
    core.write16(PINS, 2);
    core.write16(PINS, 0);
    (0..256)
        .find(|_| {
            let done = core.read16(PINS) & 8 != 0;
            core.write16(PINS, 1);
            core.write16(PINS, 0);
            done
        })
        .unwrap_or(256)
}

#[test]
fn a_gba_cartridge_measures_the_tilt_that_was_set() {
    let mut core = cartridge("KYGE");
    assert_eq!(tilt(&mut core), [0x3A0, 0x3A0]);
    core.set_sensor(Sensor::TiltX, 500);
    core.set_sensor(Sensor::TiltY, -1000);
    assert_eq!(tilt(&mut core), [0x3A0 - 255, 0x3A0 + 512]);
    // The tilt is not part of a state.
    let state = core.save_state(flags::SAVEDATA).unwrap();
    core.set_sensor(Sensor::TiltX, -500);
    core.load_state(&state, flags::SAVEDATA).unwrap();
    core.reset();
    assert_eq!((core.sensor(Sensor::TiltX), tilt(&mut core)[0]), (-500, 0x3A0 + 256));
    core.set_sensor(Sensor::TiltX, 5000);
    assert_eq!(core.sensor(Sensor::TiltX), 1000);
}

#[test]
fn a_game_boy_cartridge_measures_the_tilt_that_was_set() {
    let mut rom = gb("TILT");
    rom[0x147] = 0x22;
    let mut core = Core::from_bytes(&rom).unwrap();
    core.reset();
    let mut tilt = |x: i32, y: i32| {
        core.set_sensor(Sensor::TiltX, x);
        core.set_sensor(Sensor::TiltY, y);
        // Enables the registers, and starts a measurement of the sensor.
        for (address, value) in [(0x0000, 0x0A), (0x4000, 0x40), (0xA000, 0x55), (0xA010, 0xAA)] {
            core.write8(address, value);
        }
        [0xA020, 0xA040].map(|low| u16::from_le_bytes([core.read8(low), core.read8(low + 0x10)]))
    };
    assert_eq!(tilt(0, 0), [0x81D0, 0x81D0]);
    assert_eq!(tilt(1000, -500), [0x81D0 - 1024, 0x81D0 + 511]);
}

#[test]
fn a_cartridge_measures_rotation_and_light() {
    let mut core = cartridge("RZWE");
    assert_eq!(gyro(&mut core), 0x700);
    core.set_sensor(Sensor::Gyro, 250);
    assert_eq!(gyro(&mut core), 0x700 + 255);
    core.set_sensor(Sensor::Gyro, -1000);
    assert_eq!(gyro(&mut core), 0x700 - 1024);

    let mut core = cartridge("U3IE");
    assert_eq!(light(&mut core), 255);
    core.set_sensor(Sensor::Light, 400);
    assert_eq!(light(&mut core), 153);
    core.set_sensor(Sensor::Light, 1000);
    assert_eq!(light(&mut core), 0);
}

#[test]
fn a_cartridge_rumbles() {
    let mut core = cartridge("V49E");
    port(&mut core, 8);
    assert!(!core.take_rumble());
    core.write16(PINS, 8);
    assert!(core.take_rumble() && core.take_rumble(), "it still rumbles");
    core.write16(PINS, 0);
    assert!(core.take_rumble(), "it has rumbled since the last call");
    assert!(!core.take_rumble());
    core.write16(PINS, 8);
    core.reset();
    assert!(!core.take_rumble());

    let mut rom = gb("RUMBLE");
    rom[0x147] = 0x1D;
    let mut core = Core::from_bytes(&rom).unwrap();
    core.reset();
    core.write8(0x4000, 8);
    assert!(core.take_rumble());
    core.write8(0x4000, 0);
    core.take_rumble();
    assert!(!core.take_rumble());
}

#[test]
fn sensors_have_names() {
    for sensor in Sensor::ALL {
        assert_eq!(sensor.name().parse(), Ok(sensor));
    }
    let error = "tilt".parse::<Sensor>().unwrap_err();
    assert_eq!(error, "there is no sensor \"tilt\"; there are tilt_x, tilt_y, gyro, light");
}

#[test]
fn layers_are_switched_off_and_on() {
    let mut core = Core::from_bytes(&gba("LAYERS", "BFWE")).unwrap();
    core.reset();
    run(&mut core, 5);
    let pixel = |core: &Core| core.frame().to_rgb()[..3].to_vec();
    let red = pixel(&core);
    let state = core.save_state(0).unwrap();
    // In mode 3, the picture is background 2. The game no longer changes it.
    assert!(core.enable_layer("bg2", false));
    run(&mut core, 1);
    assert_ne!(pixel(&core), red);
    core.reset();
    run(&mut core, 5);
    assert_ne!(pixel(&core), red);
    assert!(core.save_state(0).unwrap() == state, "the state of the game is the same");
    assert!(core.enable_layer("bg2", true));
    run(&mut core, 1);
    assert_eq!(pixel(&core), red);

    assert!(core.enable_layer("chA", false) && !core.enable_layer("bg9", false));
    let off: Vec<_> = core.layers().into_iter().filter(|layer| !layer.enabled).collect();
    assert_eq!(off.len(), 1);
    assert_eq!((off[0].name.as_str(), off[0].sound), ("chA", true));
    let names: Vec<_> = core.layers().into_iter().map(|layer| layer.name).collect();
    assert_eq!(names[..5], ["bg0", "bg1", "bg2", "bg3", "obj"]);

    let mut core = Core::from_bytes(&gb("LAYERS")).unwrap();
    let names: Vec<_> = core.layers().into_iter().map(|layer| layer.name).collect();
    assert_eq!(names, ["bg", "bgwin", "obj", "ch1", "ch2", "ch3", "ch4"]);
    assert!(core.enable_layer("bg", false) && core.enable_layer("ch4", false));
}
