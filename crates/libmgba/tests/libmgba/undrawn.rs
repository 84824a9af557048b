//! Tests of frames that are not drawn.

use framewire_libmgba::Core;

use crate::support::{COLOR, DEMO, SCROLL, program};

const BITMAP: &str = include_str!("../../programs/bitmap.hex");

/// Two cores for each of four games: two GBA games, a Game Boy game, and the same game for the Game Boy Color.
fn pairs() -> Vec<[Core; 2]> {
    let scroll = program(SCROLL, 0x8000);
    let mut color = scroll.clone();
    color[COLOR] = 0x80;
    let open = |rom: &[u8]| [(); 2].map(|()| Core::from_bytes(rom).unwrap());
    vec![open(DEMO), open(&program(BITMAP, 0x400)), open(&scroll), open(&color)]
}

/// In every seventh frame, changes which keys are held.
fn press(core: &mut Core, frame: u32) {
    if frame.is_multiple_of(7) {
        core.set_keys((frame.wrapping_mul(2_654_435_761) >> 22) as u16);
    }
}

#[test]
fn ten_thousand_frames_without_pictures_end_in_the_same_state() {
    for [mut drawn, mut undrawn] in pairs() {
        for frame in 0..10_000 {
            press(&mut drawn, frame);
            press(&mut undrawn, frame);
            drawn.run_frame();
            undrawn.set_drawing(false);
            undrawn.run_frame();
        }
        undrawn.set_drawing(true);
        let states = [&mut drawn, &mut undrawn].map(|core| crc32fast::hash(&core.save_state(0).unwrap()));
        assert_eq!(states[0], states[1], "{drawn:?}");
        drawn.run_frame();
        undrawn.run_frame();
        assert!(drawn.frame().to_rgb() == undrawn.frame().to_rgb(), "{drawn:?}");
    }
}

#[test]
fn a_picture_after_frames_without_pictures_is_right() {
    for [mut drawn, mut other] in pairs() {
        let mut before = Vec::new();
        let mut changed = 0;
        for frame in 0..1000u32 {
            press(&mut drawn, frame);
            press(&mut other, frame);
            drawn.run_frame();
            let draws = frame % 5 >= 3;
            other.set_drawing(draws);
            other.run_frame();
            if !draws {
                assert!(other.frame().to_rgb() == before || before.is_empty(), "{other:?}");
                continue;
            }
            let picture = other.frame().to_rgb();
            assert!(drawn.frame().to_rgb() == picture, "{drawn:?}");
            changed += u32::from(picture != before);
            before = picture;
        }
        assert!(changed > 100, "{drawn:?} showed {changed} different pictures");
    }
}
