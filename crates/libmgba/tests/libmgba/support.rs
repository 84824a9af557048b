//! Small ROMs, and functions that run scripts and return their output.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use framewire_libmgba::{Core, Level};
use tempfile::TempDir;

/// The addresses at which the test ROMs count the iterations of their loop.
pub const GBA_COUNTER: u32 = 0x0200_0000;
pub const GB_COUNTER: u32 = 0xC000;

/// The demo game.
pub const DEMO: &[u8] = include_bytes!("../../../../rom/framewire-demo.gba");
/// A Game Boy game, for [`program`].
pub const SCROLL: &str = include_str!("../../programs/scroll.hex");
/// The address of the header byte that marks a ROM for the Game Boy Color.
pub const COLOR: usize = 0x143;

/// The GBA program: paints the screen red (mode 3), then counts forever.
const GBA_PROGRAM: [u32; 16] = [
    0xE3A0_0404, // mov r0, #0x04000000
    0xE3A0_1B01, // mov r1, #0x400
    0xE281_1003, // add r1, r1, #3
    0xE1C0_10B0, // strh r1, [r0]
    0xE3A0_2406, // mov r2, #0x06000000
    0xE3A0_301F, // mov r3, #0x1F
    0xE183_3803, // orr r3, r3, r3, lsl #16
    0xE3A0_4C4B, // mov r4, #240 * 160 / 2
    0xE482_3004, // str r3, [r2], #4
    0xE254_4001, // subs r4, r4, #1
    0x1AFF_FFFC, // bne back to str
    0xE3A0_5402, // mov r5, #0x02000000
    0xE595_6000, // ldr r6, [r5]
    0xE286_6001, // add r6, r6, #1
    0xE585_6000, // str r6, [r5]
    0xEAFF_FFFB, // b back to ldr
];

/// A GBA ROM of 1 KiB with a title of up to 12 letters and a code of 4. The
/// code must not begin with F: libmgba treats such games as Classic NES games, which
/// have an EEPROM and no SRAM.
pub fn gba(title: &str, code: &str) -> Vec<u8> {
    let mut rom = vec![0u8; 0x400];
    rom[..4].copy_from_slice(&0xEA00_002Eu32.to_le_bytes()); // b 0xC0
    rom[0xA0..0xA0 + title.len()].copy_from_slice(title.as_bytes());
    rom[0xAC..0xB0].copy_from_slice(code.as_bytes());
    rom[0xB2] = 0x96;
    let sum = rom[0xA0..0xBD].iter().fold(0u8, |s, b| s.wrapping_add(*b));
    rom[0xBD] = 0u8.wrapping_sub(sum.wrapping_add(0x19));
    for (i, word) in GBA_PROGRAM.iter().enumerate() {
        rom[0xC0 + 4 * i..][..4].copy_from_slice(&word.to_le_bytes());
    }
    rom
}

/// A Game Boy ROM of 32 KiB with 8 KiB of battery RAM. It counts forever.
pub fn gb(title: &str) -> Vec<u8> {
    let mut rom = vec![0u8; 0x8000];
    rom[0x100..0x104].copy_from_slice(&[0x00, 0xC3, 0x50, 0x01]); // nop; jp 0x150
    rom[0x104..0x108].copy_from_slice(&[0xCE, 0xED, 0x66, 0x66]); // logo
    rom[0x134..0x134 + title.len()].copy_from_slice(title.as_bytes());
    rom[0x147] = 0x03; // MBC1, RAM, battery
    rom[0x149] = 0x02; // 8 KiB
    rom[0x14D] = rom[0x134..0x14D].iter().fold(0u8, |s, b| s.wrapping_sub(*b).wrapping_sub(1));
    // ld hl, 0xC000; inc (hl); jr back to inc
    rom[0x150..0x156].copy_from_slice(&[0x21, 0x00, 0xC0, 0x34, 0x18, 0xFD]);
    rom
}

/// A ROM of `size` bytes from a file in `programs`: addresses and bytes in hexadecimal, and comments.
pub fn program(text: &str, size: usize) -> Vec<u8> {
    let mut rom = vec![0; size];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (address, bytes) = line.split(';').next().unwrap().split_once(':').unwrap();
        let address = usize::from_str_radix(address, 16).unwrap();
        for (at, byte) in bytes.split_whitespace().enumerate() {
            rom[address + at] = u8::from_str_radix(byte, 16).unwrap();
        }
    }
    rom
}

pub fn gba_core() -> Core {
    Core::from_bytes(&gba("FRAMEWIRE", "BFWE")).expect("a valid GBA ROM")
}

pub fn gb_core() -> Core {
    Core::from_bytes(&gb("FRAMEWIRE")).expect("a valid Game Boy ROM")
}

pub fn run(core: &mut Core, frames: u32) {
    for _ in 0..frames {
        core.run_frame();
    }
}

/// A folder with one file in it.
pub fn file(name: &str, bytes: &[u8]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (dir, path)
}

/// The messages that scripts have written to their console.
#[derive(Clone, Default)]
pub struct Transcript(Arc<Mutex<Vec<(Level, String)>>>);

impl Transcript {
    pub fn attach(core: &mut Core) -> Transcript {
        let transcript = Transcript::default();
        let lines = transcript.0.clone();
        core.attach_scripts(move |level, text| {
            lines.lock().unwrap().push((level, text.to_owned()));
        })
        .expect("a libmgba with Lua");
        transcript
    }

    /// The lines since the last call.
    pub fn take(&self) -> Vec<(Level, String)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// The texts of [`take`](Self::take), which must all be of level Info.
    pub fn take_info(&self) -> Vec<String> {
        self.take()
            .into_iter()
            .map(|(level, text)| {
                assert_eq!(level, Level::Info, "{text}");
                text
            })
            .collect()
    }
}

/// Runs Lua in a core without scripts, and returns what it printed.
pub fn lua(core: &mut Core, source: &str) -> Vec<String> {
    let transcript = Transcript::attach(core);
    core.run_script_source("test", source).expect(source);
    let lines = transcript.take_info();
    core.detach_scripts();
    lines
}
