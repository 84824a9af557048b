//! Tests of going back in the history of an attached emulator. The real script runs in the Lua of an embedded core.

use framewire_emulator::history::{Beginning, DEFAULT_HISTORY, Overview};
use framewire_emulator::{Attached, Emulator, WatchRequest};
use framewire_protocol::{Op, Status, Value};

use super::attached::{attach, attached, free_port, host, ready, runtime};
use super::support::{GAME_FRAME, batch, bytes, call, hold_a, number, read32, refusal, wait_for};
use super::watches::begin;

/// Goes back to a frame of the current line. A line is a sequence of frames without a gap. In operations, lines have
/// numbers from 1, and 0 is the current line; [`states`] and the list in an overview count them from 0.
fn back(frame: u32) -> Op {
    Op::Rewind { frame, line: 0 }
}

fn overview(emulator: &Attached) -> Overview {
    emulator.history().expect("a history").overview(0)
}

fn states(emulator: &Attached, line: usize) -> Vec<u32> {
    let lines = overview(emulator).lines;
    lines.get(line).map_or(Vec::new(), |line| line.states.iter().map(|state| state.frame).collect())
}

fn frame(emulator: &Attached) -> u32 {
    number(call(emulator, Op::CurrentFrame {})) as u32
}

/// Stops the game, so that frames run only with `advance`.
fn stop(emulator: &Attached) {
    call(emulator, Op::Lockstep { timeout: 60_000 });
}

#[test]
fn an_attached_emulator_goes_back_to_its_kept_states() {
    let (_runtime, _host, emulator) = attached();
    wait_for("states", || states(&emulator, 0).len() >= 4);
    stop(&emulator);
    // `since` is the difference between the game's own frame counter and the emulator's. It is the same in all frames.
    let (end, since) = (frame(&emulator), read32(&emulator, GAME_FRAME) - i64::from(frame(&emulator)));
    let kept = states(&emulator, 0);
    for state in [kept[1], kept[3], kept[2]] {
        assert_eq!(number(call(&emulator, back(state))), i64::from(state));
        assert_eq!(frame(&emulator), state);
        // The game's own frame counter has gone back, too.
        assert_eq!(read32(&emulator, GAME_FRAME) - i64::from(state), since);
    }
    // The keys between two states are not known, so the emulator goes back to the earlier of the two.
    assert_eq!(number(call(&emulator, back(kept[2] - 1))), i64::from(kept[1]));
    // The first line still ends with the frame that the emulator had reached before it went back.
    let seen = overview(&emulator);
    assert_eq!(seen.lines.len(), 1);
    assert_eq!(states(&emulator, 0).last(), Some(&end));
    assert!(seen.lines[0].states.iter().all(|state| state.pictured), "{seen:?}");
    call(&emulator, Op::Advance { frames: 10 });
    wait_for("another line", || states(&emulator, 1) == [kept[1] + 10]);
    let beginning = overview(&emulator).lines[1].beginning;
    assert_eq!(beginning, Beginning::Rewind { line: 1, frame: kept[1] });
    // The later frames of the first line are still kept.
    assert_eq!(number(call(&emulator, Op::Rewind { frame: end, line: 1 })), i64::from(end));
    assert_eq!(read32(&emulator, GAME_FRAME) - i64::from(end), since);
}

#[test]
fn going_back_restores_the_memory_and_the_picture_of_a_frame() {
    let (_runtime, _host, emulator) = attached();
    wait_for("states", || states(&emulator, 0).len() >= 3);
    stop(&emulator);
    let frame = states(&emulator, 0)[1];
    call(&emulator, back(frame));
    let memory = || bytes(call(&emulator, Op::ReadRange { address: 0x0300_0000, length: 0x8000 }));
    let (state, picture) = (memory(), bytes(call(&emulator, Op::Screenshot {})));
    call(&emulator, Op::Advance { frames: 20 });
    assert_ne!(memory(), state);
    call(&emulator, back(frame));
    assert!(memory() == state, "the memory differs");
    assert!(bytes(call(&emulator, Op::Screenshot {})) == picture, "the picture differs");
}

#[test]
fn a_reset_and_a_loaded_state_begin_new_lines() {
    let (_runtime, _host, emulator) = attached();
    wait_for("states", || states(&emulator, 0).len() >= 2);
    let state = bytes(call(&emulator, Op::SaveState { flags: 0 }));
    call(&emulator, Op::Reset {});
    wait_for("the line after the reset", || states(&emulator, 1).len() >= 2);
    call(&emulator, Op::LoadState { data: state, flags: 0 });
    wait_for("the line after the state", || {
        overview(&emulator).lines.iter().any(|line| line.beginning == Beginning::State)
    });
    let lines = overview(&emulator).lines;
    assert_eq!((lines[0].beginning, lines[1].beginning), (Beginning::Game, Beginning::Reset));
}

#[test]
fn a_state_that_could_not_be_loaded_begins_no_line() {
    let (_runtime, _host, emulator) = attached();
    wait_for("states", || states(&emulator, 0).len() >= 2);
    let load = Op::LoadStateSlot { slot: 7, flags: 29 };
    assert_eq!(call(&emulator, load), Value::Bool(false));
    let kept = states(&emulator, 0).len();
    wait_for("more states", || states(&emulator, 0).len() > kept + 1 || overview(&emulator).lines.len() > 1);
    assert_eq!(overview(&emulator).lines.len(), 1);
}

#[test]
fn going_back_is_refused_during_a_recording_and_a_timeline() {
    let (_runtime, _host, emulator) = attached();
    wait_for("states", || !states(&emulator, 0).is_empty());
    let first = states(&emulator, 0)[0];
    let (watch, _) = begin(&emulator, WatchRequest { keys: true, ..WatchRequest::default() });
    let error = refusal(&emulator, back(first));
    assert_eq!(error.status, Status::Busy, "{error}");
    assert!(error.message.contains("recorded or replayed"), "{error}");
    drop(watch);
    let id = number(call(&emulator, hold_a(9000))) as u32;
    let error = refusal(&emulator, back(first));
    assert!(error.message.contains(&format!("timeline {id} plays keys; cancel it")), "{error}");
    call(&emulator, Op::CancelKeys { id });
    wait_for("the end of the timeline", || {
        let outcome = batch(&emulator, vec![back(first)]);
        outcome.results[0].is_ok()
    });
    let error = refusal(&emulator, back(1_000_000));
    assert_eq!(error.status, Status::NotFound, "{error}");
    assert!(error.message.contains("use a frame from"), "{error}");
}

#[test]
fn timelines_that_ended_before_their_reply_do_not_prevent_going_back() {
    let (_runtime, _host, emulator) = attached();
    wait_for("states", || !states(&emulator, 0).is_empty());
    stop(&emulator);
    let first = states(&emulator, 0)[0];
    let outcome = batch(&emulator, vec![hold_a(3), Op::Advance { frames: 10 }]);
    assert!(outcome.results.iter().all(Result::is_ok), "{outcome:?}");
    assert_eq!(number(call(&emulator, back(first))), i64::from(first));
}

#[test]
fn going_back_works_right_after_a_timeline_was_cancelled_in_lockstep() {
    let (_runtime, _host, emulator) = attached();
    wait_for("states", || !states(&emulator, 0).is_empty());
    stop(&emulator);
    let first = states(&emulator, 0)[0];
    let id = number(call(&emulator, hold_a(9000))) as u32;
    assert_eq!(refusal(&emulator, back(first)).status, Status::Busy);
    call(&emulator, Op::CancelKeys { id });
    assert_eq!(number(call(&emulator, back(first))), i64::from(first));
}

#[test]
fn waiting_in_lockstep_after_going_back_begins_no_line() {
    let (_runtime, _host, emulator) = attached();
    wait_for("states", || states(&emulator, 0).len() >= 3);
    stop(&emulator);
    let kept = states(&emulator, 0);
    call(&emulator, back(kept[1]));
    // A state is fetched once a second.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(overview(&emulator).lines.len(), 1);
    call(&emulator, back(kept[0]));
    call(&emulator, Op::Advance { frames: 10 });
    wait_for("another line", || states(&emulator, 1) == [kept[0] + 10]);
}

#[test]
fn an_attached_emulator_keeps_only_as_many_states_as_its_memory_allows() {
    let (runtime, port) = (runtime(), free_port());
    let _host = host(port);
    let config = framewire_link::Config { address: format!("127.0.0.1:{port}"), ..Default::default() };
    let emulator = Attached::start(config, runtime.handle(), 0);
    ready(&emulator);
    let error = refusal(&emulator, back(1));
    assert_eq!(error.status, Status::Unsupported, "{error}");
    assert!(error.message.contains("--history 0"), "{error}");
    // An emulator with memory for only a few states drops the oldest.
    let small = Attached::start(
        framewire_link::Config { address: format!("127.0.0.1:{port}"), ..Default::default() },
        runtime.handle(),
        80 << 10,
    );
    ready(&small);
    wait_for("the first states to be dropped", || {
        let overview = overview(&small);
        overview.used <= 80 << 10 && states(&small, 0).first().is_some_and(|first| *first > 200)
    });
    assert!(
        attach(port, &runtime).history().is_some_and(|history| history.overview(0).budget == DEFAULT_HISTORY)
    );
}
