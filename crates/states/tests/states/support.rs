use std::path::{Path, PathBuf};

use framewire_libmgba::{Core, flags};
use framewire_states::About;

/// The demo game's frame counter.
pub const FRAME: u32 = 0x0200_0008;
/// Memory that the demo game does not use.
pub const SCRATCH: u32 = 0x0200_0100;

pub fn demo_rom() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rom/framewire-demo.gba");
    std::fs::read(path).unwrap()
}

pub fn demo() -> Core {
    let mut core = Core::from_bytes(&demo_rom()).unwrap();
    run(&mut core, 60);
    core
}

/// A Game Boy game that increments the byte at 0xC000 in a loop and draws nothing.
pub fn game_boy() -> Core {
    let mut rom = vec![0; 0x8000];
    // The entry point jumps to 0150. The code there is: ld hl,C000; inc (hl); jr -3.
    rom[0x100..0x104].copy_from_slice(&[0x00, 0xC3, 0x50, 0x01]);
    rom[0x150..0x156].copy_from_slice(&[0x21, 0x00, 0xC0, 0x34, 0x18, 0xFD]);
    rom[0x104..0x108].copy_from_slice(&[0xCE, 0xED, 0x66, 0x66]); // libmgba recognises the logo
    rom[0x134..0x13B].copy_from_slice(b"COUNTER");
    rom[0x14D] = rom[0x134..0x14D].iter().fold(0, |sum: u8, byte| sum.wrapping_sub(*byte).wrapping_sub(1));
    let mut core = Core::from_bytes(&rom).unwrap();
    run(&mut core, 10);
    core
}

pub fn run(core: &mut Core, frames: u32) {
    for _ in 0..frames {
        core.run_frame();
    }
}

pub fn about(core: &Core) -> About {
    About {
        title: core.title(),
        code: core.code(),
        checksum: core.crc32(),
        frame: core.frame_counter(),
        time: "2026-01-02T03:04:05Z".to_owned(),
        note: "before “it”".to_owned(),
    }
}

/// The core's state with all optional parts, such as the picture.
pub fn with_picture(core: &mut Core) -> Vec<u8> {
    core.save_state(flags::ALL).unwrap()
}

pub fn folder() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("snapshots");
    (home, path)
}
