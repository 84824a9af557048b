//! Recordings in a folder.

use framewire_protocol::Op;
use framewire_recording::{Options, RecordError, Start};
use framewire_states::FolderError;

use crate::support::{Home, core, done, name};

fn options(replace: bool) -> Options {
    Options { start: Start::State, every: 60, note: String::new(), replace }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_is_made_at_a_time_and_none_is_overwritten() {
    let (home, core) = (Home::new(), core(true));
    home.start(&core, "a", Start::State, 60).await;
    let again = home.recordings.start("core", core.clone(), name("b"), options(false)).await;
    assert!(matches!(again, Err(RecordError::Recording(..))));
    // Of another emulator, but under a name that will be taken.
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
async fn progress_can_be_seen() {
    let (home, core) = (Home::new(), core(true));
    home.start(&core, "a", Start::State, 10).await;
    done(&*core, vec![Op::Advance { frames: 40 }]).await;
    let frames = async || home.recordings.active("core").await.unwrap().progress.frames;
    crate::support::wait_for("40 frames", async || frames().await == 40).await;
    assert!(home.recordings.active("core").await.unwrap().ended.is_none());
}
