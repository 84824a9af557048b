//! What is known of an embedded core without asking it.

use std::time::Duration;

use framewire_emulator::embedded::{Embedded, Speed};
use framewire_emulator::{Emulator, Run};
use framewire_protocol::Op;

use super::support::{DEMO, batch, bytes, call, config, script, start, wait_for};

#[test]
fn a_paused_core_is_not_taken_for_a_stuck_one() {
    let emulator = start(Speed::Times(1.0), true);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(emulator.state().run, Run::Paused);
}

#[test]
fn what_a_batch_changed_is_known_at_once() {
    let emulator = start(Speed::Times(1.0), true);
    let frame = || emulator.state().frame;
    assert_eq!(frame(), 0);
    emulator.set_paused(false);
    wait_for("frames", || frame() > 5);
    emulator.set_paused(true);
    wait_for("the pause", || emulator.state().run == Run::Paused);
    let paused = frame();
    let state = bytes(call(&emulator, Op::SaveState { flags: 0 }));
    batch(&emulator, vec![Op::Reset {}]);
    assert_eq!(frame(), 0);
    call(&emulator, Op::LoadState { data: state, flags: 29 });
    assert_eq!(frame(), paused);
    batch(&emulator, vec![Op::Step {}; 300_000]);
    assert!(frame() > paused, "300,000 instructions are more than a frame");
}

#[test]
fn a_game_that_a_script_puts_in_is_known() {
    let mut rom = DEMO.to_vec();
    rom[0xA0..0xAC].copy_from_slice(b"ANOTHER\0\0\0\0\0");
    let file = tempfile::Builder::new().suffix(".gba").tempfile().expect("a file");
    std::fs::write(file.path(), rom).expect("written");
    let source = format!(
        "local done = false
         callbacks:add('frame', function()
           if not done then done = true; assert(emu:loadFile({:?})) end
         end)",
        file.path()
    );
    let script = script(&source);
    let emulator = Embedded::start(config(Speed::Times(1.0), true, vec![script.path().to_owned()]))
        .expect("the script loads");
    assert_eq!(emulator.state().title.as_deref(), Some("FRAMEWIRE"));
    emulator.set_paused(false);
    wait_for("the other game", || emulator.state().title.as_deref() == Some("ANOTHER"));
}
