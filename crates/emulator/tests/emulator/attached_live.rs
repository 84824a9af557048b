//! Tests of the keys, watches, events and lockstep of an attached emulator. The real script runs in the Lua of an
//! embedded core.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use framewire_emulator::embedded::{Embedded, Speed};
use framewire_emulator::{
    Attached, Discontinuity, Emulator, EmulatorError, Event, EventKind, Run, WatchEnd, WatchRequest,
};
use framewire_protocol::{KeyStep, Op, Status, Value, timeline};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::broadcast::Receiver;
use tokio::task::AbortHandle;

use crate::until_good::until_good;

use super::attached::{attach, attached, free_port, host, ready, runtime, scripts};
use super::support::{
    DEMO, GAME_FRAME, UNUSED, batch, call, config, hold_a, number, read32, rebuilt, refusal, rom_file,
    seconds, soon, wait_for, within,
};
use super::timelines::{assert_as_played, assert_how_it_ended, log, play, taps};
use super::watches::{begin, next_where, range, request};

/// Waits for the next event that is `wanted`, and skips the events before it.
fn next(events: &mut Receiver<Event>, wanted: impl Fn(&EventKind) -> bool) -> Event {
    loop {
        let event = soon(async { events.recv().await.ok() });
        if wanted(&event.kind) {
            return event;
        }
    }
}

/// Forwards connections from one port to another. If the returned handle is aborted, the connections break.
fn forward(from: u16, to: u16, runtime: &Runtime) -> AbortHandle {
    // Just after an earlier forwarder was aborted, its listener may still be open.
    let mut listener = None;
    wait_for("the port", || {
        listener = runtime.block_on(TcpListener::bind(("127.0.0.1", from))).ok();
        listener.is_some()
    });
    let listener = listener.expect("a listener");
    let traffic = async move {
        while let Ok((mut client, _)) = listener.accept().await {
            if let Ok(mut script) = TcpStream::connect(("127.0.0.1", to)).await {
                let _ = copy_bidirectional(&mut client, &mut script).await;
            }
        }
    };
    runtime.spawn(traffic).abort_handle()
}

#[test]
fn the_game_sees_a_thousand_taps_in_exactly_their_frames() {
    let (_runtime, host, emulator) = attached();
    call(&host, Op::SetSpeed { thousandths: 8000 });
    wait_for("the game", || read32(&emulator, GAME_FRAME) > 10);
    let (steps, mut seen) = (taps(1000, 3), HashMap::new());
    let mut events = emulator.events();
    let first = play(&emulator, &steps);
    while log(&emulator, &mut seen) < first + steps.last().expect("steps").offset {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_as_played(&steps, first, &seen);
    let over = next(&mut events, |kind| matches!(kind, EventKind::TimelineOver { .. }));
    assert_eq!(over.kind, EventKind::TimelineOver { id: 1, cancelled: false });
    assert_how_it_ended(&emulator, 1, "over", over.frame);
}

#[test]
fn a_watch_sees_every_frame_and_ends_with_its_handle() {
    let (_runtime, _host, emulator) = attached();
    wait_for("the game", || read32(&emulator, GAME_FRAME) > 10);
    let wanted =
        WatchRequest { every: 20, keys: true, ..request(vec![range(UNUSED, 4), range(GAME_FRAME, 4)]) };
    let (mut watch, base) = begin(&emulator, wanted);
    let mut before = base[4..].to_vec();
    let first = soon(watch.next());
    assert_eq!((first.ticks, first.keys), (1, Some(0)));
    for tick in 2..=60 {
        let event = soon(watch.next());
        assert_eq!((event.ticks, event.frame), (tick, first.frame + tick as u32 - 1));
        assert_eq!((event.keys, event.gap, event.missed), (Some(0), false, 0));
        let [change] = &event.changes[..] else { panic!("{event:?}") };
        assert_eq!(change.range, 1);
        // The second event is not compared with `before`, which does not contain the change of the first event.
        if tick > 2 {
            assert_eq!(change.old, before);
        }
        before = change.new.clone();
    }
    call(&emulator, Op::AddKeys { keys: 2 });
    let event = next_where(&mut watch, |event| event.keys == Some(2));
    assert!(event.ticks > 60);
    drop(watch);
    // The script ends the dropped watch. Each of these watches needs all of the bytes that a connection may watch.
    let large = || request(vec![range(UNUSED, 4096); 16]);
    for _ in 0..4 {
        wait_for("free bytes", || batch(&emulator, vec![emulator.watch(large()).op()]).results[0].is_ok());
    }
}

/// A request to the paused emulator is withdrawn after its deadline. This holds for the request that ends a watch, too.
#[test]
fn watches_that_are_dropped_during_a_pause_end_after_it() {
    let (_runtime, host, emulator) = attached();
    let large = || request(vec![range(UNUSED, 4096); 16]);
    let (watch, _) = begin(&emulator, large());
    call(&host, Op::Pause {});
    wait_for("stalled", || emulator.state().run == Run::Stalled);
    drop(watch);
    // This request is sent after the first request that ends the watch, and has a later deadline. So when its deadline
    // has passed, that request has been withdrawn, too.
    let late = emulator.submit(Op::GetKeys {}.into(), seconds(1.5)).wait();
    assert!(matches!(late, Err(EmulatorError::Deadline(_))), "{late:?}");
    call(&host, Op::Resume {});
    ready(&emulator);
    wait_for("free bytes", || batch(&emulator, vec![emulator.watch(large()).op()]).results[0].is_ok());
}

#[test]
fn a_watch_continues_after_a_gap() {
    let (runtime, port) = (runtime(), free_port());
    let host = host(port);
    let proxy_port = free_port();
    let forwarder = forward(proxy_port, port, &runtime);
    let emulator = attach(proxy_port, &runtime);
    ready(&emulator);
    let mut events = emulator.events();
    let (mut watch, _) = begin(&emulator, WatchRequest { every: 10, ..request(vec![range(UNUSED, 4)]) });
    call(&emulator, Op::Write32 { address: UNUSED, value: 1 });
    let event = next_where(&mut watch, |event| !event.changes.is_empty());
    assert_eq!(event.changes[0].new, 1u32.to_le_bytes());
    forwarder.abort();
    next(&mut events, |kind| matches!(kind, EventKind::Disconnected { .. }));
    call(&host, Op::Write32 { address: UNUSED, value: 2 });
    forward(proxy_port, port, &runtime);
    next(&mut events, |kind| *kind == EventKind::Connected);
    let gap = loop {
        let event = soon(watch.next());
        if event.gap {
            break event;
        }
        assert!(event.changes.is_empty(), "only regular events: {event:?}");
    };
    assert_eq!((&gap.changes[0].old[..], &gap.changes[0].new[..]), (&[1, 0, 0, 0][..], &[2, 0, 0, 0][..]));
    assert!(gap.ticks > event.ticks, "{} after {}", gap.ticks, event.ticks);
    call(&emulator, Op::Write32 { address: UNUSED, value: 3 });
    let event = next_where(&mut watch, |event| {
        assert!(!event.gap && event.ticks > gap.ticks, "{event:?}");
        !event.changes.is_empty()
    });
    assert_eq!(
        (&event.changes[0].old[..], &event.changes[0].new[..]),
        (&[2, 0, 0, 0][..], &[3, 0, 0, 0][..])
    );
}

#[test]
fn the_number_of_events_lost_while_disconnected_is_reported() {
    let (runtime, port) = (runtime(), free_port());
    let _host = host(port);
    let proxy_port = free_port();
    let forwarder = forward(proxy_port, port, &runtime);
    let (emulator, direct) = (attach(proxy_port, &runtime), attach(port, &runtime));
    ready(&emulator);
    ready(&direct);
    wait_for("the game", || read32(&direct, GAME_FRAME) > 60);
    let (mut events, mut others) = (emulator.events(), direct.events());
    let ended = |kind: &EventKind| matches!(kind, EventKind::TimelineOver { .. });
    let tap = || timeline::encode(&[KeyStep { offset: 0, keys: 1 }, KeyStep { offset: 2, keys: 0 }]);
    call(&direct, Op::PlayKeys { steps: tap() });
    next(&mut events, ended);
    next(&mut others, ended);
    forwarder.abort();
    next(&mut events, |kind| matches!(kind, EventKind::Disconnected { .. }));
    let lost = 3;
    for _ in 0..lost {
        call(&direct, Op::PlayKeys { steps: tap() });
        next(&mut others, ended);
    }
    let frame = number(call(&direct, Op::CurrentFrame {})) as u32;
    forward(proxy_port, port, &runtime);
    let connected = next(&mut events, |kind| *kind == EventKind::Connected);
    assert!(connected.frame >= frame, "{connected:?} in frame {frame}");
    let missed = next(&mut events, |_| true);
    assert_eq!(missed.kind, EventKind::Missed { count: Some(lost) });
    call(&direct, Op::PlayKeys { steps: tap() });
    assert!(ended(&next(&mut events, |_| true).kind));
}

#[test]
fn the_number_of_lost_events_is_unknown_after_the_script_is_loaded_again() {
    let (runtime, port) = (runtime(), free_port());
    let first = host(port);
    let emulator = attach(port, &runtime);
    ready(&emulator);
    let mut events = emulator.events();
    drop(first);
    let _second = host(port);
    // The event of the first connection can come after `ready`, because the state changes before the event is sent.
    next(&mut events, |kind| matches!(kind, EventKind::Disconnected { .. }));
    next(&mut events, |kind| *kind == EventKind::Connected);
    assert_eq!(next(&mut events, |_| true).kind, EventKind::Missed { count: None });
}

#[test]
fn events_of_the_emulator_are_reported() {
    let (runtime, port) = (runtime(), free_port());
    let emulator = attach(port, &runtime);
    let mut events = emulator.events();
    let host = host(port);
    next(&mut events, |kind| *kind == EventKind::Connected);
    let game = next(&mut events, |kind| matches!(kind, EventKind::Game { .. }));
    assert!(
        matches!(&game.kind, EventKind::Game { title: Some(title), .. } if title == "FRAMEWIRE"),
        "{game:?}"
    );
    call(&emulator, Op::Reset {});
    next(&mut events, |kind| *kind == EventKind::Reset);
    call(&host, Op::Pause {});
    next(&mut events, |kind| *kind == EventKind::Stalled);
    call(&host, Op::Resume {});
    next(&mut events, |kind| *kind == EventKind::Running);
    let id = number(call(&emulator, hold_a(9000))) as u32;
    assert_eq!(call(&emulator, Op::CancelKeys { id }), Value::Bool(true));
    next(&mut events, |kind| *kind == EventKind::TimelineOver { id, cancelled: true });
    drop(host);
    next(&mut events, |kind| matches!(kind, EventKind::Disconnected { .. }));
}

#[test]
fn a_rebuilt_rom_and_a_loaded_state_are_reported() {
    let (_runtime, _host, emulator) = attached();
    wait_for("the game", || emulator.state().checksum.is_some());
    let mut events = emulator.events();
    let Value::Bytes(data) = call(&emulator, Op::SaveState { flags: 0 }) else { panic!("a state") };
    assert_eq!(call(&emulator, Op::LoadState { data, flags: 0 }), Value::Bool(true));
    next(&mut events, |kind| *kind == EventKind::State);
    let rom = rebuilt();
    let (_file, path) = rom_file(&rom);
    assert_eq!(call(&emulator, Op::LoadRom { path }), Value::Bool(true));
    let game = next(&mut events, |kind| matches!(kind, EventKind::Game { .. }));
    let checksum = Some(crc32fast::hash(&rom));
    assert!(
        matches!(&game.kind, EventKind::Game { title: Some(title), checksum: known, .. }
            if title == "FRAMEWIRE" && *known == checksum),
        "{game:?}"
    );
    assert_eq!(emulator.state().checksum, checksum);
}

#[test]
fn a_watch_ends_with_the_first_frame_of_another_game() {
    let (_runtime, _host, emulator) = attached();
    call(&emulator, Op::Reset {});
    let (same, (_other, path)) = (rom_file(DEMO), rom_file(&rebuilt()));
    let (mut watch, _) = begin(&emulator, request(vec![range(GAME_FRAME, 4)]));
    call(&emulator, Op::LoadRom { path: same.1 });
    soon(watch.next());
    assert_eq!(watch.end(), None, "the same game again");
    // Only this test writes there, and only after the other game is loaded.
    let (mut quiet, _) = begin(&emulator, request(vec![range(UNUSED, 4)]));
    batch(&emulator, vec![Op::LoadRom { path }, Op::Write32 { address: UNUSED, value: 1 }]);
    assert_eq!(within(Duration::from_secs(20), quiet.next()), Some(None), "no event of the other game");
    assert_eq!(quiet.end(), Some(WatchEnd::OtherGame));
    while within(Duration::from_secs(20), watch.next()).expect("an event or the end").is_some() {}
    assert_eq!(watch.end(), Some(WatchEnd::OtherGame));
    // A watch that begins in the other game does not end, even if the emulator reports the other game only after the
    // watch has begun.
    let (mut watch, _) = begin(&emulator, request(vec![range(GAME_FRAME, 4)]));
    for _ in 0..30 {
        soon(watch.next());
    }
}

#[test]
fn a_watch_ends_if_another_game_is_loaded_after_a_reconnection() {
    let (runtime, port) = (runtime(), free_port());
    let first = host(port);
    let emulator = attach(port, &runtime);
    ready(&emulator);
    wait_for("the game", || emulator.state().checksum.is_some());
    let (mut watch, _) = begin(&emulator, request(vec![range(GAME_FRAME, 4)]));
    soon(watch.next());
    drop(first);
    // While the new core is paused, its script does not greet the link. So the other game is loaded before the emulator
    // connects again.
    let (scripts, _settings) = scripts(port);
    let other = Embedded::start(config(Speed::Times(1.0), true, scripts)).expect("the script loads");
    let (_file, path) = rom_file(&rebuilt());
    call(&other, Op::LoadRom { path });
    call(&other, Op::Resume {});
    while within(Duration::from_secs(20), watch.next()).expect("an event or the end").is_some() {}
    assert_eq!(watch.end(), Some(WatchEnd::OtherGame));
}

/// Recordings need to know how many frames came before a break in the order of frames. Breaks from before the watch
/// started must not be reported.
#[test]
fn a_watch_of_keys_reports_breaks_in_the_order_of_frames() {
    let (_runtime, _host, emulator) = attached();
    call(&emulator, Op::Reset {});
    let mut watch = emulator.watch(WatchRequest { every: 50, keys: true, ..request(vec![]) });
    // All operations of a batch are performed after the same frame.
    let begun = batch(&emulator, vec![Op::CurrentFrame {}, watch.op()]);
    let first = number(begun.results[0].clone().expect("a frame")) as u64;
    wait_for("some frames", || number(call(&emulator, Op::CurrentFrame {})) as u64 > first + 9);
    let reset = batch(&emulator, vec![Op::CurrentFrame {}, Op::Reset {}]);
    let last = number(reset.results[0].clone().expect("a frame")) as u64;
    let broken = next_where(&mut watch, |event| event.discontinuity.is_some());
    assert_eq!(broken.discontinuity, Some(Discontinuity::Reset));
    assert_eq!(broken.ticks, last - first, "{broken:?}");
    let next = soon(watch.next());
    assert_eq!((next.ticks, next.discontinuity), (broken.ticks + 1, None));
}

#[test]
fn lockstep_waits_for_each_advance_and_ends_after_its_time_out() {
    let (_runtime, _host, emulator) = attached();
    let mut events = emulator.events();
    let frame = |emulator: &Attached| number(call(emulator, Op::CurrentFrame {}));
    let refused = refusal(&emulator, Op::Advance { frames: 1 });
    assert_eq!(refused.status, Status::Unsupported);
    assert!(refused.message.contains("lockstep"), "{refused}");
    assert_eq!(refusal(&emulator, Op::Pause {}).status, Status::Unsupported);
    call(&emulator, Op::Lockstep { timeout: 5000 });
    assert!(emulator.state().lockstep);
    assert_eq!(emulator.state().run, Run::Paused);
    let first = frame(&emulator);
    for count in 1..=30 {
        assert_eq!(call(&emulator, Op::Advance { frames: 1 }), Value::Int(first + count));
        assert_eq!(frame(&emulator), first + count);
    }
    assert_eq!(call(&emulator, Op::Advance { frames: 10 }), Value::Int(first + 40));
    wait_for("ten frames", || frame(&emulator) == first + 40);
    next(&mut events, |kind| *kind == EventKind::LockstepOver);
    assert!(!emulator.state().lockstep);
    wait_for("frames", || frame(&emulator) > first + 60);
}

/// Seconds until `host`, which has stopped, runs frames again.
fn seconds_until_frames(host: &Embedded) -> f64 {
    let (begun, frame) = (Instant::now(), host.state().frame);
    wait_for("frames", || host.state().frame > frame + 10);
    begun.elapsed().as_secs_f64()
}

#[test]
fn framewires_own_requests_do_not_restart_the_time_out_of_lockstep() {
    let (_runtime, _host, emulator) = attached();
    let mut events = emulator.events();
    let measure = || {
        let begun = Instant::now();
        call(&emulator, Op::Lockstep { timeout: 2000 });
        next(&mut events, |kind| *kind == EventKind::LockstepOver);
        let waited = begun.elapsed().as_secs_f64();
        assert!(waited >= 1.9, "{waited} s");
        waited
    };
    until_good(measure, |waited| *waited < 4.0);
}

#[test]
fn lockstep_ends_within_two_seconds_after_the_connection_is_lost() {
    let measure = || {
        let (runtime, host, emulator) = attached();
        call(&emulator, Op::Lockstep { timeout: 60_000 });
        let begun = Instant::now();
        runtime.shutdown_background();
        let waited = seconds_until_frames(&host);
        let total = begun.elapsed().as_secs_f64();
        assert!(total >= 0.5, "{total} s");
        waited
    };
    until_good(measure, |waited| (0.5..2.0).contains(waited));
}

#[test]
fn lockstep_continues_after_a_short_disconnection() {
    let reconnect = || {
        let (runtime, port) = (runtime(), free_port());
        let _host = host(port);
        let proxy_port = free_port();
        let forwarder = forward(proxy_port, port, &runtime);
        let emulator = attach(proxy_port, &runtime);
        ready(&emulator);
        let mut events = emulator.events();
        call(&emulator, Op::Lockstep { timeout: 20_000 });
        let frame = number(call(&emulator, Op::CurrentFrame {}));
        let begun = Instant::now();
        forwarder.abort();
        next(&mut events, |kind| matches!(kind, EventKind::Disconnected { .. }));
        forward(proxy_port, port, &runtime);
        next(&mut events, |kind| *kind == EventKind::Connected);
        let time = begun.elapsed();
        let lockstep = emulator.state().lockstep;
        let advance = |frames| batch(&emulator, vec![Op::Advance { frames }]).single();
        let reached = [advance(2), advance(1)].map(|reached| reached.map(|reached| number(reached) - frame));
        let continues = lockstep && reached == [Ok(2), Ok(3)];
        assert!(continues || time > Duration::from_millis(500), "{lockstep}, {reached:?} after {time:?}");
        continues
    };
    // On a busy machine, the disconnection is not always short.
    until_good(reconnect, |continues| *continues);
}

#[test]
fn closing_the_emulator_ends_lockstep_at_once() {
    let measure = || {
        let (runtime, host, emulator) = attached();
        call(&emulator, Op::Lockstep { timeout: 60_000 });
        runtime.block_on(emulator.close());
        seconds_until_frames(&host)
    };
    until_good(measure, |waited| *waited < 0.9);
}

#[test]
fn a_long_advance_is_answered_after_its_frames_and_the_next_request_waits_for_it() {
    let (_runtime, host, emulator) = attached();
    call(&host, Op::SetSpeed { thousandths: 8000 });
    wait_for("the game", || read32(&emulator, GAME_FRAME) > 10);
    call(&emulator, Op::Lockstep { timeout: 5000 });
    let begun = batch(&emulator, vec![Op::Read32 { address: GAME_FRAME }]);
    let game = number(begun.results[0].clone().expect("a frame"));
    let advance = emulator.submit(Op::Advance { frames: 1200 }.into(), seconds(60.0));
    let later = emulator.submit(Op::Read32 { address: GAME_FRAME }.into(), seconds(0.5));
    let reached = advance.wait().expect("an outcome");
    assert_eq!(reached.frame, begun.frame + 1200);
    assert_eq!(reached.single().expect("a frame"), Value::Int(i64::from(begun.frame) + 1200));
    let later = later.wait().expect("no misleading deadline");
    assert_eq!((later.frame, later.single()), (begun.frame + 1200, Ok(Value::Int(game + 1200))));
}

#[test]
fn watches_end_when_the_emulator_is_closed() {
    let (runtime, _host, emulator) = attached();
    let (mut watch, _) = begin(&emulator, request(vec![range(UNUSED, 4)]));
    runtime.block_on(emulator.close());
    assert_eq!(within(Duration::from_secs(5), watch.next()), Some(None));
}
