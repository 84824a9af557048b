//! The attached emulator: a link to the real script, in a real core's own Lua.

use std::io::Write;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use framewire_emulator::embedded::{Config, Embedded, Rom, Speed};
use framewire_emulator::{Attached, Emulator, EmulatorError, Run};
use framewire_protocol::{Batch, Op, Outcome, Value};
use tokio::runtime::Runtime;

const DEMO: &[u8] = include_bytes!("../../../rom/framewire-demo.gba");
const PRESSES_OF_A: u32 = 0x0200_0010;
const GAME_FRAME: u32 = 0x0200_0008;
const UNUSED: u32 = 0x0203_0000;

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port()
}

/// A core that runs the script at `port`.
fn host(port: u16) -> Embedded {
    let mut settings = tempfile::Builder::new().suffix(".lua").tempfile().expect("a file");
    writeln!(settings, "framewire = {{port = {port}, log_level = 'warn'}}").expect("written");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lua/framewire.lua").into();
    let config = Config {
        rom: Rom::Bytes(DEMO),
        speed: Speed::Times(1.0),
        paused: false,
        scripts: vec![settings.path().to_owned(), script],
        console: || Box::new(|level, line| eprintln!("{level:?} {line}")),
    };
    Embedded::start(config).expect("the script loads")
}

fn attach(port: u16, runtime: &Runtime) -> Attached {
    let config = framewire_link::Config { address: format!("127.0.0.1:{port}"), ..Default::default() };
    Attached::start(config, runtime.handle())
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

fn seconds(seconds: f64) -> Instant {
    Instant::now() + Duration::from_secs_f64(seconds)
}

fn batch(emulator: &Attached, ops: Vec<Op>) -> Result<Outcome, EmulatorError> {
    emulator.submit(Batch::new(ops), seconds(5.0)).wait()
}

fn call(emulator: &Attached, op: Op) -> Value {
    batch(emulator, vec![op]).expect("an outcome").single().expect("a value")
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

fn ready(emulator: &Attached) {
    wait_for("a connection", || emulator.state().run == Run::Running);
}

#[test]
fn operations_and_state_come_through() {
    let (runtime, port) = (runtime(), free_port());
    let _host = host(port);
    let emulator = attach(port, &runtime);
    ready(&emulator);
    assert_eq!(call(&emulator, Op::GameTitle {}), Value::Text("FRAMEWIRE".into()));
    let every_byte: Vec<u8> = (0..=255).collect();
    assert_eq!(call(&emulator, Op::Echo { data: every_byte.clone() }), Value::Bytes(every_byte.clone()));
    call(&emulator, Op::WriteRange { address: UNUSED, data: every_byte.clone() });
    let read = call(&emulator, Op::ReadRange { address: UNUSED, length: 256 });
    assert_eq!(read, Value::Bytes(every_byte));
    wait_for("title and rate", || {
        let state = emulator.state();
        state.title.as_deref() == Some("FRAMEWIRE") && (state.frames_per_second - 59.7).abs() < 1.5
    });
    assert_eq!(emulator.state().script_version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_state_of_several_hundred_kib_goes_out_and_back() {
    let (runtime, port) = (runtime(), free_port());
    let _host = host(port);
    let emulator = attach(port, &runtime);
    ready(&emulator);
    call(&emulator, Op::Write32 { address: UNUSED, value: 0xdead_beef });
    for flags in [0, 31] {
        let Value::Bytes(state) = call(&emulator, Op::SaveState { flags }) else { panic!("no bytes") };
        if flags == 0 {
            assert_eq!(state.len(), 0x61000);
        }
        call(&emulator, Op::Write32 { address: UNUSED, value: 1 });
        assert_eq!(call(&emulator, Op::LoadState { data: state, flags: 29 }), Value::Bool(true));
        assert_eq!(number(call(&emulator, Op::Read32 { address: UNUSED })), 0xdead_beef);
    }
}

#[test]
fn a_thousand_requests_at_once_are_each_answered_with_their_own_reply() {
    let (runtime, port) = (runtime(), free_port());
    let _host = host(port);
    let emulator = attach(port, &runtime);
    ready(&emulator);
    let payload = |number: usize| format!("{number}").repeat(1 + number % 700).into_bytes();
    let pending: Vec<_> = (0..1000)
        .map(|number| emulator.submit(Op::Echo { data: payload(number) }.into(), seconds(10.0)))
        .collect();
    for (number, pending) in pending.into_iter().enumerate() {
        let value = pending.wait().expect("an outcome").single().expect("a value");
        assert_eq!(value, Value::Bytes(payload(number)));
    }
}

#[test]
fn each_tap_is_a_press_of_its_own() {
    let (runtime, port) = (runtime(), free_port());
    let host = host(port);
    host.set_speed(Speed::Times(8.0));
    let emulator = attach(port, &runtime);
    ready(&emulator);
    wait_for("the game", || number(call(&emulator, Op::Read32 { address: GAME_FRAME })) > 10);
    batch(&emulator, vec![Op::HoldKeys { keys: 1, frames: 1 }; 50]).expect("an outcome");
    wait_for("50 presses", || number(call(&emulator, Op::Read32 { address: PRESSES_OF_A })) >= 50);
    wait_for("the last one's end", || number(call(&emulator, Op::GetKeys {})) == 0);
    assert_eq!(number(call(&emulator, Op::Read32 { address: PRESSES_OF_A })), 50);
}

#[test]
fn a_paused_emulator_is_stalled_and_does_not_do_later_what_ran_out_of_time() {
    let (runtime, port) = (runtime(), free_port());
    let host = host(port);
    let emulator = attach(port, &runtime);
    ready(&emulator);
    host.set_paused(true);
    wait_for("the pause", || host.state().run == Run::Paused);
    let begun = Instant::now();
    let write = Op::Write32 { address: UNUSED, value: 77 };
    let late = emulator.submit(write.into(), seconds(0.5)).wait();
    assert!(matches!(&late, Err(EmulatorError::Deadline(text)) if text.contains("paused")), "{late:?}");
    assert!(begun.elapsed() < Duration::from_millis(900));
    wait_for("stalled", || emulator.state().run == Run::Stalled);
    host.set_paused(false);
    ready(&emulator);
    assert_eq!(number(call(&emulator, Op::Read32 { address: UNUSED })), 0, "it was withdrawn");
}

#[test]
fn an_emulator_that_is_gone_is_said_so_and_served_again_when_it_is_back() {
    let (runtime, port) = (runtime(), free_port());
    let emulator = attach(port, &runtime);
    wait_for("a refusal", || emulator.state().problem.is_some());
    let begun = Instant::now();
    let absent = batch(&emulator, vec![Op::GetKeys {}]);
    assert!(
        matches!(&absent, Err(EmulatorError::NotConnected(text)) if text.contains("framewire doctor")),
        "{absent:?}"
    );
    assert!(begun.elapsed() < Duration::from_millis(500), "told at once");
    for _ in 0..3 {
        let host = host(port);
        let back = Instant::now();
        ready(&emulator);
        call(&emulator, Op::GetKeys {});
        assert!(back.elapsed() < Duration::from_secs(1), "{:?}", back.elapsed());
        drop(host);
        wait_for("gone", || emulator.state().run != Run::Running);
    }
}

#[test]
fn closing_answers_what_is_open() {
    let (runtime, port) = (runtime(), free_port());
    let _host = host(port);
    let emulator = attach(port, &runtime);
    ready(&emulator);
    let pending: Vec<_> =
        (0..100).map(|_| emulator.submit(Op::Echo { data: vec![5; 100] }.into(), seconds(5.0))).collect();
    runtime.block_on(emulator.close());
    for pending in pending {
        assert!(pending.wait().is_ok());
    }
    assert_eq!(batch(&emulator, vec![Op::GetKeys {}]), Err(EmulatorError::Stopped));
}

#[test]
fn a_key_is_done_once_even_by_another_bridge() {
    let (runtime, port) = (runtime(), free_port());
    let _host = host(port);
    let keyed = |value| Batch { ops: vec![Op::Write32 { address: UNUSED, value }], key: Some("key".into()) };
    for value in 1..=3 {
        let emulator = attach(port, &runtime);
        ready(&emulator);
        assert!(emulator.submit(keyed(value), seconds(5.0)).wait().is_ok());
        assert_eq!(number(call(&emulator, Op::Read32 { address: UNUSED })), 1);
    }
}
