//! Tests in which another program of the same user changes the file of a channel's *block*: the memory that both sides
//! of the channel share. docs/channel.md describes the block byte by byte.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use framewire_channel::{Endpoint, Error, MAX_MESSAGE, Options};

use crate::support::{LONG, NAME, SECOND, kills, length, name, spawn};
use crate::until_good::until_good;

const EXTRA: usize = 8192;
/// Longer than the sleep between two checks of the memory.
const SHORT: Option<Duration> = Some(Duration::from_millis(150));
/// Where the rings and the memory for long messages begin, and where the file ends, with the sizes that `pair` uses.
const RINGS: u64 = 4096;
const BULK: u64 = RINGS + 2 * 4096 * 128;
const END: u64 = BULK + 4 * MAX_MESSAGE as u64 + EXTRA as u64;

fn pair() -> (fs::File, Endpoint, Endpoint) {
    let name = name();
    let options = Options { extra: EXTRA, ..Options::default() };
    let here = Endpoint::create(&name, options).expect("a new channel");
    let there = Endpoint::connect(&name, SECOND, options).expect("the other side");
    let path = format!("/dev/shm/framewire.{name}");
    let file = OpenOptions::new().read(true).write(true).open(path).expect("the block's file");
    assert_eq!(file.metadata().expect("its size").len(), END);
    (file, here, there)
}

/// Checks that each side gets an error within a second, and can still access all of its memory.
fn both_end(here: &mut Endpoint, there: &mut Endpoint, what: &str) {
    for (side, mine) in [("creator", &mut *here), ("client", &mut *there)] {
        let error = mine.receiver.receive(SECOND).err();
        assert!(matches!(error, Some(Error::Damaged(_))), "{what}, {side}: {error:?}");
    }
    for mine in [here, there] {
        for word in mine.extra().as_ref() {
            word.fetch_add(1, Ordering::Relaxed);
        }
        for size in [1, 100, MAX_MESSAGE] {
            let _ = mine.send(&vec![7; size], Some(Duration::ZERO));
        }
        mine.waker().wake();
    }
}

#[test]
fn a_truncated_block_ends_the_channel_and_not_the_process() {
    for size in [0, 100, RINGS, RINGS + 4096, BULK, BULK + 4096, END - 4096, END - 1] {
        let (file, mut here, mut there) = pair();
        here.send(b"before", SECOND).expect("room");
        assert_eq!(*there.receiver.receive(SECOND).expect("a message"), *b"before");
        file.set_len(size).expect("truncated");
        both_end(&mut here, &mut there, &format!("truncated to {size}"));
    }
}

#[test]
fn a_grown_block_ends_the_channel() {
    let (file, mut here, mut there) = pair();
    file.set_len(END + 4096).expect("grown");
    both_end(&mut here, &mut there, "grown");
}

#[test]
fn a_block_truncated_and_then_extended_to_its_old_size_ends_the_channel() {
    let (file, mut here, mut there) = pair();
    file.set_len(0).and_then(|()| file.set_len(END)).expect("truncated and grown");
    both_end(&mut here, &mut there, "emptied");
}

#[test]
fn a_creator_that_waits_for_a_client_notices_a_truncation() {
    let name = name();
    let here = Endpoint::create(&name, Options::default()).expect("a new channel");
    fs::write(format!("/dev/shm/framewire.{name}"), "").expect("truncated");
    let error = here.accept(SECOND).err();
    assert!(matches!(error, Some(Error::Damaged(_))), "{error:?}");
    drop(here);
    drop(Endpoint::create(&name, Options::default()).expect("a new channel"));
}

#[test]
fn a_wait_that_sleeps_ends_when_the_block_is_truncated() {
    let measure = || {
        let (file, mut here, there) = pair();
        let waiting = std::thread::spawn(move || here.receiver.receive(None).err());
        std::thread::sleep(Duration::from_millis(20));
        let begun = Instant::now();
        file.set_len(0).expect("truncated");
        let error = waiting.join().expect("the waiting thread");
        let time = begun.elapsed();
        assert!(matches!(error, Some(Error::Damaged(_))), "{error:?}");
        drop(there);
        time
    };
    until_good(measure, |time| *time < Duration::from_secs(1));
}

#[test]
fn a_truncation_at_any_moment_of_an_exchange_ends_the_channel() {
    for _ in 0..kills() {
        let (file, mut here, mut there) = pair();
        let writer = std::thread::spawn(move || {
            (0..).find_map(|number| here.send(&vec![1; length(number)], SECOND).err()).expect("an end")
        });
        let reader = std::thread::spawn(move || {
            loop {
                match there.receiver.receive(SECOND) {
                    Ok(message) => drop(message.to_vec()),
                    Err(error) => return error,
                }
            }
        });
        std::thread::sleep(Duration::from_micros(fastrand::u64(0..5000)));
        file.set_len(fastrand::u64(0..END)).expect("truncated");
        for (side, end) in [("writer", writer), ("reader", reader)] {
            let error = end.join().expect("no panic");
            // The side that notices first ends the channel for the other, if the header is still there.
            let is_end = matches!(error, Error::Damaged(_) | Error::Closed | Error::Died);
            assert!(is_end, "{side}: {error:?}");
        }
    }
}

#[test]
fn garbled_stamps_and_counts_are_an_error_instead_of_an_endless_wait() {
    // The stamps of both halves of the mailbox and of each side's first slot, and how many messages each side has read
    // (docs/channel.md explains these terms).
    for at in [128, 160, RINGS, RINGS + 4096 * 128, 156, 188] {
        let (file, mut here, mut there) = pair();
        file.write_all_at(&[0xa5; 4], at).expect("garbled");
        let ends = [&mut here, &mut there].map(|mine| mine.receiver.receive(SHORT).map(|_| ()));
        // Only the side that reads the word can notice it.
        assert!(ends.iter().any(|end| matches!(end, Err(Error::Damaged(_)))), "at {at}: {ends:?}");
    }
}

#[test]
fn a_garbled_count_does_not_let_a_sender_wait_for_ever() {
    let (file, mut here, _there) = pair();
    file.write_all_at(&[0xa5; 4], 188).expect("garbled");
    let end = here.send(b"hello", None);
    assert!(matches!(end, Err(Error::Damaged(_))), "{end:?}");
}

#[test]
fn an_overwritten_header_ends_the_channel() {
    for at in [0, 8, 12, 16, 20] {
        let (file, mut here, mut there) = pair();
        file.write_all_at(&[0xa5; 4], at).expect("overwritten");
        both_end(&mut here, &mut there, &format!("overwritten at {at}"));
    }
}

#[test]
fn a_block_with_a_wrong_header_is_refused() {
    for at in [0, 8, 12, 16, 20] {
        for value in [0, 1, 7, 12, 4095, 4096, 1 << 31, u32::MAX - 4095, u32::MAX].map(u32::to_le_bytes) {
            let name = name();
            let options = Options { extra: EXTRA, ..Options::default() };
            let here = Endpoint::create(&name, options).expect("a new channel");
            let path = format!("/dev/shm/framewire.{name}");
            let file = OpenOptions::new().read(true).write(true).open(path).expect("the block's file");
            let mut right = [0; 4];
            file.read_exact_at(&mut right, at).expect("the header");
            if value != right {
                file.write_all_at(&value, at).expect("another header");
                let end = Endpoint::connect(&name, Some(Duration::ZERO), options).err();
                let is_expected = match at {
                    0 => matches!(end, Some(Error::Missing(_))),
                    8 => matches!(end, Some(Error::Version { .. })),
                    _ => matches!(end, Some(Error::Damaged(_))),
                };
                assert!(is_expected, "{value:?} at {at}: {end:?}");
            }
            drop(here);
        }
    }
}

#[test]
fn sizes_that_would_misalign_the_extra_memory_are_refused() {
    let name = name();
    let here =
        Endpoint::create(&name, Options { extra: EXTRA, ..Options::default() }).expect("a new channel");
    let path = format!("/dev/shm/framewire.{name}");
    let file = OpenOptions::new().write(true).open(path).expect("the block's file");
    // The sizes still add up to the size of the file.
    let [bulk, extra] = [2 * MAX_MESSAGE as u32 - 1, EXTRA as u32 + 2].map(u32::to_le_bytes);
    file.write_all_at(&[bulk, extra].concat(), 16).expect("other sizes");
    let end = Endpoint::connect(&name, Some(Duration::ZERO), Options::default()).err();
    assert!(matches!(end, Some(Error::Damaged(_))), "{end:?}");
    drop(here);
}

#[test]
fn sizes_outside_of_the_limits_are_refused() {
    for (slots, bulk) in [(1 << 17, 2 * MAX_MESSAGE), (4096, 0), (4096, 4096), (4096, MAX_MESSAGE + 4096)] {
        let name = name();
        let here = Endpoint::create(&name, Options::default()).expect("a new channel");
        let path = format!("/dev/shm/framewire.{name}");
        let file = OpenOptions::new().write(true).open(path).expect("the block's file");
        // The sizes add up to the size of the file.
        file.set_len(RINGS + 2 * 128 * slots as u64 + 2 * bulk as u64).expect("another size");
        file.write_all_at(&[slots as u32, bulk as u32].map(u32::to_le_bytes).concat(), 12)
            .expect("other sizes");
        let end = Endpoint::connect(&name, Some(Duration::ZERO), Options::default()).err();
        assert!(matches!(end, Some(Error::Damaged(_))), "{slots} slots, {bulk} bytes: {end:?}");
        drop(here);
    }
}

/// Causes a bus error outside of the channel's memory, which must end this process.
#[test]
#[ignore = "run by the test below in a process of its own"]
fn other_fault() {
    let Ok(name) = std::env::var(NAME) else { return };
    let (block, here, there) = pair();
    // First, a fault in the channel's memory, which the signal handler must handle.
    block.set_len(0).expect("truncated");
    here.extra().as_ref()[0].store(1, Ordering::Relaxed);
    drop((here, there));
    let path = format!("/dev/shm/{name}");
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
    fs::remove_file(&path).expect("its name is removed");
    file.set_len(4096).expect("a page");
    // SAFETY: the system chooses the address of the new mapping; reading its missing page ends this process.
    unsafe {
        use std::os::fd::AsRawFd;
        let null = std::ptr::null_mut();
        let page = libc::mmap(null, 4096, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        file.set_len(0).expect("truncated");
        std::ptr::read_volatile(page.cast::<u8>());
    }
}

#[test]
fn a_bus_error_elsewhere_still_ends_the_process() {
    let mut child = spawn("damaged::other_fault", "fault", &name());
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("its state") {
            break status;
        }
        if begun.elapsed() > LONG.unwrap_or_default() {
            child.kill().expect("a kill");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status:?}");
}
