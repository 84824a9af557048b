//! The embedded emulator on the demo game.

use std::time::{Duration, Instant};

use framewire_emulator::embedded::{Config, Embedded, Rom, Speed};
use framewire_emulator::{Emulator, EmulatorError, Run};
use framewire_protocol::{Batch, Op, Outcome, Status, Value};

const DEMO: &[u8] = include_bytes!("../../../rom/framewire-demo.gba");
/// Addresses of rom/memory-map.toml.
const PRESSES_OF_A: u32 = 0x0200_0010;
const GAME_FRAME: u32 = 0x0200_0008;
/// Working RAM that the game never touches; the memory map calls it scratch.
const UNUSED: u32 = 0x0203_0000;

fn start(speed: Speed, paused: bool) -> Embedded {
    let rom = Rom::Bytes(DEMO);
    Embedded::start(Config { rom, speed, paused, scripts: vec![], console: || Box::new(|_, _| {}) })
        .expect("the demo game starts")
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

fn batch(emulator: &Embedded, ops: Vec<Op>) -> Outcome {
    emulator.submit(Batch::new(ops), soon()).wait().expect("an outcome")
}

fn call(emulator: &Embedded, op: Op) -> Value {
    batch(emulator, vec![op]).single().expect("a value")
}

fn number(value: Value) -> i64 {
    match value {
        Value::Int(number) => number,
        other => panic!("{other:?} is no number"),
    }
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn frames_go_by_at_the_console_s_rate() {
    let emulator = start(Speed::Times(1.0), false);
    wait_for("59.7 frames/s", || (emulator.state().frames_per_second - 59.7275).abs() < 0.7);
    emulator.set_speed(Speed::Times(2.0));
    wait_for("twice as many", || (emulator.state().frames_per_second - 119.455).abs() < 3.0);
    emulator.set_speed(Speed::Unlimited);
    wait_for("many more", || emulator.state().frames_per_second > 300.0);
}

#[test]
fn a_paused_core_answers_and_stands_still() {
    let emulator = start(Speed::Times(1.0), true);
    assert_eq!(emulator.state().run, Run::Paused);
    let before = call(&emulator, Op::CurrentFrame {});
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(call(&emulator, Op::CurrentFrame {}), before);
    emulator.set_paused(false);
    wait_for("frames", || call(&emulator, Op::CurrentFrame {}) != before);
}

#[test]
fn each_tap_is_a_press_of_its_own() {
    let emulator = start(Speed::Unlimited, false);
    wait_for("the game", || number(call(&emulator, Op::Read32 { address: GAME_FRAME })) > 10);
    batch(&emulator, vec![Op::HoldKeys { keys: 1, frames: 1 }; 50]);
    wait_for("50 presses", || number(call(&emulator, Op::Read32 { address: PRESSES_OF_A })) >= 50);
    wait_for("the last one's end", || number(call(&emulator, Op::GetKeys {})) == 0);
    assert_eq!(number(call(&emulator, Op::Read32 { address: PRESSES_OF_A })), 50);
}

#[test]
fn a_state_restores_memory() {
    let emulator = start(Speed::Times(1.0), false);
    let write = |value| Op::Write32 { address: UNUSED, value };
    batch(&emulator, vec![write(0xdead_beef)]);
    for flags in [0, 31] {
        let Value::Bytes(state) = call(&emulator, Op::SaveState { flags }) else { panic!("no bytes") };
        batch(&emulator, vec![write(1)]);
        assert_eq!(call(&emulator, Op::LoadState { data: state, flags: 29 }), Value::Bool(true));
        assert_eq!(number(call(&emulator, Op::Read32 { address: UNUSED })), 0xdead_beef);
    }
    assert_eq!(call(&emulator, Op::LoadState { data: vec![1; 1000], flags: 29 }), Value::Bool(false));
}

#[test]
fn a_batch_is_done_at_one_frame_and_ends_at_its_first_error() {
    let emulator = start(Speed::Unlimited, false);
    let unknown = Op::DomainRead8 { domain: "nothing".into(), address: 0 };
    let outcome = batch(&emulator, vec![Op::CurrentFrame {}, Op::CurrentFrame {}, unknown, Op::Reset {}]);
    let [Ok(first), Ok(second), Err(error)] = outcome.results.as_slice() else {
        panic!("{:?}", outcome.results);
    };
    assert_eq!((first, second), (&Value::Int(outcome.frame.into()), &Value::Int(outcome.frame.into())));
    assert_eq!(error.status, Status::BadArgument);
    assert!(error.message.contains("wram"), "says what there is: {error}");
}

#[test]
fn a_file_that_is_no_rom_leaves_the_game_alone() {
    let emulator = start(Speed::Times(1.0), false);
    let title = call(&emulator, Op::GameTitle {});
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").to_owned();
    assert_eq!(call(&emulator, Op::LoadRom { path: path.clone() }), Value::Bool(false));
    assert_eq!(call(&emulator, Op::LoadFile { path }), Value::Bool(false));
    assert_eq!(call(&emulator, Op::LoadFile { path: "/no/such/file".into() }), Value::Bool(false));
    assert_eq!(call(&emulator, Op::GameTitle {}), title);
    let frame = call(&emulator, Op::CurrentFrame {});
    wait_for("frames", || call(&emulator, Op::CurrentFrame {}) != frame);
}

#[test]
fn a_failure_says_its_cause_once() {
    let emulator = start(Speed::Times(1.0), true);
    let path = "/no/such/folder/picture.png".to_owned();
    let outcome = batch(&emulator, vec![Op::ScreenshotFile { path }]);
    let Err(error) = &outcome.results[0] else { panic!("{outcome:?}") };
    assert!(error.message.contains("/no/such/folder"), "{error}");
    assert_eq!(error.message.matches("os error").count(), 1, "{error}");
}

#[test]
fn a_batch_past_its_deadline_is_not_done() {
    let emulator = start(Speed::Times(1.0), true);
    let late = emulator.submit(Op::Write32 { address: UNUSED, value: 7 }.into(), Instant::now()).wait();
    assert!(matches!(late, Err(EmulatorError::Deadline(_))), "{late:?}");
    assert_eq!(number(call(&emulator, Op::Read32 { address: UNUSED })), 0);
}

#[test]
fn a_missing_rom_is_an_error_that_names_it() {
    let rom = Rom::File("no-such-game.gba".into());
    let error = Embedded::start(Config {
        rom,
        speed: Speed::Times(1.0),
        paused: false,
        scripts: vec![],
        console: || Box::new(|_, _| {}),
    })
    .err()
    .expect("an error");
    assert!(error.to_string().contains("no-such-game.gba"), "{error}");
}

#[test]
fn a_repeated_key_is_answered_and_not_done_again() {
    let emulator = start(Speed::Times(1.0), true);
    let keyed = |value, key: &str| Batch {
        ops: vec![Op::Read32 { address: UNUSED }, Op::Write32 { address: UNUSED, value }],
        key: Some(key.to_owned()),
    };
    let submit = |batch| emulator.submit(batch, soon()).wait().expect("an outcome");
    let first = submit(keyed(1, "a"));
    call(&emulator, Op::Write32 { address: UNUSED, value: 7 });
    assert_eq!(submit(keyed(1, "a")), first);
    assert_eq!(number(call(&emulator, Op::Read32 { address: UNUSED })), 7);
    assert_ne!(submit(keyed(1, "b")), first);
}
