//! Tests with damaged files.

use std::ops::ControlFlow;
use std::time::Duration;

use framewire_protocol::Op;
use framewire_recording::replay::{PlayOptions, replay};
use framewire_recording::{Ending, Entry, Head, Recording, Start, Writer};

use crate::support::{core, done, played, recorded};

/// The error for a changed byte contains its frame, and a replay still plays the frames before it.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_byte_is_detected_at_its_frame() {
    let (home, recording) = recorded(300, 1).await;
    let file = home.file("run");
    // After the state, there are 26 bytes per frame: keys, picture and memory, each with its checksum. Then the entry
    // for the end follows: its kind, the number of frames, the length of the reason, the reason itself (`stopped`), and
    // the checksum.
    let first = file.len() - 300 * 26 - (1 + 2 + 4 + 7 + 4);
    assert_eq!(&file[first..first + 2], b"K\x01");
    let core = core(true);
    for frame in [1u64, 2, 150, 299, 300] {
        let mut changed = file.clone();
        changed[first + (frame as usize - 1) * 26 + 2] ^= 1;
        let changed = Recording::read(&changed).unwrap();
        let Ending::Damaged(damage) = changed.ending() else { panic!("not found at frame {frame}") };
        assert_eq!(damage.frame, frame);
        assert!(damage.to_string().contains(&format!("damaged at frame {frame} ")), "{damage}");
        let report = played(&core, &changed).await;
        assert_eq!((report.frames, report.pictures), (frame - 1, frame - 1));
        assert_eq!((report.divergence, report.damage.as_ref()), (None, Some(damage)));
        // Now change the hash of the same frame's picture. It comes after the 8 bytes of the entry for the keys and one
        // byte for the kind of the entry for the picture.
        let mut changed = file.clone();
        changed[first + (frame as usize - 1) * 26 + 8 + 1] ^= 1;
        let changed = Recording::read(&changed).unwrap();
        let Ending::Damaged(damage) = changed.ending() else { panic!("not found at frame {frame}") };
        assert_eq!((damage.frame, changed.frames()), (frame, frame));
    }
    assert_eq!(recording.pictures(), 300);
}

/// A recording with correct checksums that contains `entries`.
fn written(head: &Head, state: &[u8], entries: &[Entry]) -> Recording {
    let mut writer = Writer::begin(Vec::new(), head, state.to_vec()).unwrap();
    for entry in entries {
        match entry {
            Entry::Keys { keys, frames } => writer.keys(*keys, u64::from(*frames)).unwrap(),
            Entry::Picture(hash) => writer.picture(*hash).unwrap(),
            Entry::Memory(hash) => writer.memory(*hash).unwrap(),
            Entry::State(_) | Entry::End { .. } => {}
        }
    }
    Recording::read(&writer.end("stopped").unwrap()).unwrap()
}

/// Heads, states and entries that no emulator records.
fn wrong_recordings(right: &Recording) -> Vec<(String, Recording)> {
    let head = right.head();
    let text = |text: &str| text.to_owned();
    let heads = [
        Head { checksum: !head.checksum, ..head.clone() },
        Head { console: 1, ..head.clone() },
        Head { start: Start::PowerOn, ..head.clone() },
        Head { frame: u32::MAX, ..head.clone() },
        Head { picture_interval: 0, ..head.clone() },
        Head { picture_interval: 7, ..head.clone() },
        Head { picture_interval: u32::MAX, ..head.clone() },
        Head { clock: text("yesterday"), time: String::new(), ..head.clone() },
        Head { clock: text("9999-12-31T23:59:59Z"), title: String::new(), code: text("?"), ..head.clone() },
    ];
    let (bare, mut changed) = (right.state().len(), right.state().to_vec());
    changed[bare / 2] ^= 0xFF;
    let states =
        [&[][..], &[0; 64], &vec![0; 0x61000], &right.state()[..bare / 2], b"\x89PNG\r\n\x1a\n", &changed];
    let keys = |keys, frames| Entry::Keys { keys, frames };
    let lists = [
        vec![],
        vec![Entry::Picture(0), Entry::Memory(0)],
        vec![
            Entry::Memory(0),
            Entry::Memory(1),
            Entry::Picture(0),
            keys(1, 1),
            Entry::Picture(0),
            Entry::Picture(1),
        ],
        vec![
            keys(0x3FF, 3),
            Entry::Picture(0),
            keys(0x30, 1),
            Entry::Memory(0),
            keys(0xC0, 500),
            Entry::Memory(7),
        ],
        vec![Entry::Memory(0); 1000],
        vec![keys(0, u32::MAX), keys(1, u32::MAX)],
    ];
    let heads = heads.map(|head| (format!("{head}"), written(&head, right.state(), right.entries())));
    let states =
        states.map(|state| (format!("{} bytes", state.len()), written(head, state, right.entries())));
    let lists =
        lists.map(|list| (format!("{:?}", &list[..list.len().min(8)]), written(head, right.state(), &list)));
    heads.into_iter().chain(states).chain(lists).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_content_with_right_checksums_is_an_error_or_a_difference_and_the_emulator_still_works() {
    let (_home, right) = recorded(20, 1).await;
    let core = core(true);
    for (what, recording) in wrong_recordings(&right) {
        for every in [None, Some(3)] {
            let options = PlayOptions { every, through: true, restore: true, ..PlayOptions::default() };
            let stop =
                |frames| if frames >= 300 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            let replayed = replay(&*core, &recording, &options, stop);
            let report = tokio::time::timeout(Duration::from_secs(8), replayed).await;
            let report = report.unwrap_or_else(|_| panic!("no end with {every:?}: {what}"));
            if let Ok(report) = report {
                assert!(report.frames <= recording.frames(), "{what}: {report:?}");
            }
            done(&*core, vec![Op::Advance { frames: 1 }, Op::CurrentFrame {}]).await;
        }
    }
    assert!(played(&core, &right).await.is_equal());
}
