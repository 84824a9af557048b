//! Compares the C code in `shim`, which runs most Game Boy instructions in one step, with libmgba, which runs them
//! cycle by cycle.

use framewire_libmgba::Core;

use crate::comparison::{Random, assert_equal, pair, seeds};
use crate::support::{COLOR, SCROLL, gb, program};

/// Instructions that do not exist. libmgba stops at them forever.
const ILLEGAL: [u8; 11] = [0xD3, 0xDB, 0xDD, 0xE3, 0xE4, 0xEB, 0xEC, 0xED, 0xF4, 0xFC, 0xFD];
const HALT: u8 = 0x76;
const REQUESTED_INTERRUPTS: u32 = 0xFF0F;
const ENABLED_INTERRUPTS: u32 = 0xFFFF;

/// A ROM in which everything except the header is random: code, data and interrupt handlers.
fn random_rom(random: &mut Random) -> Vec<u8> {
    let mut rom = gb("RANDOM");
    let bytes = (0..0x100).chain(0x150..rom.len());
    for at in bytes {
        let mut byte = random.next() as u8;
        while ILLEGAL.contains(&byte) || byte == HALT && !random.next().is_multiple_of(16) {
            byte = random.next() as u8;
        }
        rom[at] = byte;
    }
    // The kind of cartridge: only a ROM, or with MBC1, MBC2 or MBC5. None has a clock.
    rom[0x147] = [0x00, 0x03, 0x06, 0x1B][random.next() as usize % 4];
    rom[COLOR] = if random.next().is_multiple_of(2) { 0x80 } else { 0 };
    rom
}

/// The random programs use every instruction that exists, with all kinds of operands, close to events of all kinds.
/// Random code also writes to the registers of the display, the timer, the sound and DMA.
#[test]
fn random_programs_run_as_in_libmgba() {
    let seeds = seeds(150);
    let mut ends = std::collections::HashSet::new();
    for seed in 0..seeds {
        let mut random = Random(seed);
        let mut cores = pair(&random_rom(&mut random));
        for frame in 0..24 {
            let [keys, enabled, requested, draws] = [(); 4].map(|()| random.next());
            for core in &mut cores {
                core.set_keys(keys as u16 & 0xFF);
                // With these interrupts, a program that waits continues, and a program in a loop jumps to a handler.
                core.write8(ENABLED_INTERRUPTS, enabled as u8 & 0x1F);
                core.write8(REQUESTED_INTERRUPTS, requested as u8 & 0x1F);
                core.set_drawing(draws.is_multiple_of(2));
                core.run_frame();
            }
            assert_equal(&mut cores, &format!("program {seed}, frame {frame}"));
        }
        ends.insert(crc32fast::hash(&cores[0].save_state(0).unwrap()));
    }
    assert_eq!(ends.len() as u64, seeds, "some programs ended in the same state");
}

#[test]
fn games_run_as_in_libmgba() {
    let scroll = program(SCROLL, 0x8000);
    let mut color = scroll.clone();
    color[COLOR] = 0x80;
    for rom in [scroll, color, gb("COUNT")] {
        let mut cores = pair(&rom);
        for frame in 0..600u32 {
            for core in &mut cores {
                core.set_drawing(frame.is_multiple_of(4));
                core.run_frame();
            }
            let what = format!("{:?}, frame {frame}", cores[0].title());
            assert_equal(&mut cores, &what);
        }
    }
}

/// Between any two frames, a state of one core can be loaded into the other, no matter how the cores run instructions.
#[test]
fn states_can_be_exchanged_between_the_two_ways_of_running() {
    let mut cores = pair(&program(SCROLL, 0x8000));
    for frame in 0..120 {
        cores.iter_mut().for_each(Core::run_frame);
        let state = cores[frame % 2].save_state(0).unwrap();
        for core in &mut cores {
            core.load_state(&state, 0).unwrap();
        }
        assert_equal(&mut cores, &format!("frame {frame}"));
        for core in &mut cores {
            core.step_all_cycles(frame % 3 == 0);
        }
        cores.iter_mut().for_each(Core::run_frame);
        assert_equal(&mut cores, &format!("after frame {frame}"));
        cores[0].step_all_cycles(true);
        cores[1].step_all_cycles(false);
    }
}
