//! Tests of replays.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use framewire_emulator::embedded::{Config, Rom, Speed};
use framewire_emulator::{Embedded, Emulator, Run};
use framewire_protocol::{Op, Value};
use framewire_recording::replay::{Compared, Divergence, PlayOptions as Play, replay};
use framewire_recording::{Ending, Entry, Recording, Start, Writer};

use crate::keypad_counter::keypad_counter;
use crate::support::{
    DEMO, Home, PATIENCE, Random, SCRATCH, core, done, play_at_random, played, recorded, state, wait_for,
};

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_frames_replay_identically() {
    let (home, recording) = recorded(10_000, 8).await;
    assert_eq!((recording.frames(), recording.pictures()), (10_000, 1250));
    assert_eq!(recording.ending(), &Ending::Whole("stopped".to_owned()));
    let report = played(&core(true), &recording).await;
    assert_eq!((report.frames, report.pictures, report.memories), (10_000, 1250, 1250));
    assert_eq!((report.divergence, &report.damage, report.cancelled), (None, &None, false));
    // Without the state, the file has fewer than eight bytes per frame.
    let size = home.file("run").len() - recording.state().len();
    assert!(size < 80_000, "{size}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_clients_press_while_the_game_runs_are_recorded() {
    let (home, core) = (Home::new(), core(false));
    home.start(&core, "live", Start::State, 5).await;
    let mut random = Random(99);
    for _ in 0..100 {
        let keys = random.next() as u16 & 0x3FF;
        done(&*core, vec![Op::HoldKeys { keys: keys.max(1), frames: 1 + random.next() % 5 }]).await;
        done(&*core, vec![Op::AddKeys { keys: 1 << (random.next() % 10) }]).await;
        let then = frame(&core).await;
        wait_for("a frame", async || frame(&core).await != then).await;
        done(&*core, vec![Op::ClearKeys { keys: random.next() as u16 & 0x3FF }]).await;
    }
    home.recordings.stop("core").await.unwrap();
    let recording = home.recording("live");
    assert!(recording.frames() > 20 && recording.entries().len() > 20, "{} frames", recording.frames());
    let report = played(&core, &recording).await;
    assert_eq!((report.frames, report.divergence), (recording.frames(), None));
    assert_eq!(report.pictures, recording.frames() / 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_can_begin_with_power_on() {
    let (home, core) = (Home::new(), core(true));
    done(&*core, vec![Op::Advance { frames: 300 }]).await;
    home.start(&core, "on", Start::PowerOn, 30).await;
    play_at_random(&core, 300, &mut Random(5)).await;
    home.recordings.stop("core").await.unwrap();
    let recording = home.recording("on");
    assert_eq!((recording.head().start, recording.head().frame), (Start::PowerOn, 0));
    let report = played(&core, &recording).await;
    assert_eq!((report.frames, report.pictures, report.divergence), (300, 10, None));
}

async fn frame(core: &Embedded) -> Value {
    done(core, vec![Op::CurrentFrame {}]).await.remove(0)
}

/// The keys of one frame are changed, and the file's checksums are computed again.
#[tokio::test(flavor = "multi_thread")]
async fn changed_keys_are_detected_at_their_frame() {
    let (_home, recording) = recorded(400, 1).await;
    for (forged, through) in [(1, true), (2, false), (137, true), (400, false)] {
        let mut writer = Writer::begin(Vec::new(), recording.head(), recording.state().to_vec()).unwrap();
        for entry in recording.entries() {
            match entry {
                Entry::Keys { keys, frames } => {
                    assert_eq!(*frames, 1, "there is a picture after each");
                    let flip = if writer.frames() + 1 == forged { 0x200 } else { 0 };
                    writer.keys(keys ^ flip, 1).unwrap();
                }
                Entry::Picture(hash) => writer.picture(*hash).unwrap(),
                Entry::Memory(hash) => writer.memory(*hash).unwrap(),
                _ => {}
            }
        }
        let forgery = Recording::read(&writer.end("forged").unwrap()).unwrap();
        let options = Play { through, ..Play::default() };
        let report = replay(&*core(true), &forgery, &options, |_| ControlFlow::Continue(())).await.unwrap();
        let Some(Divergence { frame, agreed, what, .. }) = report.divergence else { panic!("not found") };
        assert_eq!((frame, agreed, what), (forged, forged - 1, Compared::Picture));
        // Without `through`, the replay ends with the slice that contains the difference. A slice has 240 frames.
        assert_eq!(report.frames == 400, through || forged > 240);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_memory_is_detected_even_if_the_picture_is_the_same() {
    let (home, core) = (Home::new(), core(true));
    done(&*core, vec![Op::Advance { frames: 50 }]).await;
    home.start(&core, "poked", Start::State, 10).await;
    done(&*core, vec![Op::Advance { frames: 25 }, Op::Write8 { address: SCRATCH, value: 7 }]).await;
    home.recordings.stop("core").await.unwrap();
    let report = played(&core, &home.recording("poked")).await;
    let divergence = report.divergence.unwrap();
    assert_eq!((divergence.frame, divergence.agreed, divergence.what), (25, 20, Compared::Memory));
    assert_eq!(report.pictures, 2);
}

/// Memory changes after frame 25, and is compared every 10 frames. The report's first different frame is 30, and its
/// last equal frame is 20.
#[tokio::test(flavor = "multi_thread")]
async fn changed_memory_is_detected_at_the_next_hash() {
    let (home, core) = (Home::new(), core(true));
    home.start(&core, "poked", Start::State, 10).await;
    let poke = Op::Write8 { address: SCRATCH, value: 7 };
    done(&*core, vec![Op::Advance { frames: 25 }, poke, Op::Advance { frames: 100 }]).await;
    home.recordings.stop("core").await.unwrap();
    let report = played(&core, &home.recording("poked")).await;
    let divergence = report.divergence.unwrap();
    assert_eq!((divergence.frame, divergence.agreed, divergence.what), (30, 20, Compared::Memory));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_can_compute_hashes_at_another_interval() {
    let (_home, recording) = recorded(120, 10).await;
    let core = core(true);
    let options = Play { every: Some(4), ..Play::default() };
    let report = replay(&*core, &recording, &options, |_| ControlFlow::Continue(())).await.unwrap();
    // Every twentieth frame has a hash in both the recording and the replay.
    assert_eq!((report.hashes.len(), report.pictures, report.divergence), (30, 6, None));
    let again = Recording::read(&recording.write_with(Vec::new(), 4, &report.hashes).unwrap()).unwrap();
    assert_eq!(again.pictures(), 30);
    let report = played(&core, &again).await;
    assert_eq!((report.pictures, report.memories, report.divergence), (30, 12, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_can_restore_the_emulators_state() {
    let (_home, recording) = recorded(60, 10).await;
    let core = core(true);
    done(&*core, vec![Op::Advance { frames: 10 }, Op::Write8 { address: SCRATCH, value: 9 }]).await;
    let options = Play { restore: true, ..Play::default() };
    let report = replay(&*core, &recording, &options, |_| ControlFlow::Continue(())).await.unwrap();
    assert_eq!(report.frames, 60);
    let now = done(&*core, vec![Op::CurrentFrame {}, Op::Read8 { address: SCRATCH }]).await;
    assert_eq!((now, core.state().run), (vec![Value::Int(10), Value::Int(9)], Run::Paused));
    done(&*core, vec![Op::Resume {}]).await;
    wait_for("frames", async || core.state().run == Run::Running).await;
    played(&core, &recording).await;
    wait_for("frames again", async || core.state().run == Run::Running).await;
}

/// The replay does not restore the state, because it belongs to another game.
#[tokio::test(flavor = "multi_thread")]
async fn the_game_continues_after_a_replay_even_if_another_game_was_loaded_meanwhile() {
    let (_home, recording) = recorded(60, 10).await;
    let core = core(false);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.gba");
    let mut other = DEMO.to_vec();
    // A letter of the title. The emulator accepts the states of a game with the same title and code.
    other[0xA0] ^= 1;
    std::fs::write(&path, other).unwrap();
    let load = Op::LoadRom { path: path.to_str().unwrap().to_owned() };
    let options = Play { restore: true, speed: Some(10.0), ..Play::default() };
    let mut loading = None;
    let ended = replay(&*core, &recording, &options, |frames| {
        if frames == 10 {
            // The emulator loads the game before the next frame.
            loading = Some(core.submit(load.clone().into(), Instant::now() + PATIENCE));
        }
        ControlFlow::Continue(())
    });
    assert!(ended.await.is_err());
    assert!(loading.unwrap().await.unwrap().results[0].is_ok());
    wait_for("frames", async || core.state().run == Run::Running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_another_client_loads_during_a_replay_stays() {
    let (_home, recording) = recorded(60, 10).await;
    let core = core(true);
    done(&*core, vec![Op::Advance { frames: 500 }, Op::Write8 { address: SCRATCH, value: 9 }]).await;
    let theirs = state(&core, 31).await;
    done(&*core, vec![Op::Reset {}]).await;
    let options = Play { restore: true, speed: Some(10.0), ..Play::default() };
    let mut loading = None;
    let ended = replay(&*core, &recording, &options, |frames| {
        if frames == 10 {
            let load = Op::LoadState { data: theirs.clone(), flags: 31 };
            loading = Some(core.submit(load.into(), Instant::now() + PATIENCE));
        }
        ControlFlow::Continue(())
    });
    let error = ended.await.unwrap_err().to_string();
    assert!(error.contains("another client"), "{error}");
    assert!(loading.unwrap().await.unwrap().results[0].is_ok());
    assert_eq!(done(&*core, vec![Op::Read8 { address: SCRATCH }]).await, [Value::Int(9)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_game_in_lockstep_continues_when_lockstep_ends_after_a_replay() {
    let (_home, recording) = recorded(60, 10).await;
    let core = core(false);
    done(&*core, vec![Op::Lockstep { timeout: 60_000 }]).await;
    assert!(played(&core, &recording).await.is_equal());
    assert!(core.state().lockstep);
    done(&*core, vec![Op::Lockstep { timeout: 0 }]).await;
    assert_eq!(core.state().run, Run::Running);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hash_of_the_memory_before_the_first_frame_is_compared() {
    let (_home, recording) = recorded(0, 10).await;
    let report = played(&core(true), &recording).await;
    assert_eq!((report.frames, report.memories, report.is_equal()), (0, 1, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_held_before_a_replay_do_not_change_it() {
    let rom = Rom::Bytes(keypad_counter(DEMO).leak());
    let config = Config { speed: Speed::Unlimited, paused: true, ..Config::new(rom) };
    let (home, core) = (Home::new(), Arc::new(Embedded::start(config).unwrap()));
    done(&*core, vec![Op::Advance { frames: 20 }]).await;
    home.start(&core, "run", Start::State, 10).await;
    done(&*core, vec![Op::SetKeys { keys: 1 }, Op::Advance { frames: 30 }]).await;
    home.recordings.stop("core").await.unwrap();
    // A is still held.
    let report = played(&core, &home.recording("run")).await;
    assert_eq!((report.frames, report.divergence), (30, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_replay_changes_neither_keys_nor_the_game() {
    let (_home, recording) = recorded(60, 10).await;
    let core = core(true);
    let light = Op::SetSensor { sensor: "light".to_owned(), thousandths: 500 };
    done(&*core, vec![Op::Advance { frames: 10 }, light, Op::SetKeys { keys: 0x10 }]).await;
    let lines = || core.history().map(|history| history.overview(0).lines.len());
    let before = (state(&core, 0).await, lines());
    let options = Play { restore: true, ..Play::default() };
    let refused = replay(&*core, &recording, &options, |_| ControlFlow::Continue(())).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("light"), "{error}");
    assert_eq!(done(&*core, vec![Op::GetKeys {}]).await, [Value::Int(0x10)]);
    assert!((state(&core, 0).await, lines()) == before, "the game or its history has changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_can_be_cancelled_and_has_the_requested_speed() {
    let (_home, recording) = recorded(60, 10).await;
    let core = core(true);
    let mut reported = Vec::new();
    let options = Play { speed: Some(10.0), ..Play::default() };
    let begun = std::time::Instant::now();
    let report = replay(&*core, &recording, &options, |frames| {
        reported.push(frames);
        if frames == 30 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let report = report.await.unwrap();
    assert_eq!((report.frames, report.cancelled), (30, true));
    assert_eq!(reported, (1..=30).collect::<Vec<_>>());
    // Thirty frames at ten times the speed, without the wait after the last frame.
    assert!(begun.elapsed().as_secs_f64() > 29.0 / 597.275);
}
