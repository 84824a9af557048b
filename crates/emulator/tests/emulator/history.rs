//! Tests of going back in the history of an embedded core.

use framewire_emulator::embedded::{Config, Embedded, Rom, Speed};
use framewire_emulator::history::{Beginning, DEFAULT_HISTORY};
use framewire_emulator::{Emulator, WatchRequest};
use framewire_expression::Code;
use framewire_protocol::{Op, Status};
use tempfile::NamedTempFile;

use super::keypad_counter::keypad_counter;
use super::support::{
    DEMO, UNUSED, batch, bytes, call, config, hold_a, number, read32, rebuilt, refusal, rom_file, script,
    start,
};

/// Goes back to a frame of the current line. A line is a sequence of frames without a gap. In operations, lines have
/// numbers from 1, and 0 is the current line, together with the earlier lines that it continues.
fn back(frame: u32) -> Op {
    Op::Rewind { frame, line: 0 }
}

fn run(emulator: &Embedded, frames: u32) {
    call(emulator, Op::Advance { frames });
}

/// The parts of a state that describe the sound channels' phases and the sound that was produced. Games cannot read
/// them. libmgba computes phases only when it needs them. So two states of the same frame can differ here, and a few
/// samples of sound can differ after a state is loaded.
const SOUND: [std::ops::Range<usize>; 2] = [0x130..0x18C, 0x390..0x3D0];

/// A state of the game without the parts in [`SOUND`].
fn machine(emulator: &Embedded) -> Vec<u8> {
    let mut state = bytes(call(emulator, Op::SaveState { flags: 0 }));
    SOUND.into_iter().for_each(|part| state[part].fill(0));
    state
}

fn assert_equal(now: &[u8], then: &[u8], what: &str) {
    let differ: Vec<String> =
        (0..then.len()).filter(|at| now[*at] != then[*at]).map(|at| format!("{at:#x}")).collect();
    assert!(
        differ.is_empty(),
        "{what}: {} bytes differ: {:?}",
        differ.len(),
        &differ[..differ.len().min(40)]
    );
}

#[test]
fn going_back_restores_each_frame_exactly() {
    let emulator = start(Speed::Times(1.0), true);
    // Run some frames first: a state from before the first BIOS instruction is not restored exactly by libmgba.
    run(&emulator, 60);
    let first = emulator.state().frame;
    let mut random = fastrand::Rng::with_seed(29);
    let mut then = vec![machine(&emulator)];
    for _ in 0..200 {
        if random.u8(..) < 60 {
            call(&emulator, Op::SetKeys { keys: random.u16(..0x400) });
        }
        run(&emulator, 1);
        then.push(machine(&emulator));
    }
    for _ in 0..100 {
        let frame = random.u32(..=200);
        assert_eq!(number(call(&emulator, back(first + frame))), i64::from(first + frame));
        assert_equal(&machine(&emulator), &then[frame as usize], &format!("frame {frame}"));
    }
    let overview = emulator.history().expect("a history").overview(0);
    assert_eq!(overview.lines.len(), 1, "going back without running frames begins no line");
}

#[test]
fn after_going_back_the_same_keys_give_the_same_frames() {
    let emulator = start(Speed::Times(1.0), true);
    let first = emulator.state().frame;
    call(&emulator, Op::SetKeys { keys: 0x10 });
    run(&emulator, 100);
    let then = machine(&emulator);
    run(&emulator, 155);
    let later = machine(&emulator);
    call(&emulator, back(first + 100));
    assert_equal(&machine(&emulator), &then, "then");
    run(&emulator, 155);
    assert_equal(&machine(&emulator), &later, "later");
    let overview = emulator.history().expect("a history").overview(0);
    assert_eq!(overview.lines[1].beginning, Beginning::Rewind { line: 1, frame: first + 100 });
    assert_eq!(overview.current, Some(2));
    // A third line begins at frame 60. The later frames can still be reached on the second line.
    call(&emulator, back(first + 60));
    run(&emulator, 10);
    assert_eq!(number(call(&emulator, Op::Rewind { frame: first + 255, line: 2 })), i64::from(first + 255));
    assert_equal(&machine(&emulator), &later, "later");
}

#[test]
fn a_line_continues_if_the_emulator_goes_to_its_end() {
    let emulator = start(Speed::Times(1.0), true);
    let first = emulator.state().frame;
    run(&emulator, 75);
    let then = machine(&emulator);
    call(&emulator, back(first + 10));
    call(&emulator, back(first + 75));
    assert_equal(&machine(&emulator), &then, "then");
    run(&emulator, 75);
    let later = machine(&emulator);
    call(&emulator, back(first + 20));
    call(&emulator, back(first + 150));
    assert_equal(&machine(&emulator), &later, "later");
    assert_eq!(emulator.history().expect("a history").overview(0).lines.len(), 1);
}

#[test]
fn a_frame_that_cannot_be_reproduced_gives_the_last_one_before_it() {
    let emulator = start(Speed::Times(1.0), true);
    let first = emulator.state().frame;
    run(&emulator, 10);
    call(&emulator, Op::Write32 { address: UNUSED, value: 7 });
    run(&emulator, 100);
    // After a write, states are closer together, and the next one contains the write.
    for (asked, reached, value) in [(9, 9, 0), (10, 10, 0), (14, 14, 7), (29, 29, 7), (100, 100, 7)] {
        assert_eq!(number(call(&emulator, back(first + asked))), i64::from(first + reached));
        assert_eq!(read32(&emulator, UNUSED), value, "frame {asked}");
    }
    call(&emulator, back(first + 110));
    call(&emulator, Op::Write32 { address: UNUSED, value: 8 });
    run(&emulator, 1);
    call(&emulator, Op::Write32 { address: UNUSED, value: 9 });
    run(&emulator, 40);
    assert_eq!(number(call(&emulator, back(first + 113))), i64::from(first + 111));
    assert_eq!(read32(&emulator, UNUSED), 8);
}

#[test]
fn going_back_reproduces_frozen_values() {
    let emulator = start(Speed::Times(1.0), true);
    let first = emulator.state().frame;
    let address = Code::constant(UNUSED.into()).encode();
    call(&emulator, Op::Freeze { name: "x".to_owned(), kind: "u8".to_owned(), address, data: vec![5] });
    run(&emulator, 100);
    let then = machine(&emulator);
    run(&emulator, 50);
    call(&emulator, back(first + 100));
    assert_equal(&machine(&emulator), &then, "then");
    // If the value is no longer frozen, the frames between two states cannot be reproduced.
    call(&emulator, Op::Unfreeze { name: "x".to_owned() });
    assert_eq!(number(call(&emulator, back(first + 100))), i64::from(first + 90));
}

#[test]
fn the_emulator_can_go_back_to_a_frame_before_a_reset() {
    let emulator = start(Speed::Times(1.0), true);
    let first = emulator.state().frame;
    run(&emulator, 77);
    let then = machine(&emulator);
    call(&emulator, Op::Reset {});
    run(&emulator, 5);
    let overview = emulator.history().expect("a history").overview(0);
    assert_eq!(overview.lines[1].beginning, Beginning::Reset);
    call(&emulator, Op::Rewind { frame: first + 77, line: 1 });
    assert_equal(&machine(&emulator), &then, "then");
    let refused = refusal(&emulator, Op::Rewind { frame: 1, line: 9 });
    assert_eq!(
        (refused.status, refused.message.as_str()),
        (Status::NotFound, "line 9 is not kept; the kept lines have numbers from 1 to 2")
    );
    let refused = refusal(&emulator, Op::Rewind { frame: 900, line: 1 });
    let expected = format!("frame 900 of line 1 is not kept; use a frame from {first} to {}", first + 77);
    assert_eq!((refused.status, refused.message), (Status::NotFound, expected));
}

#[test]
fn going_back_is_refused_during_a_timeline_and_a_recording() {
    let emulator = start(Speed::Times(1.0), true);
    run(&emulator, 10);
    let id = number(call(&emulator, hold_a(9)));
    let refused = refusal(&emulator, back(5));
    assert_eq!(refused.status, Status::Busy);
    assert!(refused.message.starts_with(&format!("timeline {id} plays keys; cancel it")), "{refused}");
    call(&emulator, Op::CancelKeys { id: 0 });
    let watch = emulator.watch(WatchRequest { keys: true, ..WatchRequest::default() });
    call(&emulator, watch.op());
    let refused = refusal(&emulator, back(5));
    assert_eq!(refused.status, Status::Busy);
    assert!(refused.message.contains("being recorded or replayed"), "{refused}");
    drop(watch);
    call(&emulator, back(5));
}

#[test]
fn going_back_keeps_the_held_keys_and_restores_the_picture() {
    let emulator = start(Speed::Times(1.0), true);
    let first = emulator.state().frame;
    run(&emulator, 45);
    let picture = bytes(call(&emulator, Op::Screenshot {}));
    call(&emulator, Op::SetKeys { keys: 0x10 });
    run(&emulator, 100);
    call(&emulator, Op::SetKeys { keys: 1 });
    call(&emulator, back(first + 45));
    assert_eq!(number(call(&emulator, Op::GetKeys {})), 1);
    assert!(bytes(call(&emulator, Op::Screenshot {})) == picture);
}

#[test]
fn ten_minutes_fit_into_the_default_memory_and_the_oldest_states_are_dropped_first() {
    let emulator = start(Speed::Times(1.0), true);
    for _ in 0..10 {
        batch(
            &emulator,
            vec![Op::SetKeys { keys: 0x10 }, Op::Advance { frames: 3600 }, Op::SetKeys { keys: 1 }],
        );
    }
    let history = emulator.history().expect("a history");
    let overview = history.overview(0);
    let line = &overview.lines[0];
    assert!(line.states.len() > 1190 && overview.used < DEFAULT_HISTORY, "{} bytes", overview.used);
    let pictured = line.states.iter().rfind(|state| state.pictured).expect("pictures").frame;
    let picture = history.thumbnail(1, pictured).expect("a picture");
    assert_eq!((picture.width, picture.height, picture.to_rgb().len()), (80, 53, 80 * 53 * 3));

    let small = Embedded::start(Config { history: 400_000, ..config(Speed::Times(1.0), true, vec![]) });
    let small = small.expect("the demo game starts");
    let first = small.state().frame;
    run(&small, 3600);
    let overview = small.history().expect("a history").overview(0);
    assert!(overview.used <= 400_000 && overview.lines[0].states[0].frame > first, "{overview:?}");
    let refused = refusal(&small, back(first + 1));
    assert_eq!(refused.status, Status::NotFound);
}

#[test]
fn without_memory_there_is_no_history() {
    let emulator = Embedded::start(Config { history: 0, ..config(Speed::Times(1.0), true, vec![]) });
    let emulator = emulator.expect("the demo game starts");
    run(&emulator, 100);
    assert!(emulator.history().expect("a history").overview(0).lines.is_empty());
    assert_eq!(refusal(&emulator, back(5)).status, Status::Unsupported);
}

#[test]
fn with_scripts_no_frame_runs_after_going_back() {
    let script = script("callbacks:add('frame', function() end)");
    let scripts = vec![script.path().to_owned()];
    let emulator = Embedded::start(config(Speed::Times(1.0), true, scripts)).unwrap();
    run(&emulator, 300);
    let frame = number(call(&emulator, back(200))) as u32;
    for op in [Op::Write8 { address: UNUSED, value: 1 }, Op::SaveState { flags: 0 }] {
        call(&emulator, op);
        assert_eq!(emulator.state().frame, frame);
    }
}

#[test]
fn a_write_at_the_end_of_a_line_is_there_again_when_the_emulator_returns() {
    let emulator = start(Speed::Times(1.0), true);
    let first = emulator.state().frame;
    run(&emulator, 75);
    for value in [7, 8] {
        call(&emulator, Op::Write32 { address: UNUSED, value });
        call(&emulator, back(first + 10));
        assert_eq!(number(call(&emulator, back(first + 75))), i64::from(first + 75));
        assert_eq!(read32(&emulator, UNUSED), i64::from(value));
    }
    run(&emulator, 10);
    call(&emulator, back(first + 80));
    assert_eq!(read32(&emulator, UNUSED), 8);
}

/// Starts the demo game from a file that can be loaded again. The file is removed when its handle is dropped.
fn start_from_file() -> (NamedTempFile, String, Embedded) {
    let (file, path) = rom_file(DEMO);
    let rom = Rom::File(path.clone().into());
    let emulator =
        Embedded::start(Config { rom, ..config(Speed::Times(1.0), true, vec![]) }).expect("it starts");
    (file, path, emulator)
}

#[test]
fn frames_with_a_cheat_are_not_reproduced_after_the_game_was_loaded_again() {
    let (_file, path, emulator) = start_from_file();
    let first = emulator.state().frame;
    let codes = format!("{UNUSED:08X}:05");
    call(&emulator, Op::AddCheat { name: "x".to_owned(), kind: "raw".to_owned(), codes, enabled: true });
    run(&emulator, 75);
    call(&emulator, Op::LoadRom { path });
    // libmgba has removed the cheat.
    let reached = number(call(&emulator, Op::Rewind { frame: first + 50, line: 1 }));
    assert_eq!(reached, i64::from(first + 30));
}

#[test]
fn frames_before_a_write_to_the_rom_are_not_reproduced_with_it() {
    let emulator = start(Speed::Times(1.0), true);
    let first = emulator.state().frame;
    run(&emulator, 75);
    let address = DEMO.len() as u32 - 1;
    call(&emulator, Op::DomainWrite8 { domain: "cart0".to_owned(), address, value: 1 });
    assert_eq!(number(call(&emulator, back(first + 40))), i64::from(first + 30));
}

/// An emulator that has run 75 frames, and has then loaded `other` or, without it, the same game again. Also returns the
/// frame before these 75.
fn load_after_frames(other: Option<&[u8]>) -> (Embedded, u32) {
    let (_file, path, emulator) = start_from_file();
    let first = emulator.state().frame;
    run(&emulator, 75);
    let other = other.map(rom_file);
    let path = other.as_ref().map_or(path, |(_, path)| path.clone());
    call(&emulator, Op::LoadRom { path });
    (emulator, first)
}

#[test]
fn frames_are_reproduced_after_the_same_game_was_loaded_again() {
    let (emulator, first) = load_after_frames(None);
    let reached = number(call(&emulator, Op::Rewind { frame: first + 50, line: 1 }));
    assert_eq!(reached, i64::from(first + 50));
}

#[test]
fn the_last_frames_before_the_same_game_was_loaded_again_are_kept() {
    let (emulator, first) = load_after_frames(None);
    let reached = number(call(&emulator, Op::Rewind { frame: first + 75, line: 1 }));
    assert_eq!(reached, i64::from(first + 75));
}

#[test]
fn the_emulator_cannot_go_back_into_another_game() {
    let (emulator, first) = load_after_frames(Some(&rebuilt()));
    let error = refusal(&emulator, Op::Rewind { frame: first + 30, line: 1 });
    assert_eq!(error.status, Status::NotFound, "{error}");
    assert!(emulator.history().expect("a history").overview(0).lines.is_empty());
}

#[test]
fn single_steps_over_the_end_of_a_frame_lose_no_frame() {
    let emulator = start(Speed::Times(1.0), true);
    let first = emulator.state().frame;
    run(&emulator, 40);
    let then = machine(&emulator);
    while number(call(&emulator, Op::CurrentFrame {})) == i64::from(first + 40) {
        batch(&emulator, vec![Op::Step {}; 50]);
    }
    assert_eq!(number(call(&emulator, back(first + 40))), i64::from(first + 40));
    assert_equal(&machine(&emulator), &then, "then");
    assert_eq!(number(call(&emulator, back(first + 35))), i64::from(first + 35));
}

#[test]
fn going_back_raises_no_further_keypad_interrupt() {
    let (_file, path) = rom_file(&keypad_counter(DEMO));
    let config = Config { rom: Rom::File(path.into()), ..config(Speed::Times(1.0), true, vec![]) };
    let emulator = Embedded::start(config).expect("the game starts");
    let first = emulator.state().frame;
    run(&emulator, 20);
    call(&emulator, Op::SetKeys { keys: 1 });
    let mut counts = Vec::new();
    for _ in 20..100 {
        counts.push(read32(&emulator, 0x0200_0000));
        run(&emulator, 1);
    }
    assert!(counts[70] > counts[10] + 50, "{counts:?}");
    call(&emulator, Op::SetKeys { keys: 0 });
    for frame in [85, 50, 70, 22] {
        assert_eq!(number(call(&emulator, back(first + frame))), i64::from(first + frame));
        assert_eq!(read32(&emulator, 0x0200_0000), counts[frame as usize - 20], "frame {frame}");
    }
}

#[test]
fn a_new_line_begins_after_the_largest_frame_counter() {
    let emulator = start(Speed::Times(1.0), true);
    run(&emulator, 5);
    let mut data = bytes(call(&emulator, Op::SaveState { flags: 0 }));
    // The frame counter in the state.
    data[0x1FC..0x200].copy_from_slice(&(u32::MAX - 2).to_le_bytes());
    call(&emulator, Op::LoadState { data, flags: 0 });
    run(&emulator, 40);
    assert_eq!(number(call(&emulator, Op::CurrentFrame {})), 37);
    assert_eq!(number(call(&emulator, back(20))), 20);
    assert_eq!(emulator.history().expect("a history").overview(0).lines.len(), 3);
}
