//! Tests with a Game Boy game.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::served::{Served, host, wait_until};

/// A ROM of 32 KiB that increments the byte at 0xC000 forever.
pub fn game(folder: &TempDir) -> PathBuf {
    // ld hl, 0xC000; inc (hl); jr back to inc
    rom(folder, &[0x21, 0x00, 0xC0, 0x34, 0x18, 0xFD])
}

/// A ROM of 32 KiB with this machine code at its entry point.
pub fn rom(folder: &TempDir, program: &[u8]) -> PathBuf {
    let mut rom = vec![0u8; 0x8000];
    rom[0x100..0x104].copy_from_slice(&[0x00, 0xC3, 0x50, 0x01]); // nop; jp 0x150
    rom[0x104..0x108].copy_from_slice(&[0xCE, 0xED, 0x66, 0x66]); // the beginning of the logo
    rom[0x134..0x138].copy_from_slice(b"TINY");
    rom[0x14D] = rom[0x134..0x14D].iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte).wrapping_sub(1));
    rom[0x150..0x150 + program.len()].copy_from_slice(program);
    let path = folder.path().join("tiny.gb");
    fs::write(&path, rom).unwrap();
    path
}

fn is_the_game(served: &Served) {
    assert_eq!(served.text("/core/getgametitle"), "TINY");
    assert_eq!(served.text("/core/platform"), "1");
    assert_eq!(served.text("/core/romsize"), "32768");
    let count = || served.number("/core/read8?address=0xC000");
    let before = count();
    wait_until("the game counts", || Ok(count() != before));

    for register in ["a", "f", "h", "sp", "pc"] {
        served.number(&format!("/core/readregister?regName={register}"));
    }
    served.refused("GET", "/core/readregister?regName=r0", 400, "pc");
    // The Game Boy has eight keys. Requests for L and R are accepted, but do not affect the eight keys.
    served.post("/mgba-http/button/addmany?buttons=R&buttons=L&buttons=B");
    wait_until("B is held", || Ok(served.text("/mgba-http/button/get?button=B") == "1"));
    assert_eq!(served.number("/core/getkeys") & 0xFF, 2);
    served.post("/core/clearkeys?keyBitmask=1023");
}

#[test]
fn a_game_boy_game_runs_on_both_kinds_of_emulator() {
    let folder = tempfile::tempdir().unwrap();
    let rom = game(&folder);
    is_the_game(&Served::game_of(&fs::read(&rom).unwrap(), "tiny.gb", &[]));

    let (host, script) = host(&folder, &rom);
    is_the_game(&Served::attached(folder, None, Some(host), script, &[]));
}

/// Only an embedded core can load a game for another console. A script in mGBA cannot.
#[test]
fn an_embedded_core_can_load_a_game_for_another_console() {
    let load = |served: &Served| {
        let rom = game(&served.folder);
        served.post(&format!("/mgba-http/extension/loadfile?path={}", rom.display()))
    };
    let served = Served::embedded();
    assert_eq!(load(&served), "true");
    is_the_game(&served);
    let demo = served.file("demo game+1.gba");
    assert_eq!(served.post(&format!("/mgba-http/extension/loadfile?path={demo}")), "true");
    assert_eq!(served.text("/core/getgametitle"), "FRAMEWIRE");
    assert_eq!(served.text("/core/platform"), "0");

    let served = Served::hosted();
    assert_eq!(load(&served), "false");
    assert_eq!(served.text("/core/getgametitle"), "FRAMEWIRE", "the running game goes on");
}
