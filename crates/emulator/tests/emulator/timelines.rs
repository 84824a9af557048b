//! Tests that the game sees the keys of a timeline in exactly the planned frames.

use std::collections::HashMap;

use framewire_emulator::embedded::Speed;
use framewire_emulator::{Emulator, EventKind};
use framewire_protocol::{KeyStep, Op, Status, Value, timeline};

use super::support::{
    GAME_FRAME, PRESSES_OF_A, batch, bytes, call, number, read32, refusal, soon, start, wait_for,
};

/// The address of the game's log of the keys in its last frames.
const KEY_LOG: u32 = 0x0200_1000;
/// The number of frames in the log.
const LOGGED: u32 = 2048;

/// `count` taps of A, sometimes together with other keys, with random gaps.
pub fn taps(count: usize, seed: u64) -> Vec<KeyStep> {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut steps, mut offset) = (Vec::new(), 0);
    for _ in 0..count {
        // All other keys except Start and Select.
        let others = if random.u8(0..4) == 0 { random.u16(..) & 0x3F2 } else { 0 };
        steps.push(KeyStep { offset, keys: 1 | others });
        offset += random.u32(1..3);
        steps.push(KeyStep { offset, keys: 0 });
        offset += random.u32(1..4);
    }
    steps
}

/// Plays steps. Returns the game's frame number for offset 0.
pub fn play(emulator: &impl Emulator, steps: &[KeyStep]) -> u32 {
    let steps = timeline::encode(steps);
    let outcome = batch(emulator, vec![Op::PlayKeys { steps }, Op::Read32 { address: GAME_FRAME }]);
    assert!(matches!(outcome.results[0], Ok(Value::Int(1..))), "{outcome:?}");
    number(outcome.results[1].clone().expect("a frame")) as u32 + 1
}

/// Copies the game's log of keys to `seen`, by the game's frame numbers. Returns the game's current frame.
pub fn log(emulator: &impl Emulator, seen: &mut HashMap<u32, u16>) -> u32 {
    let log = Op::ReadRange { address: KEY_LOG, length: 2 * LOGGED };
    let outcome = batch(emulator, vec![Op::Read32 { address: GAME_FRAME }, log]);
    let mut results = outcome.results.into_iter().map(|result| result.expect("a value"));
    let frame = number(results.next().expect("two")) as u32;
    let log = bytes(results.next().expect("two"));
    for number in frame.saturating_sub(LOGGED - 1)..=frame {
        let at = (number % LOGGED) as usize * 2;
        seen.insert(number, u16::from_le_bytes([log[at], log[at + 1]]));
    }
    frame
}

/// Checks that the game saw the steps in the frames from `first` on.
pub fn assert_as_played(steps: &[KeyStep], first: u32, seen: &HashMap<u32, u16>) {
    let end = steps.last().expect("steps").offset;
    let mut next = steps.iter().peekable();
    let mut keys = 0;
    for offset in 0..=end {
        if let Some(step) = next.next_if(|step| step.offset == offset) {
            keys = step.keys;
        }
        assert_eq!(seen.get(&(first + offset)), Some(&keys), "frame {offset} of the timeline");
    }
}

#[test]
fn the_game_sees_a_thousand_taps_in_exactly_their_frames() {
    let emulator = start(Speed::Times(1.0), true);
    call(&emulator, Op::Advance { frames: 60 });
    let (steps, mut seen) = (taps(1000, 1), HashMap::new());
    let before = read32(&emulator, PRESSES_OF_A);
    let first = play(&emulator, &steps);
    while log(&emulator, &mut seen) < first + steps.last().expect("steps").offset {
        call(&emulator, Op::Advance { frames: 500 });
    }
    assert_as_played(&steps, first, &seen);
    assert_eq!(read32(&emulator, PRESSES_OF_A) - before, 1000);
}

#[test]
fn the_game_sees_a_thousand_taps_in_their_frames_even_under_load() {
    let emulator = start(Speed::Times(8.0), false);
    wait_for("the game", || read32(&emulator, GAME_FRAME) > 10);
    let (steps, mut seen) = (taps(1000, 2), HashMap::new());
    let first = play(&emulator, &steps);
    while log(&emulator, &mut seen) < first + steps.last().expect("steps").offset {
        batch(&emulator, vec![Op::SaveState { flags: 31 }]);
    }
    assert_as_played(&steps, first, &seen);
}

/// Checks how and in which frame a timeline ended.
pub fn assert_how_it_ended(emulator: &impl Emulator, id: u32, how: &str, frame: u32) {
    let words = [how.to_owned(), frame.to_string()].map(Value::Text);
    assert_eq!(call(emulator, Op::Timeline { id }), Value::List(words.to_vec()));
    let unknown = refusal(emulator, Op::Timeline { id: 4_000_000 });
    assert_eq!(unknown.status, Status::BadArgument);
    assert!(unknown.message.contains("timeline 4000000 is not known"), "{unknown}");
}

#[test]
fn the_end_of_a_timeline_is_reported_and_waiting_holds_follow_it() {
    let emulator = start(Speed::Times(1.0), true);
    let mut events = emulator.events();
    let steps = |keys| timeline::encode(&[KeyStep { offset: 1, keys }, KeyStep { offset: 3, keys: 0 }]);
    assert_eq!(call(&emulator, Op::PlayKeys { steps: steps(1) }), Value::Int(1));
    assert_eq!(call(&emulator, Op::PlayKeys { steps: steps(2) }), Value::Int(2));
    let taken = refusal(&emulator, Op::PlayKeys { steps: steps(3) });
    assert_eq!(taken.status, Status::BadArgument);
    assert!(taken.message.contains("timeline 1 plays A; cancel it first"), "{taken}");
    // As in mGBA-http, a hold takes two frames more than its number says.
    call(&emulator, Op::HoldKeys { keys: 1, frames: 1 });
    let keys: Vec<i64> = (0..8)
        .map(|_| {
            let outcome = batch(&emulator, vec![Op::GetKeys {}, Op::Advance { frames: 1 }]);
            number(outcome.results[0].clone().expect("keys"))
        })
        .collect();
    assert_eq!(keys, [0, 3, 3, 0, 1, 1, 1, 0], "the hold is a separate press after the timeline");
    let over = |id, cancelled| EventKind::TimelineOver { id, cancelled };
    for wanted in [over(1, false), over(2, false)] {
        let event = soon(async { events.recv().await.ok() });
        assert_eq!((event.frame, event.kind), (3, wanted));
    }
    assert_how_it_ended(&emulator, 1, "over", 3);
    assert_eq!(call(&emulator, Op::PlayKeys { steps: steps(1) }), Value::Int(3));
    assert_eq!(call(&emulator, Op::Timeline { id: 3 }), Value::List(vec![Value::Text("playing".into())]));
    call(&emulator, Op::Advance { frames: 2 });
    assert_eq!(call(&emulator, Op::CancelKeys { id: 3 }), Value::Bool(true));
    assert_eq!(call(&emulator, Op::GetKeys {}), Value::Int(0));
    assert_eq!(call(&emulator, Op::CancelKeys { id: 3 }), Value::Bool(false));
    let cancelled = soon(async { events.recv().await.ok() });
    assert_eq!(cancelled.kind, over(3, true));
    assert_how_it_ended(&emulator, 3, "cancelled", cancelled.frame);
}

#[test]
fn an_invalid_timeline_is_refused() {
    let emulator = start(Speed::Times(1.0), true);
    for (steps, says) in [(vec![0; 5], "a step has 6"), (vec![0, 0, 0, 0, 1, 0], "release all keys")] {
        let error = refusal(&emulator, Op::PlayKeys { steps });
        assert_eq!(error.status, Status::BadArgument);
        assert!(error.message.contains(says), "{error}");
    }
}
