//! Tests of the attached emulator. It is connected to the real script, which runs in the Lua of an embedded core.

use std::path::PathBuf;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use framewire_emulator::embedded::{Embedded, Speed};
use framewire_emulator::history::DEFAULT_HISTORY;
use framewire_emulator::{Attached, Emulator, EmulatorError, Run, WatchRequest};
use framewire_protocol::{Batch, Frame, MemoryRange, Op, Outcome, Reply, Request, Value};
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Runtime;

use crate::peer::Peer;
use crate::reserved_port::reserved_port;
use crate::until_good::until_good;

use super::support::{
    UNUSED, assert_each_tap_is_a_press, assert_states_are_restored, call, config, read32, script, seconds,
    submit, wait_for,
};

/// A port for a script or a proxy, which stays reserved until the process ends.
pub fn free_port() -> u16 {
    let (socket, address) = reserved_port();
    std::mem::forget(socket);
    address.port()
}

/// The scripts for a core: the settings with `port`, and Framewire's script. Also returns the file with the settings,
/// which must exist until the core has started.
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
    Attached::start(config, runtime.handle(), DEFAULT_HISTORY)
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

/// Waits until the emulator is connected and frames run.
pub fn ready(emulator: &Attached) {
    wait_for("a connection", || emulator.state().run == Run::Running);
}

/// A core that runs the script, and an emulator that is connected to it.
pub fn attached() -> (Runtime, Embedded, Attached) {
    attached_to(host)
}

/// A core whose script listens at the port that `host` gets, and an emulator that is connected to it.
pub fn attached_to(host: impl FnOnce(u16) -> Embedded) -> (Runtime, Embedded, Attached) {
    let (runtime, port) = (runtime(), free_port());
    let host = host(port);
    let emulator = attach(port, &runtime);
    ready(&emulator);
    (runtime, host, emulator)
}

#[test]
fn operations_work_and_the_state_is_reported() {
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
fn a_large_state_is_saved_and_loaded_unchanged() {
    let (_runtime, _host, emulator) = attached();
    assert_states_are_restored(&emulator);
}

/// The connection accepts only a few bytes at a time, so neither side can send a whole state at once.
#[test]
fn a_state_is_saved_and_loaded_unchanged_over_a_slow_connection() {
    let (runtime, port) = (runtime(), free_port());
    let _host = host(port);
    let proxy_port = runtime.block_on(slow_proxy(port)).expect("a port");
    let emulator = attach(proxy_port, &runtime);
    ready(&emulator);
    assert_states_are_restored(&emulator);
}

/// Forwards one connection to `port`, 700 bytes at a time, with small receive buffers. Returns the proxy's own port.
async fn slow_proxy(port: u16) -> std::io::Result<u16> {
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
fn each_of_a_thousand_simultaneous_requests_gets_its_own_reply() {
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
fn each_tap_is_a_separate_press() {
    let (_runtime, host, emulator) = attached();
    call(&host, Op::SetSpeed { thousandths: 8000 });
    assert_each_tap_is_a_press(&emulator);
}

#[test]
fn a_paused_emulator_is_stalled_and_never_performs_a_request_after_its_deadline() {
    let (_runtime, host, emulator) = attached();
    call(&host, Op::Pause {});
    wait_for("the pause", || host.state().run == Run::Paused);
    let late = || {
        let begun = Instant::now();
        let write = Op::Write32 { address: UNUSED, value: 77 };
        let late = emulator.submit(write.into(), seconds(0.5)).wait();
        assert!(matches!(&late, Err(EmulatorError::Deadline(text)) if text.contains("paused")), "{late:?}");
        begun.elapsed()
    };
    until_good(late, |time| *time < Duration::from_millis(900));
    wait_for("stalled", || emulator.state().run == Run::Stalled);
    call(&host, Op::Resume {});
    ready(&emulator);
    assert_eq!(read32(&emulator, UNUSED), 0, "the request was withdrawn");
}

#[test]
fn a_missing_emulator_is_reported_and_used_again_when_it_is_back() {
    let (runtime, port) = (runtime(), free_port());
    let emulator = attach(port, &runtime);
    wait_for("a refusal", || emulator.state().problem.is_some());
    let absent = || {
        let begun = Instant::now();
        let absent = submit(&emulator, Op::GetKeys {});
        assert!(
            matches!(&absent, Err(EmulatorError::NotConnected(text)) if text.contains("framewire doctor")),
            "{absent:?}"
        );
        begun.elapsed()
    };
    until_good(absent, |time| *time < Duration::from_millis(500));
    let back = || {
        let host = host(port);
        let back = Instant::now();
        ready(&emulator);
        call(&emulator, Op::GetKeys {});
        let time = back.elapsed();
        drop(host);
        wait_for("gone", || emulator.state().run != Run::Running);
        time
    };
    for _ in 0..3 {
        until_good(back, |time| *time < Duration::from_secs(1));
    }
}

#[test]
fn open_requests_are_answered_before_the_connection_is_closed() {
    let (runtime, _host, emulator) = attached();
    let pending: Vec<_> =
        (0..100).map(|_| emulator.submit(Op::Echo { data: vec![5; 100] }.into(), seconds(5.0))).collect();
    runtime.block_on(emulator.close());
    for pending in pending {
        assert!(pending.wait().is_ok());
    }
    assert_eq!(submit(&emulator, Op::GetKeys {}), Err(EmulatorError::Stopped));
}

#[test]
fn a_watch_that_is_dropped_while_the_link_has_no_room_is_ended_in_the_script_later() {
    let (ended, ends) = mpsc::channel();
    let (release, held) = mpsc::channel();
    let held = Mutex::new(held);
    let script = Peer::start(move |_, mut link| {
        link.greet()?;
        loop {
            let Request { id, batch, .. } = link.request()?;
            let result = match batch.ops[0] {
                Op::Watch { .. } => Value::Bytes(vec![0]),
                Op::Echo { .. } => {
                    held.lock().ok()?.recv().ok()?;
                    Value::None
                }
                Op::Unwatch { id } => {
                    ended.send(id).ok()?;
                    Value::None
                }
                _ => Value::Text("GAME".into()),
            };
            let outcome = Outcome { frame: 1, results: vec![Ok(result); batch.ops.len()] };
            link.send_frame(&Frame::Reply(Reply { id, outcome }))?;
        }
    });
    let runtime = runtime();
    let config = framewire_link::Config { address: script.address, capacity: 1, ..Default::default() };
    let emulator = Attached::start(config, runtime.handle(), 0);
    wait_for("the game", || emulator.state().title.is_some());
    let range = MemoryRange { domain: None, address: UNUSED, length: 1, expression: None };
    let watch = emulator.watch(WatchRequest { ranges: vec![range], ..WatchRequest::default() });
    let Op::Watch { id, .. } = watch.op() else { panic!("another operation") };
    call(&emulator, watch.op());
    let open = emulator.submit(Op::Echo { data: vec![] }.into(), seconds(5.0));
    drop(watch);
    release.send(()).expect("the script waits");
    open.wait().expect("an outcome");
    assert_eq!(ends.recv_timeout(Duration::from_secs(5)), Ok(id));
}

#[test]
fn a_batch_is_not_performed_if_an_earlier_connection_has_used_its_key() {
    let (runtime, port) = (runtime(), free_port());
    let _host = host(port);
    let keyed = |value| Batch { key: Some("key".into()), ..Op::Write32 { address: UNUSED, value }.into() };
    for (value, is_same, after) in [(1, true, 1), (2, false, 9), (1, true, 9)] {
        let emulator = attach(port, &runtime);
        ready(&emulator);
        let result = emulator.submit(keyed(value), seconds(5.0)).wait().expect("an outcome").single();
        if is_same {
            assert_eq!(result, Ok(Value::None));
        } else {
            assert!(result.expect_err("another batch has the key").is_key_reused());
        }
        assert_eq!(read32(&emulator, UNUSED), after);
        // A batch that is performed again would replace this value.
        call(&emulator, Op::Write32 { address: UNUSED, value: 9 });
    }
}
