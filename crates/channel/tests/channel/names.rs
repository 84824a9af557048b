use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use framewire_channel::{Endpoint, Error, Options};

use crate::support::{SECOND, name};
use crate::until_good::until_good;

fn file(name: &str) -> PathBuf {
    PathBuf::from(format!("/dev/shm/framewire.{name}"))
}

#[test]
fn one_side_creates_a_channel_and_the_other_attaches() {
    let name = name();
    let options = Options::default();
    assert!(matches!(Endpoint::connect(&name, Some(Duration::ZERO), options), Err(Error::Missing(_))));
    Endpoint::check_name(&name).expect("a free name");
    assert!(!file(&name).exists(), "the check creates nothing");
    let here = Endpoint::create(&name, options).expect("a new channel");
    assert!(matches!(Endpoint::create(&name, options), Err(Error::Served(_))));
    assert!(matches!(Endpoint::check_name(&name), Err(Error::Served(_))));
    assert!(matches!(Endpoint::check_name("a/b"), Err(Error::Name(_))));
    assert!(matches!(here.accept(Some(Duration::from_millis(5))), Err(Error::Timeout)));
    let there = Endpoint::connect(&name, SECOND, options).expect("the other side");
    here.accept(SECOND).expect("attached");
    assert!(matches!(Endpoint::connect(&name, Some(Duration::ZERO), options), Err(Error::Attached(_))));
    // A block of shared memory is never used for a second client, even after the first one has left.
    drop(there);
    assert!(matches!(Endpoint::connect(&name, Some(Duration::ZERO), options), Err(Error::Attached(_))));
    drop(here);
    assert!(!file(&name).exists());
}

#[test]
fn a_creator_without_a_client_notices_that_its_name_was_removed() {
    let name = name();
    let here = Endpoint::create(&name, Options::default()).expect("a new channel");
    fs::remove_file(file(&name)).expect("removed");
    let error = here.accept(SECOND).err();
    assert!(matches!(error, Some(Error::Damaged(_))), "{error:?}");
}

#[test]
fn a_channel_with_a_client_works_after_its_name_was_removed() {
    let name = name();
    let mut here = Endpoint::create(&name, Options::default()).expect("a new channel");
    let mut there = Endpoint::connect(&name, SECOND, Options::default()).expect("the other side");
    fs::remove_file(file(&name)).expect("removed");
    for side in [&mut here, &mut there] {
        let error = side.receiver.receive(Some(Duration::from_millis(120))).err();
        assert!(matches!(error, Some(Error::Timeout)), "{error:?}");
    }
    here.send(b"x", SECOND).expect("room");
    assert_eq!(*there.receiver.receive(SECOND).expect("a message"), *b"x");
}

#[test]
fn the_end_of_a_channel_does_not_remove_the_name_of_a_newer_one() {
    let name = name();
    let options = Options::default();
    let older = Endpoint::create(&name, options).expect("a new channel");
    fs::remove_file(file(&name)).expect("removed");
    let newer = Endpoint::create(&name, options).expect("another channel");
    drop(older);
    let client = Endpoint::connect(&name, Some(Duration::ZERO), options).map(drop);
    assert!(client.is_ok(), "{client:?}");
    drop(newer);
    assert!(!file(&name).exists());
}

#[test]
fn a_time_limit_beyond_the_clock_never_ends_a_wait() {
    let (name, forever) = (name(), Some(Duration::MAX));
    let here = Endpoint::create(&name, Options::default()).expect("a new channel");
    let mut there = Endpoint::connect(&name, forever, Options::default()).expect("the other side");
    here.accept(forever).expect("attached");
    let receiving = std::thread::spawn(move || there.receiver.receive(forever).expect("a message").to_vec());
    // By now, the receiver should sleep. If it does not sleep yet, the test still passes, but it checks less.
    std::thread::sleep(Duration::from_millis(50));
    let mut here = here;
    here.sender.send(b"x", forever).expect("sent");
    assert_eq!(receiving.join().expect("no panic"), b"x");
}

#[test]
fn memory_that_others_can_open_is_refused() {
    let name = name();
    fs::write(file(&name), [1; 8192]).expect("a file");
    fs::set_permissions(file(&name), PermissionsExt::from_mode(0o666)).expect("permissions");
    let options = Options::default();
    assert!(matches!(Endpoint::create(&name, options), Err(Error::Foreign(_))));
    assert!(matches!(Endpoint::connect(&name, SECOND, options), Err(Error::Foreign(_))));
    fs::set_permissions(file(&name), PermissionsExt::from_mode(0o600)).expect("permissions");
    assert!(matches!(Endpoint::connect(&name, Some(Duration::ZERO), options), Err(Error::Missing(_))));
    let here = Endpoint::create(&name, options).expect("a leftover is replaced");
    let mode = fs::metadata(file(&name)).expect("the new file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(here);
}

#[test]
fn a_fifo_with_the_name_is_refused_and_not_removed() {
    let name = name();
    let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(file(&name)).status();
    assert!(made.expect("mkfifo").success());
    let created = Endpoint::create(&name, Options::default()).map(drop);
    let connected = Endpoint::connect(&name, SECOND, Options::default()).map(drop);
    for end in [created, connected, Endpoint::check_name(&name)] {
        let error = end.expect_err("it is not a file").to_string();
        assert!(error.contains(&format!("framewire.{name} is not a regular file; remove it")), "{error}");
    }
    fs::remove_file(file(&name)).expect("the FIFO is still there");
}

#[test]
fn a_link_or_a_folder_with_the_name_is_an_error_that_says_so() {
    let name = name();
    let check = || {
        let created = Endpoint::create(&name, Options::default()).map(drop);
        let connected = Endpoint::connect(&name, SECOND, Options::default()).map(drop);
        for end in [created, connected, Endpoint::check_name(&name)] {
            let error = end.expect_err("it is not a file").to_string();
            assert!(error.contains(&format!("framewire.{name} is a link or a folder; remove it")), "{error}");
        }
    };
    fs::create_dir(file(&name)).expect("a folder");
    check();
    fs::remove_dir(file(&name)).expect("removed");
    std::os::unix::fs::symlink("/dev/null", file(&name)).expect("a link");
    check();
    fs::remove_file(file(&name)).expect("removed");
}

#[test]
fn bad_names_and_sizes_are_refused() {
    for name in ["", "a/b", "..", "a b"] {
        assert!(matches!(Endpoint::create(name, Options::default()), Err(Error::Name(_))), "{name}");
    }
    for (slots, bulk, extra) in [(12, 2 << 20, 0), (64, 1 << 20, 0), (64, 2 << 20, 5)] {
        let options = Options { slots, bulk, extra, ..Options::default() };
        assert!(matches!(Endpoint::create(&name(), options), Err(Error::Size(_))));
    }
}

#[test]
fn a_closed_channel_is_noticed_at_once() {
    // A busy machine can delay the waiting thread.
    until_good(time_until_noticed, |time| *time < Duration::from_millis(40));
}

/// Closes one side while the other waits. Returns the time until the other notices it.
fn time_until_noticed() -> Duration {
    let name = name();
    let here = Endpoint::create(&name, Options::default()).expect("a new channel");
    let mut there = Endpoint::connect(&name, SECOND, Options::default()).expect("the other side");
    let waiting = std::thread::spawn(move || {
        let error = there.receiver.receive(None).err();
        (error, Instant::now())
    });
    std::thread::sleep(Duration::from_millis(80));
    let closed = Instant::now();
    drop(here);
    let (error, noticed) = waiting.join().expect("the waiting thread");
    assert!(matches!(error, Some(Error::Closed)), "{error:?}");
    noticed - closed
}
