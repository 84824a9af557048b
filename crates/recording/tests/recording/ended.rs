//! What a recording cannot hold ends it before that, and what cannot be played says why.

use std::ops::ControlFlow;
use std::time::Duration;

use framewire_emulator::{Attached, Embedded, Emulator};
use framewire_protocol::Op;
use framewire_recording::replay::{Options as Play, ReplayError, replay};
use framewire_recording::{Start, Summary};
use std::sync::Arc;

use crate::support::{Home, core, done, played, recorded, wait_for};

/// Waits until a recording has ended by itself.
async fn ended(home: &Home) -> Summary {
    wait_for("the end", async || home.recordings.active("core").await.unwrap().ended.is_some()).await;
    home.recordings.stop("core").await.unwrap()
}

async fn begun(core: &Arc<Embedded>) -> Home {
    let home = Home::new();
    done(&**core, vec![Op::Advance { frames: 20 }]).await;
    home.start(core, "run", Start::State, 10).await;
    done(&**core, vec![Op::Advance { frames: 35 }]).await;
    home
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_or_a_reset_ends_it() {
    let core = core(true);
    for op in [Op::Reset {}, Op::LoadState { data: state(&core).await, flags: 29 }] {
        let home = begun(&core).await;
        done(&*core, vec![op, Op::Advance { frames: 40 }]).await;
        let summary = ended(&home).await;
        // The last event before it was that of the thirtieth frame.
        assert_eq!(summary.frames, 30);
        assert_eq!(summary.reason, "a state was loaded or the console was reset behind frame 30");
        let report = played(&core, &home.recording("run")).await;
        assert_eq!((report.frames, report.divergence), (30, None));
    }
}

async fn state(core: &Arc<Embedded>) -> Vec<u8> {
    match done(&**core, vec![Op::SaveState { flags: 0 }]).await.remove(0) {
        framewire_protocol::Value::Bytes(state) => state,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_emulator_or_the_server_ends_it() {
    let core = core(true);
    let home = begun(&core).await;
    home.recordings.close().await;
    assert_eq!(home.recording("run").frames(), 35);
    drop(core);

    let core = self::core(true);
    let home = begun(&core).await;
    // The recording holds the emulator too, and ends when that says so.
    let weak = Arc::downgrade(&core);
    drop(core);
    home.recordings.close().await;
    wait_for("the core's end", async || weak.upgrade().is_none()).await;
    assert_eq!(home.recording("run").frames(), 35);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_game_is_refused() {
    let (home, recording) = recorded(10, 10).await;
    let mut file = home.file("run");
    let at = file.windows(9).position(|line| line == b"checksum ").unwrap();
    let digit = &mut file[at + 9];
    *digit = if *digit == b'0' { b'1' } else { b'0' };
    assert!(framewire_recording::Recording::read(&file).is_err(), "the checksums hold the head too");
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

#[tokio::test(flavor = "multi_thread")]
async fn who_drives_meanwhile_is_noticed() {
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
async fn an_emulator_that_is_not_there_says_so() {
    let config = framewire_link::Config { address: "127.0.0.1:1".to_owned(), ..Default::default() };
    let attached = Arc::new(Attached::start(config, &tokio::runtime::Handle::current()));
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
