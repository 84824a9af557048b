//! The same keys at the same frames give the same game.

use framewire_libmgba::Core;

use super::support::DEMO;

/// The picture and the state after 1,000 frames with keys that `seed` chooses.
fn play(seed: u32) -> (Vec<u8>, Vec<u8>) {
    let mut core = Core::from_bytes(DEMO).expect("the demo game");
    core.reset();
    let mut state = seed;
    for frame in 0..1000 {
        if frame % 5 == 0 {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            // All but Start, which pauses the game.
            core.set_keys((state >> 16) as u16 & 0x3F7);
        }
        core.run_frame();
    }
    let picture = core.screenshot_png().expect("a picture");
    (picture, core.save_state(0).expect("a state"))
}

#[test]
fn a_thousand_frames_are_the_same_twice() {
    let first = play(1);
    let again = play(1);
    assert!(first.0 == again.0, "another picture came of the same keys");
    assert!(first.1 == again.1, "another state came of the same keys");
    assert!(first.1 != play(2).1, "the keys have no effect");
}
