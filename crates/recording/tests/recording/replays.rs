//! Tests of replays in the background.

use framewire_recording::replay::PlayOptions;
use framewire_recording::{Recording, Replays};

use crate::support::{core, name, recorded, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn an_emulator_plays_one_recording_at_a_time() {
    let (home, recording) = recorded(60, 10).await;
    let again = || Recording::read(&home.file("run")).unwrap();
    let (core, replays) = (core(true), Replays::default());
    let slow = PlayOptions { speed: Some(0.1), ..PlayOptions::default() };
    assert!(replays.latest("core").is_none());
    let first = replays.start("core", core.clone(), name("run"), recording, slow).ok().unwrap();
    wait_for("a frame", async || first.played() > 0).await;
    let busy =
        replays.start("core", core.clone(), name("again"), again(), PlayOptions::default()).err().unwrap();
    assert_eq!((busy.name.to_string(), busy.frames), ("run".to_owned(), 60));
    assert!(first.result().is_none());
    first.cancel();
    first.wait().await;
    let report = first.result().unwrap().unwrap();
    assert!(report.cancelled && !report.is_equal() && report.frames < 60, "{report:?}");
    let second = replays.start("core", core, name("again"), again(), PlayOptions::default()).ok().unwrap();
    second.wait().await;
    let report = second.result().unwrap().unwrap();
    assert!(report.is_equal() && report.frames == 60, "{report:?}");
    assert_eq!(replays.latest("core").unwrap().name.to_string(), "again");
}

#[tokio::test(flavor = "multi_thread")]
async fn close_cancels_all_replays() {
    let (_home, recording) = recorded(60, 10).await;
    let replays = Replays::default();
    let slow = PlayOptions { speed: Some(0.1), ..PlayOptions::default() };
    let task = replays.start("core", core(true), name("run"), recording, slow).ok().unwrap();
    replays.close().await;
    assert!(task.result().unwrap().unwrap().cancelled);
    assert!(replays.latest("core").is_none());
}
