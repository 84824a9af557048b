//! The embedded emulator on the demo game.

use std::time::{Duration, Instant};

use framewire_emulator::embedded::{Config, Embedded, Rom, Speed};
use framewire_emulator::{Emulator, EmulatorError, Run};
use framewire_protocol::{Batch, Op, Status, Value};

use super::support::{
    UNUSED, assert_each_tap_is_a_press, assert_states_come_back, batch, call, config, read32, refusal, start,
    submit, wait_for,
};

#[test]
fn frames_go_by_at_the_console_s_rate() {
    let emulator = start(Speed::Times(1.0), false);
    wait_for("59.7 frames/s", || (emulator.state().frames_per_second - 59.7275).abs() < 0.7);
    emulator.set_speed(Speed::Times(2.0)).expect("a speed");
    wait_for("twice as many", || (emulator.state().frames_per_second - 119.455).abs() < 3.0);
    emulator.set_speed(Speed::Unlimited).expect("a speed");
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
    assert_each_tap_is_a_press(&start(Speed::Unlimited, false));
}

#[test]
fn a_state_comes_back_byte_for_byte() {
    let emulator = start(Speed::Times(1.0), false);
    assert_states_come_back(&emulator);
    let error = refusal(&emulator, Op::LoadState { data: vec![1; 1000], flags: 29 });
    assert!(error.message.contains("not a savestate"), "{error}");
}

#[test]
fn a_batch_is_done_at_one_frame_and_ends_at_its_first_error() {
    let emulator = start(Speed::Unlimited, false);
    let unknown = Op::DomainSize { domain: "nothing".into() };
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
    for op in [Op::LoadRom { path: path.clone() }, Op::LoadFile { path }] {
        let error = refusal(&emulator, op);
        assert!(error.message.contains("is not a Game Boy Advance"), "{error}");
    }
    let error = refusal(&emulator, Op::LoadFile { path: "/no/such/file".into() });
    assert!(error.message.contains("/no/such/file"), "{error}");
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
    assert_eq!(read32(&emulator, UNUSED), 0);
}

#[test]
fn a_missing_rom_is_an_error_that_names_it() {
    let rom = Rom::File("no-such-game.gba".into());
    let error =
        Embedded::start(Config { rom, ..config(Speed::Times(1.0), false, vec![]) }).err().expect("an error");
    assert!(error.to_string().contains("no-such-game.gba"), "{error}");
}

#[test]
fn what_is_no_speed_is_refused() {
    let emulator = start(Speed::Times(1.0), true);
    for times in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300] {
        let error = Embedded::start(config(Speed::Times(times), true, vec![])).err().expect("an error");
        assert!(error.to_string().contains("0.01 to 1000"), "{error}");
        assert!(emulator.set_speed(Speed::Times(times)).is_err());
    }
    emulator.set_paused(false);
    for times in [0.01, 1000.0] {
        emulator.set_speed(Speed::Times(times)).expect("a speed");
        call(&emulator, Op::CurrentFrame {});
    }
}

#[test]
fn holding_no_key_is_refused() {
    let outcome = batch(&start(Speed::Times(1.0), true), vec![Op::HoldKeys { keys: 0, frames: 1 }]);
    let Err(error) = &outcome.results[0] else { panic!("{outcome:?}") };
    assert_eq!((error.status, error.message.as_str()), (Status::BadArgument, "`keys` names no key"));
}

#[test]
fn a_repeated_key_is_answered_and_not_done_again() {
    let emulator = start(Speed::Times(1.0), true);
    let keyed = |value, key: &str| Batch {
        key: Some(key.to_owned()),
        ..Batch::new(vec![Op::Read32 { address: UNUSED }, Op::Write32 { address: UNUSED, value }])
    };
    let done = |batch| submit(&emulator, batch).expect("an outcome");
    let first = done(keyed(1, "a"));
    call(&emulator, Op::Write32 { address: UNUSED, value: 7 });
    assert_eq!(done(keyed(1, "a")), first);
    assert_eq!(read32(&emulator, UNUSED), 7);
    assert_ne!(done(keyed(1, "b")), first);
}
