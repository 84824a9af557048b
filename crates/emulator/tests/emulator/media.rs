//! Tests of the pictures and sound of an embedded core.

use std::time::Duration;

use framewire_emulator::Emulator;
use framewire_emulator::embedded::Speed;
use framewire_libmgba::Core;
use framewire_protocol::{Op, Value};

use crate::until_good::until_good;

use super::support::{DEMO, batch, call, soon, start, wait_for, within};

#[test]
fn pictures_arrive_frame_by_frame_and_the_first_one_at_once() {
    let emulator = start(Speed::Times(1.0), true);
    call(&emulator, Op::Advance { frames: 60 });
    let mut video = emulator.video().expect("an embedded core has pictures");
    let first = soon(video.next());
    assert_eq!((first.frame, first.ticks, first.width, first.height), (60, 60, 240, 160));
    assert_eq!(first.pixels.len(), 240 * 160 * 3);
    assert!(
        within(Duration::from_millis(100), video.next()).is_none(),
        "no new picture while the game is paused"
    );
    call(&emulator, Op::Advance { frames: 3 });
    assert_eq!(soon(video.next()).frame, 63, "only the newest picture");
    call(&emulator, Op::Resume {});
    let (mut last, mut in_a_row) = (soon(video.next()).ticks, 0);
    // A busy machine can delay some pictures.
    for _ in 0..400 {
        let picture = soon(video.next());
        assert!(picture.ticks > last, "{} after {last}", picture.ticks);
        in_a_row = if picture.ticks - last < 4 { in_a_row + 1 } else { 0 };
        if in_a_row == 20 {
            return;
        }
        last = picture.ticks;
    }
    panic!("never 20 pictures in a row without a gap");
}

#[test]
fn a_picture_equals_the_screenshot_of_its_frame() {
    let emulator = start(Speed::Times(1.0), true);
    call(&emulator, Op::Advance { frames: 100 });
    let picture = soon(emulator.video().expect("pictures").next());
    let png = super::support::bytes(call(&emulator, Op::Screenshot {}));
    assert!(rgb(&png) == picture.pixels, "the picture differs");
}

/// The pixels of a PNG file.
fn rgb(png: &[u8]) -> Vec<u8> {
    framewire_media::png::decode(png).expect("a PNG").rgb
}

#[test]
fn screenshots_at_unlimited_speed_show_exactly_their_frames() {
    let emulator = start(Speed::Unlimited, false);
    let mut core = Core::from_bytes(DEMO).expect("the demo game");
    let mut different = Vec::new();
    for round in 1..=10 {
        wait_for(
            "frames",
            || matches!(call(&emulator, Op::CurrentFrame {}), Value::Int(now) if now > core.frame_counter().into()),
        );
        let stop = round % 2 == 0;
        let taken = if stop {
            batch(&emulator, vec![Op::Pause {}, Op::Screenshot {}])
        } else {
            batch(&emulator, vec![Op::Screenshot {}])
        };
        // Pause, so that the second core can catch up: it draws every frame and is slower.
        call(&emulator, Op::Pause {});
        let png = taken.results.into_iter().flatten().find_map(|value| match value {
            Value::Bytes(png) => Some(png),
            _ => None,
        });
        while core.frame_counter() < taken.frame {
            core.run_frame();
        }
        let picture = core.frame().to_rgb();
        assert!(rgb(&png.expect("a picture")) == picture, "round {round}, frame {}", taken.frame);
        different.push(picture);
        call(&emulator, Op::Resume {});
    }
    different.dedup();
    assert!(different.len() > 1, "the game always shows the same picture");
}

#[test]
fn sound_arrives_frame_by_frame() {
    let emulator = start(Speed::Times(1.0), false);
    let ratio = || {
        let mut audio = emulator.audio().expect("an embedded core has sound");
        let pieces: Vec<_> = (0..30).map(|_| soon(audio.next())).collect();
        let rate = pieces[0].rate;
        assert!(pieces.iter().all(|piece| piece.samples.len().is_multiple_of(2)));
        let pairs: usize = pieces.iter().map(|piece| piece.samples.len() / 2).sum();
        // The number of pairs of samples that this many frames should have. The actual number differs a little from
        // frame to frame.
        let frames = f64::from(pieces[29].frame - pieces[0].frame + 1);
        let wanted = f64::from(rate) / 59.7275 * frames;
        let ratio = pairs as f64 / wanted;
        assert!(ratio < 1.1, "{pairs} pairs of samples, not {wanted}");
        ratio
    };
    // On a busy machine, the sound of some frames is not read in time.
    until_good(ratio, |ratio| *ratio > 0.9);
}

#[test]
fn a_slow_receiver_of_sound_learns_how_many_frames_it_missed() {
    let emulator = start(Speed::Times(1.0), true);
    let mut audio = emulator.audio().expect("an embedded core has sound");
    call(&emulator, Op::Advance { frames: 2 });
    let mut last = soon(audio.next()).frame;
    while last < 2 {
        last = soon(audio.next()).frame;
    }
    assert_eq!(audio.take_skipped(), 0);
    call(&emulator, Op::Advance { frames: 100 });
    let next = soon(audio.next()).frame;
    assert!(next > last + 1);
    assert_eq!(audio.take_skipped(), u64::from(next - last - 1));
    assert_eq!(audio.take_skipped(), 0);
}

#[test]
fn streams_end_with_the_emulator() {
    let emulator = start(Speed::Times(1.0), true);
    let (mut video, mut audio) = (emulator.video().expect("pictures"), emulator.audio().expect("sound"));
    soon(video.next());
    drop(emulator);
    assert!(within(Duration::from_secs(5), video.next()).expect("an end").is_none());
    assert!(within(Duration::from_secs(5), audio.next()).expect("an end").is_none());
}
