//! Runs Game Boy programs that wait for events, and checks that they run as in plain libmgba. The programs use timers,
//! interrupts, and loops that the shim (Framewire's C code over libmgba) skips.

use framewire_libmgba::Core;

use crate::comparison::{Random, assert_equal, pair, seeds};
use crate::support::{COLOR, gb};

/// The address of the first of the five interrupt handlers: vertical blank, display status, timer, serial link, keys.
const HANDLERS: usize = 0x40;
/// The address of a function that programs call. It reads the flag that the handlers set.
const FUNCTION: usize = 0x130;

/// A random piece of code. It waits for something, or changes something that other pieces wait for.
fn part(random: &mut Random) -> Vec<u8> {
    let byte = random.next() as u8;
    let line = byte % 154;
    let jump = random.choose(&[0x20, 0x28, 0x30, 0x38]);
    match random.next() % 18 {
        0 => vec![0xF0, 0x44, 0xFE, line, jump, 0xFA], // ldh a, (LY); cp line; jr back
        1 => vec![0xF0, 0x41, 0xE6, 3, 0xFE, byte & 3, 0x20, 0xF8], // the mode in STAT
        2 => vec![0xFA, 0x00, 0xC0, 0xB7, 0x28, 0xFA, 0xAF, 0xEA, 0x00, 0xC0], // until a handler sets the flag; clear it
        3 => vec![0x21, 0x00, 0xC0, 0xCB, 0x46, 0x28, 0xFC, 0xCB, 0x86],       // the same with bit 0, (hl)
        4 => vec![0x76],                                                       // halt
        5 => vec![0xF5, 0xCD, 0x30, 0x01, 0xFE, byte & 1, 0x28, 0xF9, 0xF1], // while FUNCTION returns byte & 1 (0 or 1)
        6 => vec![0xF0, 0x04, 0xFE, byte, jump, 0xFA],                       // DIV
        7 => vec![0xF0, 0x05, 0xFE, byte, jump, 0xFA],                       // TIMA
        8 => vec![0xF0, 0x0F, 0xE6, byte & 0x1F, 0x28, 0xFA],                // requested interrupts
        9 => vec![0x06, byte, 0x05, 0x20, 0xFD],                             // ld b, byte; dec b; jr nz
        10 => vec![0x21, 0x10, 0xC0, 0x34, 0x20, 0xFD],                      // inc (hl) until it is 0
        11 => vec![0x21, 0x11, 0xC0, 0x3E, 1, 0xAE, 0x77, 0xF0, 0x44, 0xFE, line, 0x20, 0xF6], // flip a bit until line
        12 => vec![0x3E, byte, 0xE0, 0x04],                                                    // write DIV
        13 => vec![0x3E, byte, 0xE0, random.choose(&[0x05, 0x06])],                            // TIMA or TMA
        14 => vec![0x3E, byte & 7, 0xE0, 0x07], // TAC: on or off, with one of four rates
        15 => vec![0x3E, 1, 0xE0, 0x4D, 0x10, 0x00], // switch the speed of a Game Boy Color
        16 => vec![0x3E, line, 0xE0, 0x45],     // LYC
        _ => vec![0x3E, byte & 0x78, 0xE0, 0x41], // interrupts of the display's status
    }
}

/// A ROM that runs random pieces of code in a loop, with interrupt handlers that set a flag.
fn waiting_rom(random: &mut Random) -> Vec<u8> {
    let mut rom = gb("WAIT");
    for at in (HANDLERS..HANDLERS + 5 * 8).step_by(8) {
        rom[at..at + 7].copy_from_slice(&[0xF5, 0x3E, 1, 0xEA, 0x00, 0xC0, 0xF1]); // push af; (flag) = 1; pop af
        rom[at + 7] = random.choose(&[0xD9, 0xD9, 0xD9, 0xC9]); // reti; sometimes ret
    }
    rom[FUNCTION..FUNCTION + 4].copy_from_slice(&[0xFA, 0x00, 0xC0, 0xC9]); // ld a, (flag); ret
    rom[COLOR] = random.choose(&[0, 0x80]);
    let mut code = vec![0x31, 0xFE, 0xDF, 0x3E, random.next() as u8 & 0x1F, 0xE0, 0xFF]; // stack, and enabled interrupts
    code.extend([0x3E, random.next() as u8 & 7, 0xE0, 0x07, 0xFB]); // TAC; ei
    let main = code.len();
    for _ in 0..random.next() % 12 + 2 {
        code.extend(part(random));
    }
    let back = 0x150 + main as u16;
    code.extend([0xFB, 0xC3, back as u8, (back >> 8) as u8]); // ei; jp main
    rom[0x150..0x150 + code.len()].copy_from_slice(&code);
    rom
}

#[test]
fn programs_that_wait_run_as_in_libmgba() {
    for seed in 0..seeds(300) {
        let mut random = Random(seed);
        let mut cores = pair(&waiting_rom(&mut random));
        for frame in 0..30 {
            let [keys, draws] = [(); 2].map(|()| random.next());
            for core in &mut cores {
                core.set_keys(keys as u16 & 0xFF);
                core.set_drawing(draws.is_multiple_of(2));
                core.run_frame();
            }
            assert_equal(&mut cores, &format!("program {seed}, frame {frame}"));
        }
    }
}

#[test]
fn programs_that_wait_have_the_same_sound_as_in_libmgba() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let mut cores = pair(&waiting_rom(&mut random));
        for frame in 0..60 {
            cores.iter_mut().for_each(Core::run_frame);
            let [libmgba, ours] = cores.each_mut().map(Core::read_samples);
            assert!(libmgba == ours, "program {seed}, frame {frame}: the sounds differ");
        }
    }
}
