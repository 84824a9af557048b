//! Twenty clients watch the ball while others have stopped reading. No change is missed, and none is more than [`LATE`]
//! frames late.
//!
//! `FRAMEWIRE_WATCH_SECONDS` makes the measurement longer, and allows only one attempt. Without it, an attempt takes
//! about three seconds.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use framewire_emulator::Emulator;
use framewire_emulator::embedded::Rom;
use framewire_http::App;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

use super::client::{Event, Events, Rpc, watch};
use super::script::connected_with;
use super::watches::readers;
use crate::support::{Server, core, field, repository, wait_for};
use crate::v1::measure_alone;

const CLIENTS: usize = 20;
/// The clients listen for at least this many frames, and for [`REST`] more.
const FRAMES: u32 = 120;
/// How many frames the ball rests before each serve. Clients that watch only the ball get no event then.
const REST: u32 = 60;
/// The largest accepted delay of a change, in frames.
const LATE: u32 = 2;

/// The changes that a client received, by frame.
type Received = BTreeMap<u64, Value>;

#[test]
fn no_client_misses_a_change_of_an_embedded_core() {
    let folder = tempfile::tempdir().unwrap();
    let core = Arc::new(core(Rom::File(repository("rom/framewire-demo.gba")), false, Vec::new()));
    let shared = core.clone();
    let server = Server::over(folder, move |_| shared, allow_stalls);
    crowd(&server, &*core);
}

#[test]
fn no_client_misses_a_change_of_an_attached_mgba() {
    let (core, server) = connected_with(allow_stalls);
    crowd(&server, &core);
}

/// Lets clients that stop reading stay connected until the test ends. They must not disturb the others.
fn allow_stalls(app: &mut App) {
    app.limits.stall = Duration::from_secs(3600);
}

fn chosen_duration() -> Option<Duration> {
    std::env::var("FRAMEWIRE_WATCH_SECONDS").ok()?.parse().ok().map(Duration::from_secs)
}

fn crowd(server: &Server, core: &dyn Emulator) {
    let (mut lazy_events, mut lazy_rpc) = stop_reading(server);
    let largest_delay = || {
        let delay = measure(server, core, chosen_duration().unwrap_or_default());
        eprintln!("largest delay of a change, in frames: {delay}");
        delay
    };
    if chosen_duration().is_some() {
        assert!(largest_delay() <= LATE);
    } else {
        // If a change is only late, the measurement is repeated. A missed change fails the test at once.
        measure_alone(largest_delay, |delay| *delay <= LATE);
    }
    for missed in [lazy_events.wait_for("missed"), lazy_rpc.wait_for("missed")] {
        assert!(missed.data["missed"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_client_that_stops_reading_is_disconnected_in_time() {
    // Longer than both clients need to connect on a busy machine.
    let server = Server::with(|app| app.limits.stall = Duration::from_secs(3));
    let lazy = stop_reading(&server);
    assert_eq!(readers(&server), 2);
    wait_for("both to be disconnected", || readers(&server) == 0);
    drop(lazy);
}

/// While a client does not read, the server cannot send it pings. This time does not count as idle time.
#[test]
fn a_client_that_stops_reading_is_not_disconnected_as_idle() {
    // Longer than such a client needs to read the data that was already sent.
    const IDLE: Duration = Duration::from_millis(2500);
    let server = Server::with(|app| app.limits.idle = IDLE);
    let lazy: Vec<_> = (0..4).map(|_| stop_reading(&server)).collect();
    thread::sleep(2 * IDLE);
    for (mut events, mut rpc) in lazy {
        for missed in [events.wait_for("missed"), rpc.wait_for("missed")] {
            assert!(missed.data["missed"].as_u64().unwrap() > 0);
        }
    }
}

/// Opens an event stream and a WebSocket. Both clients read only the beginning. Each frame has so much data for them
/// that their sockets are soon full.
fn stop_reading(server: &Server) -> (Events, Rpc) {
    let ranges: Vec<String> =
        (0..8).map(|offset| format!("bytes[{:#x}, {}]", 0x0200_0000 + offset, 4096 - offset)).collect();
    let connect = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(&server.address.into()).unwrap();
        TcpStream::from(socket)
    };
    let all: Vec<&str> = ranges.iter().map(String::as_str).collect();
    let events = Events::over(connect(), &watch(&all), None);
    let mut rpc = Rpc::over(server, connect(), "/v1/ws");
    rpc.result("subscribe", json!({"watch": ranges}));
    (events, rpc)
}

/// Twenty clients watch for at least `time`, and at least [`FRAMES`] + [`REST`] frames. Returns the largest delay of a
/// change, in frames.
fn measure(server: &Server, core: &dyn Emulator, time: Duration) -> u32 {
    // After the end of a game (state 3), the ball rests for 180 frames, which is as long as the clients listen. So this
    // waits until a new game has begun, and gives the game enough balls.
    wait_for("a game that continues", || {
        server.post_ok(&format!("/core/write16?address={}&value=9", field("lives")), "");
        server.number(&format!("/core/read16?address={}", field("state"))) != 3
    });
    let ball = ["ball_x", "ball_y"].map(|name| format!("i16[{:#x}]", field(name)));
    let frame = format!("u32[{:#x}]", field("frame"));
    let with_frame = [&ball[0][..], &ball[1], &frame];
    let listening = &AtomicUsize::new(0);
    let results: Vec<(Received, u32)> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                // Half of the clients watch the frame counter too. They get an event in each frame, so a missed event
                // is noticed.
                let expressions = if number % 2 == 0 { &with_frame[..2] } else { &with_frame[..] };
                scope.spawn(move || {
                    if number < CLIENTS / 2 {
                        let mut events = Events::open(server, &watch(expressions));
                        listen(core, listening, time, || events.next().expect("an event"))
                    } else {
                        let mut rpc = Rpc::open(server);
                        rpc.result("subscribe", json!({"watch": expressions}));
                        listen(core, listening, time, || rpc.next().expect("an event"))
                    }
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("a client that missed nothing")).collect()
    });
    compare(&results, &ball);
    results.iter().map(|(_, late)| *late).max().unwrap_or_default()
}

/// Listens together with all other clients. Returns the events, and the largest delay of an event, in frames.
fn listen(
    core: &dyn Emulator,
    listening: &AtomicUsize,
    time: Duration,
    mut next: impl FnMut() -> Event,
) -> (Received, u32) {
    assert_eq!(next().name, "values");
    // A barrier would wait forever for a client that has failed.
    listening.fetch_add(1, Relaxed);
    wait_for("all clients", || listening.load(Relaxed) == CLIENTS);
    let (begun, end) = (core.state().frame, Instant::now() + time);
    let (mut received, mut largest_delay) = (Received::new(), 0);
    loop {
        let event = next();
        let now = core.state().frame;
        assert_eq!((event.name.as_str(), &event.data["gap"]), ("change", &Value::Null), "{event:?}");
        let frame = event.data["frame"].as_u64().unwrap();
        received.insert(frame, event.data["changes"].clone());
        // Earlier events do not count. They were read late, after all clients were connected.
        if frame > begun.into() {
            largest_delay = largest_delay.max(now.saturating_sub(frame as u32));
        }
        if frame >= u64::from(begun + FRAMES + REST) && Instant::now() >= end {
            return (received, largest_delay);
        }
    }
}

/// Checks that all clients got the same changes of the ball in the frames in which they listened at the same time.
fn compare(results: &[(Received, u32)], ball: &[String]) {
    let of_ball = |changes: &Value| -> Vec<Value> { ball.iter().map(|name| changes[name].clone()).collect() };
    for (index, (received, _)) in results.iter().enumerate() {
        let (first, last) = (*received.keys().next().unwrap(), *received.keys().last().unwrap());
        if index % 2 == 1 {
            assert_eq!(received.len() as u64, last - first + 1, "a frame was missed");
        }
        let (all, _) = &results[1];
        let common = first.max(*all.keys().next().unwrap())..=last.min(*all.keys().last().unwrap());
        assert!(common.end() - common.start() > u64::from(FRAMES) / 2, "they listened at the same time");
        for (frame, changes) in all.range(common.clone()) {
            let expected = of_ball(changes);
            let given = received.get(frame).map_or(vec![Value::Null; 2], of_ball);
            assert_eq!(given, expected, "client {index} in frame {frame}");
        }
    }
}

/// There are more changes than the server can send, so it always has one to send.
#[test]
fn watches_with_constant_changes_do_not_block_other_requests() {
    let server = Server::start();
    assert_eq!(server.request("POST", "/v1/speed", br#"{"speed":"unlimited"}"#).status, 200);
    let mut rpc = Rpc::open(&server);
    for number in 0..4 {
        let ranges = (0..16).map(|range| format!("bytes[{}, 4096]", 0x0200_0000 + 16 * number + range));
        rpc.result("subscribe", json!({"watch": ranges.collect::<Vec<_>>()}));
    }
    for _ in 0..5 {
        assert_eq!(server.get("/healthz").status, 200);
    }
}
