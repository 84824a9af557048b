//! Helpers: start the demo game, and call emulators of both kinds.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use framewire_emulator::embedded::{Config, Embedded, Rom, Speed};
use framewire_emulator::history::DEFAULT_HISTORY;
use framewire_emulator::{Emulator, EmulatorError};
use framewire_protocol::run::{RunStep, RunSteps};
use framewire_protocol::wire::Wire;
use framewire_protocol::{Batch, KeyStep, Op, OpError, Outcome, Value, timeline};
use tempfile::NamedTempFile;

pub const DEMO: &[u8] = include_bytes!("../../../../rom/framewire-demo.gba");
/// How many presses of A the game has seen. (See rom/memory-map.toml.)
pub const PRESSES_OF_A: u32 = 0x0200_0010;
/// The game's own frame counter.
pub const GAME_FRAME: u32 = 0x0200_0008;
/// Work RAM that the game never uses.
pub const UNUSED: u32 = 0x0203_0000;

/// An operation that holds A for this many frames.
pub fn hold_a(frames: u32) -> Op {
    let steps = [KeyStep { offset: 0, keys: 1 }, KeyStep { offset: frames, keys: 0 }];
    Op::PlayKeys { steps: timeline::encode(&steps) }
}

/// A lock for tests that measure the frame rate, which depends on the load of the processors.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The settings for the demo game with these scripts.
pub fn config(speed: Speed, paused: bool, scripts: Vec<PathBuf>) -> Config {
    let console =
        || -> framewire_emulator::embedded::Console { Box::new(|level, line| eprintln!("{level:?} {line}")) };
    Config { speed, paused, scripts, history: DEFAULT_HISTORY, console, ..Config::new(Rom::Bytes(DEMO)) }
}

/// Starts the demo game in an embedded core.
pub fn start(speed: Speed, paused: bool) -> Embedded {
    Embedded::start(config(speed, paused, vec![])).expect("the demo game starts")
}

/// A Lua script in a file.
pub fn script(source: &str) -> NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".lua").tempfile().expect("a file");
    file.write_all(source.as_bytes()).expect("written");
    file
}

/// The demo game with one byte changed, as after a new build: the title and code are the same, but the checksum
/// differs.
pub fn rebuilt() -> Vec<u8> {
    let mut rom = DEMO.to_vec();
    *rom.last_mut().expect("bytes") ^= 1;
    rom
}

/// A ROM in a file, and its path.
pub fn rom_file(rom: &[u8]) -> (NamedTempFile, String) {
    let file = tempfile::Builder::new().suffix(".gba").tempfile().expect("a file");
    std::fs::write(file.path(), rom).expect("written");
    let path = file.path().to_str().expect("text").to_owned();
    (file, path)
}

/// A deadline this many seconds from now.
pub fn seconds(seconds: f64) -> Instant {
    Instant::now() + Duration::from_secs_f64(seconds)
}

pub fn submit(emulator: &impl Emulator, batch: impl Into<Batch>) -> Result<Outcome, EmulatorError> {
    emulator.submit(batch.into(), seconds(5.0)).wait()
}

pub fn batch(emulator: &impl Emulator, ops: Vec<Op>) -> Outcome {
    submit(emulator, Batch::new(ops)).expect("an outcome")
}

pub fn call(emulator: &impl Emulator, op: Op) -> Value {
    batch(emulator, vec![op]).single().expect("a value")
}

/// A run of one step, which takes this many frames.
pub fn run_of(frames: u32) -> Op {
    run_step(RunStep { frames, ..RunStep::default() })
}

/// A run of one step.
pub fn run_step(step: RunStep) -> Op {
    Op::Run { steps: RunSteps { stop: vec![], steps: vec![step] }.to_bytes() }
}

pub fn number(value: Value) -> i64 {
    match value {
        Value::Int(number) => number,
        other => panic!("{other:?} is not a number"),
    }
}

pub fn bytes(value: Value) -> Vec<u8> {
    match value {
        Value::Bytes(bytes) => bytes,
        other => panic!("{other:?} is not bytes"),
    }
}

pub fn read32(emulator: &impl Emulator, address: u32) -> i64 {
    number(call(emulator, Op::Read32 { address }))
}

pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The result of a future that should be ready soon, such as the next event of a watch.
pub fn soon<T>(future: impl Future<Output = Option<T>>) -> T {
    within(Duration::from_secs(20), future).expect("it comes in time").expect("there is one")
}

/// The result of a future; `None` if it is not ready within `limit`.
pub fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(limit, future).await.ok() })
}

/// The error of an operation that must be refused.
pub fn refusal(emulator: &impl Emulator, op: Op) -> OpError {
    batch(emulator, vec![op]).single().expect_err("a refusal")
}

/// Checks that the game sees fifty taps of A as fifty presses, and that A is up after the last one.
pub fn assert_each_tap_is_a_press(emulator: &impl Emulator) {
    wait_for("the game", || read32(emulator, GAME_FRAME) > 10);
    batch(emulator, vec![Op::HoldKeys { keys: 1, frames: 1 }; 50]);
    wait_for("50 presses", || read32(emulator, PRESSES_OF_A) >= 50);
    wait_for("the end of the last tap", || number(call(emulator, Op::GetKeys {})) == 0);
    assert_eq!(read32(emulator, PRESSES_OF_A), 50);
}

/// Checks that loading a state restores memory. For a state without optional parts, also checks that saving it again
/// gives the same bytes.
pub fn assert_states_are_restored(emulator: &impl Emulator) {
    let write = |value| Op::Write32 { address: UNUSED, value };
    for (flags, value) in [(0, 0xdead_beef), (31, 0xcafe_f00d)] {
        call(emulator, write(value));
        let state = bytes(call(emulator, Op::SaveState { flags }));
        call(emulator, write(1));
        let load = Op::LoadState { data: state.clone(), flags: 29 };
        let outcome = batch(emulator, vec![load, Op::Read32 { address: UNUSED }, Op::SaveState { flags: 0 }]);
        let [Ok(loaded), Ok(read), Ok(again)] = outcome.results.as_slice() else { panic!("an error") };
        assert_eq!((loaded, read), (&Value::Bool(true), &Value::Int(value.into())));
        if flags == 0 {
            assert_eq!(state.len(), 0x61000);
            assert!(again == &Value::Bytes(state), "the state differs");
        }
    }
}
