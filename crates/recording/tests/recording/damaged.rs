//! Tests with damaged files.

use framewire_recording::{Ending, Recording};

use crate::support::{core, played, recorded};

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
