//! Snapshots in a folder.

use framewire_libmgba::flags;
use framewire_states::{FolderError, Name, Snapshot, Snapshots};

use crate::support::{SCRATCH, about, demo, folder, game_boy, with_picture};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

#[test]
fn a_written_snapshot_is_read_back_and_mgba_loads_its_file() {
    for mut core in [demo(), game_boy()] {
        let (_home, path) = folder();
        let snapshots = Snapshots::new(path.clone());
        let snapshot = Snapshot::new(&with_picture(&mut core), about(&core)).unwrap();
        snapshots.write(&name("one"), &snapshot, false).unwrap();
        let read = snapshots.read(&name("ONE")).unwrap();
        assert_eq!(read, snapshot);
        assert_eq!(read.about(), &about(&core));
        let before = core.save_state(0).unwrap();
        core.run_frame();
        core.load_state_file(&path.join("one.png"), flags::LOAD).unwrap();
        assert!(core.save_state(0).unwrap() == before);
        let list = snapshots.list().unwrap();
        assert_eq!((list.len(), &list[0].about), (1, &about(&core)));
        assert_eq!(list[0].entry.size, snapshot.file().len() as u64);
        assert_eq!(snapshots.listed(&name("one")).unwrap(), list[0]);
    }
}

#[test]
fn the_picture_shows_the_cores_frame_and_contains_no_state() {
    let mut core = demo();
    let snapshot = Snapshot::new(&with_picture(&mut core), about(&core)).unwrap();
    let picture = snapshot.picture().unwrap();
    assert!(picture.len() < snapshot.file().len() / 2);
    assert!(framewire_media::png::decode(&picture).unwrap().rgb == core.frame().to_rgb());
}

#[test]
fn a_note_can_be_changed_several_times() {
    let mut core = demo();
    core.write8(SCRATCH, 5);
    let snapshot = Snapshot::new(&with_picture(&mut core), about(&core)).unwrap();
    let twice = snapshot.with_note("a".to_owned()).unwrap().with_note(about(&core).note).unwrap();
    assert_eq!(twice, snapshot);
    let other = snapshot.with_note("b".to_owned()).unwrap();
    assert_eq!(Snapshot::read(other.file().to_vec()).unwrap().about().note, "b");
}

#[test]
fn damaged_files_cannot_be_read_and_most_are_not_listed() {
    let mut core = demo();
    let (_home, path) = folder();
    let snapshots = Snapshots::new(path.clone());
    let snapshot = Snapshot::new(&with_picture(&mut core), about(&core)).unwrap();
    snapshots.write(&name("whole"), &snapshot, false).unwrap();
    std::fs::write(path.join("cut.png"), &snapshot.file()[..snapshot.file().len() - 30]).unwrap();
    std::fs::write(path.join("picture.png"), core.screenshot_png().unwrap()).unwrap();
    std::fs::write(path.join("empty.png"), b"").unwrap();
    let names: Vec<_> =
        snapshots.list().unwrap().iter().map(|listed| listed.entry.name.to_string()).collect();
    // `list` reads only the beginning of a file. The beginning of the truncated file is valid, so the file is listed.
    assert_eq!(names, ["cut", "whole"]);
    for damaged in ["cut", "picture", "empty"] {
        assert!(matches!(snapshots.read(&name(damaged)), Err(FolderError::Damaged { .. })), "{damaged}");
    }
}

#[test]
fn a_snapshot_needs_a_state_and_a_picture() {
    let mut core = demo();
    let bare = core.save_state(flags::SAVEDATA).unwrap();
    assert!(Snapshot::new(&bare, about(&core)).is_err());
    let picture = core.screenshot_png().unwrap();
    assert!(Snapshot::new(&picture, about(&core)).is_err());
}
