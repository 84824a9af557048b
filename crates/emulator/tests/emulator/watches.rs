//! Tests of watches in an embedded core: they report every change, with its frame.

use std::time::Duration;

use framewire_emulator::embedded::{Embedded, Speed};
use framewire_emulator::{
    Change, Discontinuity, Emulator, MemoryRange, Watch, WatchEnd, WatchEvent, WatchRequest,
};
use framewire_protocol::{KeyStep, Op, Status, Value, timeline};

use super::support::{
    DEMO, GAME_FRAME, UNUSED, batch, bytes, call, config, rebuilt, refusal, rom_file, script, soon, start,
    within,
};

const BALL_X: u32 = 0x0200_0038;

pub fn range(address: u32, length: u16) -> MemoryRange {
    MemoryRange::new(None, address, length)
}

pub fn request(ranges: Vec<MemoryRange>) -> WatchRequest {
    WatchRequest { ranges, ..WatchRequest::default() }
}

/// A watch that has begun, and the bytes of its ranges at that time.
pub fn begin(emulator: &impl Emulator, request: WatchRequest) -> (Watch, Vec<u8>) {
    let watch = emulator.watch(request);
    let base = bytes(call(emulator, watch.op()));
    (watch, base)
}

/// Waits for the next event that is `wanted`, and skips the events before it.
pub fn next_where(watch: &mut Watch, wanted: impl Fn(&WatchEvent) -> bool) -> WatchEvent {
    loop {
        let event = soon(watch.next());
        if wanted(&event) {
            return event;
        }
    }
}

/// Checks that there are no further events.
fn nothing_more(watch: &mut Watch) {
    assert_eq!(within(Duration::from_millis(50), watch.next()), None);
}

#[test]
fn each_change_is_reported_once_with_its_frame() {
    let emulator = start(Speed::Times(1.0), true);
    call(&emulator, Op::Advance { frames: 60 });
    // The bytes of GAME_FRAME again, in a memory domain.
    let domain = MemoryRange::new(Some("wram".to_owned()), 8, 4);
    let (mut watch, base) = begin(&emulator, request(vec![range(UNUSED, 4), domain, range(GAME_FRAME, 4)]));
    let game = bytes(call(&emulator, Op::ReadRange { address: GAME_FRAME, length: 4 }));
    assert_eq!(base, [vec![0; 4], game.clone(), game.clone()].concat());
    let game = u32::from_le_bytes(game.try_into().expect("four"));
    for (before, frame) in (game..).zip(61..=70) {
        call(&emulator, Op::Advance { frames: 1 });
        let event = soon(watch.next());
        let (old, new) = (before.to_le_bytes().to_vec(), (before + 1).to_le_bytes().to_vec());
        let change = |range| Change { range, old: old.clone(), new: new.clone() };
        assert_eq!((event.frame, event.ticks), (frame, u64::from(frame) - 60));
        assert_eq!(event.changes, [change(1), change(2)]);
        assert_eq!((event.keys, event.hash, event.gap, event.missed), (None, None, false, 0));
    }
    nothing_more(&mut watch);
}

#[test]
fn regular_events_keys_and_hashes_are_reported_as_requested() {
    let emulator = start(Speed::Times(1.0), true);
    let mut watch = emulator.watch(WatchRequest { every: 10, keys: true, hashes: true, ..request(vec![]) });
    let steps = timeline::encode(&[KeyStep { offset: 3, keys: 1 }, KeyStep { offset: 5, keys: 0 }]);
    let outcome = batch(&emulator, vec![watch.op(), Op::PlayKeys { steps }, Op::Advance { frames: 20 }]);
    assert_eq!(outcome.results[0], Ok(Value::Bytes(vec![])));
    let wanted = [(1, 0), (4, 1), (6, 0), (10, 0), (20, 0)];
    let events: Vec<_> = wanted.iter().map(|_| soon(watch.next())).collect();
    let reported: Vec<_> = events.iter().map(|event| (event.frame, event.keys.expect("keys"))).collect();
    assert_eq!(reported, wanted);
    assert!(events.iter().all(|event| event.hash.is_some() == (event.ticks % 10 == 0)));
    let picture = soon(emulator.video().expect("pictures").next());
    assert_eq!(events[4].hash, Some(crc32fast::hash(&picture.pixels)));
    nothing_more(&mut watch);
}

/// Computing hashes takes about as long as emulating a frame, so events between the regular ones have no hashes.
#[test]
fn keys_are_reported_every_30_frames_and_hashes_only_in_regular_events() {
    let emulator = start(Speed::Times(1.0), true);
    for every in [31, 37, 59, 61, 3600] {
        let request = WatchRequest { every, keys: true, hashes: true, ..request(vec![]) };
        let mut watch = emulator.watch(request);
        batch(&emulator, vec![watch.op(), Op::Advance { frames: 2 * 61 }]);
        let mut last = 0;
        while let Some(Some(event)) = within(Duration::from_millis(50), watch.next()) {
            assert_eq!(event.hash.is_some(), event.ticks.is_multiple_of(every.into()), "{every}: {event:?}");
            assert!(event.ticks <= last + 30, "{every}: nothing from frame {last} to {}", event.ticks);
            last = event.ticks;
        }
        assert!(last + 30 > 2 * 61, "{every}: nothing after frame {last}");
    }
}

#[test]
fn a_watch_sees_a_frame_before_the_callback_of_a_script_changes_it() {
    let source = format!(
        "callbacks:add('frame', function()
           emu:write32({UNUSED}, emu:currentFrame())
           emu:addKeys(1)
         end)"
    );
    let script = script(&source);
    let emulator = Embedded::start(config(Speed::Times(1.0), true, vec![script.path().to_owned()]))
        .expect("the script loads");
    let (mut watch, _) = begin(&emulator, WatchRequest { keys: true, ..request(vec![range(UNUSED, 4)]) });
    call(&emulator, Op::Advance { frames: 2 });
    let first = soon(watch.next());
    assert_eq!((first.frame, first.changes.len(), first.keys), (1, 0, Some(0)));
    let second = soon(watch.next());
    assert_eq!((second.frame, second.changes[0].new.as_slice()), (2, &[1, 0, 0, 0][..]));
    assert_eq!(second.keys, Some(1));
}

#[test]
fn twenty_watches_miss_no_change_of_the_ball() {
    const FRAMES: u64 = 120;
    let emulator = start(Speed::Times(1.0), true);
    call(&emulator, Op::Advance { frames: 140 }); // now the ball moves, until it is lost at some point
    let ranges = || vec![range(BALL_X, 4), range(GAME_FRAME, 4)];
    let mut watches: Vec<Watch> = (0..20).map(|_| begin(&emulator, request(ranges())).0).collect();
    call(&emulator, Op::Resume {});
    let mut ball = 0;
    for watch in &mut watches {
        for tick in 1..=FRAMES {
            let event = soon(watch.next());
            assert_eq!((event.ticks, event.missed), (tick, 0));
            assert!(event.changes.iter().any(|change| change.range == 1));
            ball += usize::from(event.changes[0].range == 0);
        }
    }
    assert!(ball > 20 * 40, "{ball} moves of the ball");
}

#[test]
fn a_slow_receiver_loses_the_oldest_events_and_learns_how_many() {
    let emulator = start(Speed::Times(1.0), true);
    call(&emulator, Op::Advance { frames: 60 });
    let (mut slow, _) = begin(&emulator, request(vec![range(GAME_FRAME, 4)]));
    for _ in 0..6 {
        call(&emulator, Op::Advance { frames: 300 });
    }
    let first = soon(slow.next());
    assert_eq!(first.missed, first.ticks - 1);
    assert!(first.missed > 500, "{}", first.missed);
    let second = soon(slow.next());
    assert_eq!((second.missed, second.ticks), (0, first.ticks + 1));
}

#[test]
fn invalid_watches_are_refused_and_a_watch_ends_with_its_handle() {
    let emulator = start(Speed::Times(1.0), true);
    let unknown = MemoryRange::new(Some("none".to_owned()), 0, 1);
    for (wrong, says) in [
        (request(vec![range(0, 0)]), "not an expression"), // length 0 stands for an expression
        (request(vec![range(0, 4097)]), "1 to 4096"),
        (request(vec![range(0, 1); 257]), "256"),
        (request(vec![unknown]), "wram"),
        (WatchRequest { hashes: true, ..request(vec![]) }, "every"),
    ] {
        let error = refusal(&emulator, emulator.watch(wrong).op());
        assert_eq!(error.status, Status::BadArgument);
        assert!(error.message.contains(says), "{error}");
    }
    let (mut watch, _) = begin(&emulator, WatchRequest { every: 1, ..request(vec![]) });
    let op = watch.op();
    let Op::Watch { id, .. } = op else { panic!("{op:?}") };
    refusal(&emulator, Op::Watch { id, every: 1, flags: 9, ranges: vec![] });
    call(&emulator, Op::Advance { frames: 1 });
    assert_eq!(soon(watch.next()).ticks, 1, "the refused operation has changed nothing");
    drop(watch);
    assert!(refusal(&emulator, op).message.contains("no receiver"), "the handle is gone");
    // More watches than are allowed at the same time, but each ends before the next one begins.
    for _ in 0..2000 {
        begin(&emulator, request(vec![range(UNUSED, 4096)]));
    }
    let watches: Vec<_> = (0..64).map(|_| begin(&emulator, request(vec![range(UNUSED, 4096)])).0).collect();
    let one_more = emulator.watch(request(vec![range(UNUSED, 1)]));
    assert_eq!(refusal(&emulator, one_more.op()).status, Status::Busy);
    drop(watches);
    call(&emulator, one_more.op());
}

#[test]
fn a_watch_ends_when_the_emulator_is_gone() {
    let emulator = start(Speed::Times(1.0), true);
    call(&emulator, Op::Advance { frames: 60 });
    let (mut watch, _) = begin(&emulator, request(vec![range(GAME_FRAME, 4)]));
    call(&emulator, Op::Advance { frames: 1 });
    drop(emulator);
    assert_eq!(soon(watch.next()).ticks, 1);
    assert_eq!(within(Duration::from_secs(5), watch.next()), Some(None));
}

#[test]
fn a_watch_ends_with_the_first_frame_of_another_game() {
    let emulator = start(Speed::Times(1.0), true);
    let (mut watch, _) = begin(&emulator, WatchRequest { every: 1, ..request(vec![range(GAME_FRAME, 4)]) });
    let (mut keys, _) = begin(&emulator, WatchRequest { keys: true, ..request(vec![]) });
    call(&emulator, Op::Advance { frames: 2 });
    let (same, (_other, path)) = (rom_file(DEMO), rom_file(&rebuilt()));
    // The same game again: the watch continues.
    call(&emulator, Op::LoadRom { path: same.1 });
    call(&emulator, Op::Advance { frames: 3 });
    call(&emulator, Op::LoadRom { path });
    assert_eq!(watch.end(), None, "no frame of the other game has run");
    call(&emulator, Op::Advance { frames: 3 });
    assert_eq!(watch.end(), Some(WatchEnd::OtherGame));
    let events: Vec<_> = std::iter::from_fn(|| soon(async { Some(watch.next().await) })).collect();
    assert_eq!(
        events.last().map(|event| event.ticks),
        Some(5),
        "there are no events of the other game: {events:?}"
    );
    assert_eq!(keys.end(), None);
    let reported = std::iter::from_fn(|| Some(soon(keys.next()))).find(|event| event.discontinuity.is_some());
    assert_eq!(reported.and_then(|event| event.discontinuity), Some(Discontinuity::Game));
    let (mut watch, _) = begin(&emulator, WatchRequest { every: 1, ..request(vec![]) });
    call(&emulator, Op::Advance { frames: 2 });
    assert_eq!(soon(watch.next()).ticks, 1);
}
