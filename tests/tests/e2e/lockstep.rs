//! Lockstep with a stock mGBA in a window, and the events that its script sends.

use std::time::{Duration, Instant};

use framewire_e2e::{
    FrameClient, Framewire, Key, Reply, Signal, StockMgba, StockOptions, demo, paths, ports, until_good,
};
use framewire_protocol::event::{self, EventFrame, EventItem};
use framewire_protocol::{KeyStep, MemoryRange, Op, OpError, Outcome, Value, timeline, watch};

use super::served::{PATIENCE, other_game, wait_for_run, wait_until};

/// Another script. When Framewire's script resets the game, mGBA calls this callback in the middle of Framewire's code.
const ANOTHER: &str = "callbacks:add('reset', function() console:log('reset') end)";

fn window() -> (StockMgba, FrameClient) {
    let options = StockOptions::new(&paths::rom()).lua(ANOTHER).script(&paths::script()).port(ports::free());
    let mgba = StockMgba::start(&options).unwrap();
    let mut client = FrameClient::connect(mgba.address(), 7, PATIENCE).unwrap();
    wait_for_game(&mut client);
    (mgba, client)
}

/// Waits until the game is initialized and reads keys, which takes some frames.
fn wait_for_game(client: &mut FrameClient) {
    wait_until("the game has begun", || Ok(client.perform(vec![game_frame()])?.frame > 60));
}

#[track_caller]
fn ints(outcome: Outcome) -> Vec<i64> {
    let int = |result: Result<Value, OpError>| match result.unwrap() {
        Value::Int(value) => value,
        other => panic!("{other:?} instead of a number"),
    };
    outcome.results.into_iter().map(int).collect()
}

fn game_frame() -> Op {
    Op::Read32 { address: demo::field("frame") }
}

#[test]
fn frames_wait_for_the_client_and_run_freely_after_it_falls_silent() {
    const TIMEOUT: Duration = Duration::from_secs(6);
    let (_mgba, mut client) = window();
    let lockstep = Op::Lockstep { timeout: TIMEOUT.as_millis() as u32 };
    let begun = client.perform(vec![lockstep]).unwrap();
    begun.results[0].as_ref().unwrap();
    let begun = client.perform(vec![game_frame()]).unwrap();
    let (start, game) = (begun.frame, ints(begun)[0]);

    let steps = timeline::encode(&[KeyStep { offset: 4, keys: 1 }, KeyStep { offset: 9, keys: 0 }]);
    client.perform(vec![Op::PlayKeys { steps }]).unwrap().results[0].as_ref().unwrap();
    for step in 1..=20 {
        // The operation before the advance sees the old frame. Operations that are sent later see the new frame.
        client.send(vec![game_frame(), Op::Advance { frames: 1 }]).unwrap();
        let next = client.send(vec![game_frame(), Op::Read16 { address: demo::field("held") }]).unwrap();
        let before = client.outcome(next - 1).unwrap();
        assert_eq!(before.frame, start + step, "the reply comes after the frame has run");
        assert_eq!(ints(before), [game + i64::from(step) - 1, i64::from(start + step)]);
        let after = client.outcome(next).unwrap();
        assert_eq!(after.frame, start + step);
        assert_eq!(ints(after), [game + i64::from(step), i64::from((5..=9).contains(&step))]);
    }
    client.send(vec![Op::Advance { frames: 25 }]).unwrap();
    let last = client.send(vec![game_frame()]).unwrap();
    assert_eq!(ints(client.outcome(last - 1).unwrap()), [i64::from(start) + 45]);
    assert_eq!(ints(client.outcome(last).unwrap()), [game + 45]);

    // The timeout begins when the script gets the next request, which is after this moment.
    let asked = Instant::now();
    assert_eq!(ints(client.perform(vec![game_frame()]).unwrap()), [game + 45]);
    let over = wait_for_event(&mut client, |item| *item == EventItem::LockstepOver);
    let waited = asked.elapsed();
    assert!(waited + Duration::from_millis(50) > TIMEOUT, "ended after {waited:?}");
    assert_eq!(over.frame, start + 46);
    wait_until("frames run", || Ok(ints(client.perform(vec![game_frame()])?)[0] > game + 100));

    let refused = client.perform(vec![Op::Advance { frames: 1 }]).unwrap().single().unwrap_err();
    assert!(refused.message.contains("lockstep"), "{refused}");
}

/// Waits for an event with a matching item.
fn wait_for_event(client: &mut FrameClient, wanted: impl Fn(&EventItem) -> bool) -> EventFrame {
    loop {
        let event = client.event().unwrap();
        if event.items.iter().any(&wanted) {
            return event;
        }
    }
}

#[test]
fn a_window_in_lockstep_can_be_closed_after_the_timeout() {
    let (mut mgba, mut client) = window();
    client.perform(vec![Op::Lockstep { timeout: 1000 }]).unwrap().results[0].as_ref().unwrap();
    mgba.close_window().unwrap();
    assert_eq!(mgba.wait_exit(PATIENCE).unwrap().code(), Some(0));
}

/// Starts a server whose only emulator is the window.
fn server(mgba: &StockMgba) -> Framewire {
    let server = Framewire::serve(&["--attach", &mgba.address().to_string()]).unwrap();
    wait_for_run(&server.http(), "running");
    server
}

fn post(server: &Framewire, path: &str, body: &str) -> Reply {
    server.http().send("POST", path, "application/json", body.into()).unwrap()
}

#[test]
fn lockstep_ends_at_its_timeout_without_requests() {
    let (mut mgba, client) = window();
    drop(client);
    let server = server(&mgba);
    let waited = || {
        let begun = Instant::now();
        assert_eq!(post(&server, "/v1/lockstep", r#"{"timeout": 2000}"#).status, 200);
        wait_until("lockstep is over", || {
            Ok(server.http().get("/v1/emulator")?.text().contains(r#""lockstep":false"#))
        });
        let waited = begun.elapsed().as_secs_f64();
        assert!(waited >= 1.9, "{waited} s");
        waited
    };
    until_good(waited, |seconds| *seconds < 4.0);
    assert_eq!(post(&server, "/v1/lockstep", r#"{"timeout": 2000}"#).status, 200);
    mgba.close_window().unwrap();
    assert_eq!(mgba.wait_exit(Duration::from_secs(10)).unwrap().code(), Some(0));
}

#[test]
fn lockstep_ends_within_two_seconds_of_its_servers_end() {
    let (mgba, mut client) = window();
    for signal in [Signal::KILL, Signal::STOP, Signal::TERM] {
        let waited = || {
            let mut server = server(&mgba);
            assert_eq!(post(&server, "/v1/lockstep", r#"{"timeout": 60000}"#).status, 200);
            let still = client.perform(vec![game_frame()]).unwrap().frame;
            server.signal(signal).unwrap();
            let begun = Instant::now();
            wait_until("frames run", || Ok(client.perform(vec![game_frame()])?.frame > still + 3));
            begun.elapsed().as_secs_f64()
        };
        // A server that gets SIGTERM ends lockstep itself. The script has to detect that a server was killed or
        // stopped.
        let limit = if signal == Signal::TERM { 1.0 } else { 2.2 };
        until_good(waited, |seconds| *seconds < limit);
    }
}

#[test]
fn an_advance_of_many_frames_in_a_window_is_answered_after_the_last() {
    let (mgba, mut client) = window();
    let server = server(&mgba);
    post(&server, "/v1/lockstep", r#"{"timeout": 10000}"#);
    let number = |reply: Reply, name: &str| {
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()[name].as_i64().unwrap()
    };
    let read = format!("/v1/memory/{}?type=u32", demo::field("frame"));
    let game = number(server.http().get(&read).unwrap(), "value");
    let from = number(post(&server, "/v1/advance", "{}"), "frame");
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let advance = scope.spawn(|| post(&server, "/v1/advance", r#"{"frames": 300}"#));
        wait_until("some of them were run", || {
            Ok(i64::from(client.perform(vec![game_frame()])?.frame) > from + 10)
        });
        // This read waits for the advance, so it takes longer than its deadline of 3 s, but does not fail.
        let after = server.http().get(&read).unwrap();
        assert_eq!(number(after, "value"), game + 301);
        assert!(begun.elapsed() > Duration::from_secs(3), "{:?}", begun.elapsed());
        assert_eq!(number(advance.join().unwrap(), "frame"), from + 300);
    });
}

#[test]
fn an_advance_fails_when_another_client_ends_lockstep_early() {
    let (mgba, mut client) = window();
    let mut other = FrameClient::connect(mgba.address(), 8, PATIENCE).unwrap();
    client.perform(vec![Op::Lockstep { timeout: 10_000 }]).unwrap().results[0].as_ref().unwrap();
    let start = client.perform(vec![game_frame()]).unwrap().frame;
    let advance = client.send(vec![Op::Advance { frames: 600 }]).unwrap();
    wait_until("some frames were run", || Ok(other.perform(vec![game_frame()])?.frame > start + 10));
    other.perform(vec![Op::Resume {}]).unwrap().results[0].as_ref().unwrap();
    let outcome = client.outcome(advance).unwrap();
    assert!((start + 10..start + 600).contains(&outcome.frame), "{outcome:?}");
    let refused = outcome.single().unwrap_err();
    assert!(
        refused.message.contains("lockstep ended after") && refused.message.contains("of 600 frames"),
        "{refused}"
    );
}

#[test]
fn a_link_receives_events_of_resets_games_and_keys() {
    let (mut mgba, mut client) = window();
    let reset = client.perform(vec![Op::Reset {}, game_frame()]).unwrap();
    assert!(reset.results.iter().all(Result::is_ok), "{reset:?}");
    assert!(mgba.console().contains("log reset"), "{}", mgba.console());
    assert!(wait_for_event(&mut client, |item| *item == EventItem::Reset).frame < 10);
    mgba.reset().unwrap();
    wait_for_event(&mut client, |item| *item == EventItem::Reset);

    // The keys in an event are the keys that the game read in that frame.
    wait_for_game(&mut client);
    let held = MemoryRange::new(None, demo::field("held"), 2);
    let ranges = watch::encode(&[held]);
    client.perform(vec![Op::Watch { id: 1, every: 0, flags: watch::FLAG_KEYS, ranges }]).unwrap();
    for (key, mask) in [('x', 1), ('z', 2)] {
        for keys in [mask, 0] {
            match keys {
                0 => mgba.release_key(Key::of(key)).unwrap(),
                _ => mgba.hold_key(Key::of(key)).unwrap(),
            }
            let event = wait_for_event(&mut client, |item| {
                let EventItem::Changed { values, .. } = item else { return false };
                values.iter().any(|value| value.bytes == [keys, 0] && value.range == event::KEYS)
            });
            let EventItem::Changed { values, .. } = &event.items[0] else { panic!("{event:?}") };
            assert_eq!(values.len(), 2, "the memory of the game, and the keys: {event:?}");
            assert_eq!(values[0].bytes, [keys, 0]);
        }
    }

    let folder = tempfile::tempdir().unwrap();
    mgba.open_rom(&other_game(&folder)).unwrap();
    let game = wait_for_event(&mut client, |item| *item == EventItem::Game);
    assert!(game.items.contains(&EventItem::Reset), "{game:?}");
}
