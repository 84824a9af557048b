//! Memory access is as exact in a stock mGBA as in an embedded core, although they have different versions of libmgba.

#[path = "../../../crates/emulator/tests/emulator/exact/mod.rs"]
mod exact;

use std::fs;
use std::path::Path;
use std::time::Instant;

use exact::{Console, FIRST, color_rom, compare};
use framewire_emulator::{Attached, Emulator, Run};
use framewire_protocol::Op;

use super::served::{PATIENCE, demo_copy, stock, wait_until};

/// Compares memory accesses to this game in a window, in lockstep.
fn compare_in_a_window(rom: &Path, console: Console) {
    let mgba = stock(rom);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let link = framewire_link::Config { address: mgba.address().to_string(), ..Default::default() };
    // 0: no memory for a history.
    let emulator = Attached::start(link, runtime.handle(), 0);
    wait_until("there is a connection", || Ok(emulator.state().run == Run::Running));
    wait_until("the game runs", || Ok(emulator.state().frame > 60));
    let lockstep = Op::Lockstep { timeout: 60_000 };
    let outcome = emulator.submit(lockstep.into(), Instant::now() + PATIENCE).wait().unwrap();
    outcome.single().unwrap();
    compare(&emulator, console, 300); // this many random accesses
    runtime.block_on(emulator.close());
}

#[test]
fn every_access_to_a_game_boy_advance_is_exact_in_a_window() {
    let folder = tempfile::tempdir().unwrap();
    compare_in_a_window(&demo_copy(&folder), Console::Gba);
}

#[test]
fn every_access_to_a_game_boy_color_is_exact_in_a_window() {
    let folder = tempfile::tempdir().unwrap();
    let rom = folder.path().join("color.gbc");
    fs::write(&rom, color_rom()).unwrap();
    // `FIRST` has the numbers of the memory banks that are selected at the start.
    compare_in_a_window(&rom, Console::Gbc(FIRST));
}
