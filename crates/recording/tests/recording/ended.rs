//! Tests that a recording ends before an event that it cannot contain, and that failed replays return the reason.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use framewire_emulator::{Attached, Embedded, Emulator};
use framewire_protocol::Op;
use framewire_recording::replay::{PlayOptions as Play, ReplayError, replay};
use framewire_recording::{Entry, Recording, Start, Writer};
use std::sync::Arc;

use crate::support::{Home, PATIENCE, core, done, played, recorded, state, wait_for};

async fn begun(core: &Arc<Embedded>) -> Home {
    let home = Home::new();
    done(&**core, vec![Op::Advance { frames: 20 }]).await;
    home.start(core, "run", Start::State, 10).await;
    done(&**core, vec![Op::Advance { frames: 35 }]).await;
    home
}

/// The frames after the last hash are not lost, and a new recording can begin at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_reset_a_loaded_state_and_another_game_end_a_recording_in_that_frame() {
    let core = core(true);
    let state = state(&core, 0).await;
    let rom = tempfile::Builder::new().suffix(".gba").tempfile().unwrap();
    std::fs::write(rom.path(), crate::support::DEMO).unwrap();
    let path = rom.path().to_str().unwrap().to_owned();
    for (op, what) in [
        (Op::Reset {}, "the console was reset"),
        (Op::LoadState { data: state, flags: 29 }, "a state was loaded"),
        (Op::LoadRom { path }, "another game was loaded"),
    ] {
        let home = Home::new();
        done(&*core, vec![Op::Reset {}, Op::Advance { frames: 20 }]).await;
        home.start(&core, "run", Start::State, 60).await;
        done(&*core, vec![Op::Advance { frames: 59 }, op, Op::Advance { frames: 3 }]).await;
        // The recording has ended at once: no further frame and no time has to pass.
        let active = home.recordings.active("core").await.unwrap();
        let reason = format!("{what} after frame 59");
        assert_eq!(active.ended.unwrap().unwrap().reason, reason);
        assert_eq!(active.progress.frames, 59);
        home.start(&core, "next", Start::State, 60).await;
        done(&*core, vec![Op::Advance { frames: 5 }]).await;
        assert_eq!(home.recordings.stop("core").await.unwrap().frames, 5);
        let recording = home.recording("run");
        assert_eq!(recording.ending(), &framewire_recording::Ending::Whole(reason));
        let report = played(&core, &recording).await;
        assert_eq!((report.frames, report.divergence), (59, None));
    }
}

/// At the end of a recording, the memory is hashed. Single steps would lead to a moment that no replay reaches.
#[tokio::test(flavor = "multi_thread")]
async fn a_recording_refuses_single_steps() {
    let core = core(true);
    let home = begun(&core).await;
    let refused = core.submit(Op::Step {}.into(), Instant::now() + PATIENCE).await.unwrap().single();
    assert!(refused.as_ref().is_err_and(|error| error.message.contains("single steps")), "{refused:?}");
    home.recordings.stop("core").await.unwrap();
    let report = played(&core, &home.recording("run")).await;
    assert_eq!((report.frames, report.is_equal()), (35, true));
    done(&*core, vec![Op::Step {}]).await;
}

/// The reset at the start does not end the recording. The next reset does, even before the first frame.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_second_reset_ends_a_recording_from_power_on() {
    let core = core(true);
    for (frames, ops) in [(0, vec![]), (7, vec![Op::Advance { frames: 7 }])] {
        let home = Home::new();
        home.start(&core, "run", Start::PowerOn, 60).await;
        assert!(home.recordings.active("core").await.unwrap().ended.is_none());
        done(&*core, ops).await;
        done(&*core, vec![Op::Reset {}]).await;
        let ended = home.recordings.active("core").await.unwrap().ended.unwrap().unwrap();
        assert_eq!(
            (ended.frames, ended.reason),
            (frames, format!("the console was reset after frame {frames}"))
        );
    }
}

/// The test blocks the only thread of the runtime. So the recorder takes no events, and their queue overflows.
#[tokio::test]
async fn a_recorder_that_is_too_slow_does_not_report_a_broken_connection() {
    let (home, core) = (Home::new(), core(true));
    home.start(&core, "run", Start::State, 1).await;
    let end = Instant::now() + PATIENCE;
    let advanced = core.submit(Op::Advance { frames: 1100 }.into(), end);
    while core.state().frame < 1100 {
        assert!(Instant::now() < end, "the frames have not run");
        std::thread::sleep(Duration::from_millis(2));
    }
    advanced.await.unwrap();
    let reason = home.recordings.active("core").await.unwrap().ended.unwrap().unwrap().reason;
    assert!(reason.starts_with("the keys after frame 0 are not known, because this computer"), "{reason}");
    assert!(reason.ends_with("events were lost"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn recordings_are_complete_when_the_server_or_the_emulator_ends() {
    let core = core(true);
    let home = begun(&core).await;
    home.recordings.close().await;
    assert_eq!(home.recording("run").frames(), 35);
    drop(core);

    let core = self::core(true);
    let home = begun(&core).await;
    // The recording keeps the emulator alive. When the recording has ended, the emulator ends too.
    let weak = Arc::downgrade(&core);
    drop(core);
    home.recordings.close().await;
    wait_for("the core's end", async || weak.upgrade().is_none()).await;
    assert_eq!(home.recording("run").frames(), 35);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_with_another_game_is_refused() {
    let (home, recording) = recorded(10, 10).await;
    let mut file = home.file("run");
    let at = file.windows(9).position(|line| line == b"checksum ").unwrap();
    let digit = &mut file[at + 9];
    *digit = if *digit == b'0' { b'1' } else { b'0' };
    assert!(framewire_recording::Recording::read(&file).is_err(), "the checksums cover the head too");
    let text = String::from_utf8(file[at + 9..at + 17].to_vec()).unwrap();
    let mut head = recording.head().clone();
    head.checksum = u32::from_str_radix(&text, 16).unwrap();
    let writer = framewire_recording::Writer::begin(Vec::new(), &head, recording.state().to_vec()).unwrap();
    let other = framewire_recording::Recording::read(&writer.end("").unwrap()).unwrap();
    let core = core(true);
    let error = replay(&*core, &other, &Play::default(), |_| ControlFlow::Continue(())).await.unwrap_err();
    assert!(matches!(error, ReplayError::OtherGame { .. }), "{error}");
    assert_eq!(core.state().frame, 0);
}

/// The file is complete, but its state is not valid.
#[tokio::test(flavor = "multi_thread")]
async fn the_error_for_an_invalid_state_contains_the_reason() {
    let (_home, recording) = recorded(10, 10).await;
    let writer = Writer::begin(Vec::new(), recording.head(), b"damaged".to_vec()).unwrap();
    let damaged = Recording::read(&writer.end("").unwrap()).unwrap();
    let core = core(true);
    let error = replay(&*core, &damaged, &Play::default(), |_| ControlFlow::Continue(())).await.unwrap_err();
    let ReplayError::State(reason) = &error else { panic!("{error}") };
    assert!(error.to_string().contains("the state that the recording begins with"), "{error}");
    assert!(!reason.message.is_empty() && error.to_string().contains(&reason.message), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_hashes_are_compared_even_if_a_frame_has_two_hashes_of_memory() {
    let (_home, recording) = recorded(100, 10).await;
    let mut writer = Writer::begin(Vec::new(), recording.head(), recording.state().to_vec()).unwrap();
    for entry in recording.entries() {
        match entry {
            Entry::Keys { keys, frames } => writer.keys(*keys, u64::from(*frames)).unwrap(),
            Entry::Picture(hash) => writer.picture(*hash).unwrap(),
            Entry::Memory(hash) => {
                writer.memory(*hash).unwrap();
                writer.memory(*hash).unwrap();
            }
            Entry::State(_) | Entry::End { .. } => {}
        }
    }
    let doubled = Recording::read(&writer.end("").unwrap()).unwrap();
    let core = core(true);
    let once = played(&core, &recording).await;
    let twice = played(&core, &doubled).await;
    assert_eq!((once.divergence, twice.divergence), (None, None));
    assert_eq!(twice.memories, 2 * once.memories);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_runs_frames_during_a_replay_is_detected() {
    let (_home, recording) = recorded(1000, 10).await;
    let core = core(true);
    let other = core.clone();
    let options = Play::default();
    let replay = replay(&*core, &recording, &options, |frames| {
        if frames == 240 {
            let op = Op::Advance { frames: 1 };
            drop(other.submit(op.into(), std::time::Instant::now() + Duration::from_secs(5)));
        }
        ControlFlow::Continue(())
    });
    let error = replay.await.unwrap_err();
    assert!(matches!(error, ReplayError::Disturbed(240)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_emulator_is_an_error() {
    let config = framewire_link::Config { address: "127.0.0.1:1".to_owned(), ..Default::default() };
    let attached = Arc::new(Attached::start(config, &tokio::runtime::Handle::current(), 0));
    let (_home, recording) = recorded(10, 10).await;
    let error = replay(&*attached, &recording, &Play::default(), |_| ControlFlow::Continue(())).await;
    assert!(matches!(error, Err(ReplayError::Emulator(_))));
    let home = Home::new();
    let options =
        framewire_recording::Options { start: Start::State, every: 1, note: String::new(), replace: false };
    let name = crate::support::name("run");
    assert!(home.recordings.start("core", attached, name, options).await.is_err());
    assert_eq!(home.recordings.list().unwrap(), []);
}
