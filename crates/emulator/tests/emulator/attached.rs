//! The attached emulator: a link to the real script, in a real core's own Lua.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use framewire_emulator::embedded::{Embedded, Speed};
use framewire_emulator::history::HISTORY;
use framewire_emulator::{Attached, Emulator, EmulatorError, Run};
use framewire_protocol::{Batch, Op, Value};
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Runtime;

use super::support::{
    UNUSED, assert_each_tap_is_a_press, assert_states_come_back, call, config, read32, script, seconds,
    submit, wait_for,
};

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port()
}

/// The scripts of a core that runs ours at `port`, and the file with its settings.
pub fn scripts(port: u16) -> (Vec<PathBuf>, NamedTempFile) {
    let settings = script(&format!("framewire = {{port = {port}, log_level = 'warn'}}"));
    (vec![settings.path().to_owned(), framewire_script::PATH.into()], settings)
}

/// A core whose script listens at `port`.
pub fn host(port: u16) -> Embedded {
    let (scripts, _settings) = scripts(port);
    Embedded::start(config(Speed::Times(1.0), false, scripts)).expect("the script loads")
}

pub fn attach(port: u16, runtime: &Runtime) -> Attached {
    let config = framewire_link::Config { address: format!("127.0.0.1:{port}"), ..Default::default() };
    Attached::start(config, runtime.handle(), HISTORY)
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

pub fn ready(emulator: &Attached) {
    wait_for("a connection", || emulator.state().run == Run::Running);
}

/// A core that runs the script, and an emulator that is connected to it.
pub fn attached() -> (Runtime, Embedded, Attached) {
    let (runtime, port) = (runtime(), free_port());
    let host = host(port);
    let emulator = attach(port, &runtime);
    ready(&emulator);
    (runtime, host, emulator)
}

#[test]
fn operations_and_state_come_through() {
    let (_runtime, _host, emulator) = attached();
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
fn a_state_of_several_hundred_kib_goes_out_and_back_byte_for_byte() {
    let (_runtime, _host, emulator) = attached();
    assert_states_come_back(&emulator);
}

/// The network accepts few bytes at a time, so neither side can send a state at once.
#[test]
fn a_state_comes_back_byte_for_byte_in_small_pieces() {
    let (runtime, port) = (runtime(), free_port());
    let _host = host(port);
    let narrow = runtime.block_on(narrow(port)).expect("a port");
    let emulator = attach(narrow, &runtime);
    ready(&emulator);
    assert_states_come_back(&emulator);
}

/// Forwards one connection to `port`, some hundred bytes at a time, with very small buffers.
async fn narrow(port: u16) -> std::io::Result<u16> {
    const ROOM: u32 = 32 * 1024;
    let entrance = TcpSocket::new_v4()?;
    entrance.set_recv_buffer_size(ROOM)?;
    entrance.bind(([127, 0, 0, 1], 0).into())?;
    let listener = entrance.listen(1)?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let (client, _) = listener.accept().await?;
        let exit = TcpSocket::new_v4()?;
        exit.set_recv_buffer_size(ROOM)?;
        let server = exit.connect(([127, 0, 0, 1], port).into()).await?;
        let (client, server) = (client.into_split(), server.into_split());
        tokio::try_join!(trickle(client.0, server.1), trickle(server.0, client.1))
    });
    Ok(address.port())
}

async fn trickle(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> std::io::Result<()> {
    let mut piece = [0; 700];
    loop {
        match from.read(&mut piece).await? {
            0 => return to.shutdown().await,
            count => to.write_all(&piece[..count]).await?,
        }
    }
}

#[test]
fn a_thousand_requests_at_once_are_each_answered_with_their_own_reply() {
    let (_runtime, _host, emulator) = attached();
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
    let (_runtime, host, emulator) = attached();
    host.set_speed(Speed::Times(8.0)).expect("a speed");
    assert_each_tap_is_a_press(&emulator);
}

#[test]
fn a_paused_emulator_is_stalled_and_does_not_do_later_what_ran_out_of_time() {
    let (_runtime, host, emulator) = attached();
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
    assert_eq!(read32(&emulator, UNUSED), 0, "it was withdrawn");
}

#[test]
fn an_emulator_that_is_gone_is_said_so_and_served_again_when_it_is_back() {
    let (runtime, port) = (runtime(), free_port());
    let emulator = attach(port, &runtime);
    wait_for("a refusal", || emulator.state().problem.is_some());
    let begun = Instant::now();
    let absent = submit(&emulator, Op::GetKeys {});
    assert!(
        matches!(&absent, Err(EmulatorError::NotConnected(text)) if text.contains("framewire doctor")),
        "{absent:?}"
    );
    assert!(begun.elapsed() < Duration::from_millis(500), "reported at once");
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
    assert_eq!(submit(&emulator, Op::GetKeys {}), Err(EmulatorError::Stopped));
}

#[test]
fn a_key_is_done_once_even_by_another_bridge() {
    let (runtime, port) = (runtime(), free_port());
    let _host = host(port);
    let keyed = |value| Batch { key: Some("key".into()), ..Op::Write32 { address: UNUSED, value }.into() };
    for value in 1..=3 {
        let emulator = attach(port, &runtime);
        ready(&emulator);
        assert!(emulator.submit(keyed(value), seconds(5.0)).wait().is_ok());
        assert_eq!(read32(&emulator, UNUSED), 1);
    }
}
