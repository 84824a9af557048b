//! Tests of the folder of recordings.

use std::fs;

use framewire_protocol::Op;
use framewire_recording::{Ending, Options, RecordError, Start};
use framewire_states::FolderError;

use crate::support::{Home, core, done, name, played};

fn options(replace: bool) -> Options {
    Options { start: Start::State, every: 60, note: String::new(), replace }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emulator_has_one_recording_at_a_time_and_names_are_unique() {
    // A paused core, here and below: frames run only in `Advance`.
    let (home, core) = (Home::new(), core(true));
    home.start(&core, "a", Start::State, 60).await;
    let again = home.recordings.start("core", core.clone(), name("b"), options(false)).await;
    assert!(matches!(again, Err(RecordError::Recording(..))));
    // Another emulator cannot use the name of a recording in progress. Names that differ only in case are equal.
    let same = home.recordings.start("other", core.clone(), name("A"), options(false)).await;
    assert!(matches!(same, Err(RecordError::Folder(FolderError::Taken { .. }))));
    done(&*core, vec![Op::Advance { frames: 120 }]).await;
    assert_eq!(home.recordings.list().unwrap(), []);
    assert_eq!(home.recordings.stop("core").await.unwrap().frames, 120);
    assert!(matches!(home.recordings.stop("core").await, Err(RecordError::NotRecording(_))));

    let taken = home.recordings.start("core", core.clone(), name("A"), options(false)).await;
    assert!(matches!(taken, Err(RecordError::Folder(FolderError::Taken { .. }))));
    assert!(home.recordings.active("core").await.is_none());
    home.recordings.start("core", core.clone(), name("A"), options(true)).await.unwrap();
    assert_eq!(home.recordings.stop("core").await.unwrap().frames, 0);

    let list = home.recordings.list().unwrap();
    assert_eq!((list.len(), list[0].entry.name.as_str()), (1, "a"));
    assert_eq!((list[0].head.title.as_str(), list[0].head.frame), ("FRAMEWIRE", 120));
    assert_eq!(list[0].entry.size, home.file("a").len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_progress_of_a_recording_is_available() {
    let (home, core) = (Home::new(), core(true));
    home.start(&core, "a", Start::State, 10).await;
    done(&*core, vec![Op::Advance { frames: 40 }]).await;
    let frames = async || home.recordings.active("core").await.unwrap().progress.frames;
    crate::support::wait_for("40 frames", async || frames().await == 40).await;
    assert!(home.recordings.active("core").await.unwrap().ended.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_whose_name_was_taken_in_the_meantime_gets_another_name() {
    let (home, core) = (Home::new(), core(true));
    for expected in ["a-recovered", "a-recovered-2"] {
        let _ = home.recordings.folder().remove(&name("a"));
        home.start(&core, "a", Start::State, 10).await;
        done(&*core, vec![Op::Advance { frames: 25 }]).await;
        home.recordings.folder().write(&name("a"), b"of another program", false).unwrap();
        let summary = home.recordings.stop("core").await.unwrap();
        assert_eq!((summary.name.as_str(), summary.frames), (expected, 25));
        assert_eq!(home.file("a"), b"of another program");
        let report = played(&core, &home.recording(expected)).await;
        assert_eq!((report.frames, report.divergence), (25, None));
    }
}

/// The recording cannot get its name, because a folder with this name exists.
#[tokio::test(flavor = "multi_thread")]
async fn a_recording_that_could_not_get_its_name_is_completed_at_the_next_start() {
    let (home, core) = (Home::new(), core(true));
    home.recordings.start("core", core.clone(), name("a"), options(true)).await.unwrap();
    done(&*core, vec![Op::Advance { frames: 25 }]).await;
    let path = home.recordings.folder().path().join("a.fwr");
    fs::create_dir(&path).unwrap();
    let error = home.recordings.stop("core").await.unwrap_err().to_string();
    assert!(error.contains("a.fwr") && error.contains("at the next start"), "{error}");
    fs::remove_dir(&path).unwrap();
    let recovered = home.recordings.recover();
    let (called, frames) = recovered[0].outcome.as_ref().unwrap();
    assert_eq!((called.as_str(), *frames), ("a", 25));
    assert_eq!(home.recording("a").ending(), &Ending::Whole("stopped".to_owned()));
    assert_eq!(fs::read_dir(home.recordings.folder().path()).unwrap().count(), 1);
}
