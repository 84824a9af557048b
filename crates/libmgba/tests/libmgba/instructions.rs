//! Instructions of a Game Boy that are run at once, compared with libmgba, which runs them a cycle at a time.

use framewire_libmgba::Core;

use crate::comparison::{Random, assert_equal, pair, seeds};
use crate::support::{gb, program};

const SCROLL: &str = include_str!("../../programs/scroll.hex");
/// Where a Game Boy ROM says that it is for a Color.
const COLOR: usize = 0x143;
/// Instructions that do not exist. libmgba stops at them for ever.
const ILLEGAL: [u8; 11] = [0xD3, 0xDB, 0xDD, 0xE3, 0xE4, 0xEB, 0xEC, 0xED, 0xF4, 0xFC, 0xFD];
const HALT: u8 = 0x76;
const INTERRUPTS: u32 = 0xFF0F;
const ENABLED_INTERRUPTS: u32 = 0xFFFF;

/// A ROM in which everything but the header is random: code, data and handlers of interrupts.
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
    // No cartridge RAM, MBC1, MBC2 or MBC5, all without a clock.
    rom[0x147] = [0x00, 0x03, 0x06, 0x1B][random.next() as usize % 4];
    rom[COLOR] = if random.next().is_multiple_of(2) { 0x80 } else { 0 };
    rom
}

/// Every instruction that exists, with all kinds of operands, next to events of all kinds: random code writes to the
/// registers of the display, the timer, the sound and DMA too.
#[test]
fn random_programs_run_as_in_libmgba() {
    let seeds = seeds(150);
    let mut ends = std::collections::HashSet::new();
    for seed in 0..seeds {
        let mut random = Random(seed);
        let mut cores = pair(&random_rom(&mut random));
        for frame in 0..24 {
            let [keys, enabled, wanted, draws] = [(); 4].map(|()| random.next());
            for core in &mut cores {
                core.set_keys(keys as u16 & 0xFF);
                // A program that waits for an interrupt goes on, and one in a loop goes somewhere else.
                core.write8(ENABLED_INTERRUPTS, enabled as u8 & 0x1F);
                core.write8(INTERRUPTS, wanted as u8 & 0x1F);
                core.set_drawing(draws.is_multiple_of(2));
                core.run_frame();
            }
            assert_equal(&mut cores, &format!("program {seed}, frame {frame}"));
        }
        ends.insert(crc32fast::hash(&cores[0].save_state(0).unwrap()));
    }
    assert_eq!(ends.len() as u64, seeds, "programs that ended in the same state");
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

/// A state may be saved and loaded between any two frames, by cores that run in either way.
#[test]
fn states_go_from_one_way_to_the_other() {
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
