use std::time::{Duration, Instant};

use framewire_channel::{Error, MAX_MESSAGE, Options};

use crate::support::{LONG, SECOND, check, fill, length, pair};

#[test]
fn every_size_arrives_intact_in_both_directions() -> Result<(), Error> {
    let (mut here, mut there) = pair(Options::default());
    // The mailbox holds messages of up to 19 bytes, and a slot messages of up to 112 bytes.
    for size in [1, 2, 19, 20, 111, 112, 113, 4096, MAX_MESSAGE - 1, MAX_MESSAGE] {
        let data: Vec<u8> = (0..size).map(|index| (index * 7 + size) as u8).collect();
        here.sender.send(&data, SECOND)?;
        assert_eq!(&*there.receiver.receive(SECOND)?, data);
        there.sender.send(&data, SECOND)?;
        assert_eq!(&*here.receiver.receive(SECOND)?, data);
    }
    for size in [0, MAX_MESSAGE + 1] {
        assert!(matches!(here.sender.send(&vec![0; size], None), Err(Error::Length(got)) if got == size));
    }
    Ok(())
}

#[test]
fn many_messages_of_mixed_sizes_arrive_in_order() {
    const COUNT: u32 = 30_000;
    let (mut here, mut there) = pair(Options::default());
    let writer = std::thread::spawn(move || {
        for number in 0..COUNT {
            let mut place = here.sender.reserve(length(number), LONG).expect("room");
            fill(&mut place, number);
            place.commit();
        }
        here
    });
    for number in 0..COUNT {
        check(&there.receiver.receive(LONG).expect("a message"), number);
    }
    drop(writer.join().expect("the writer"));
    assert!(matches!(there.receiver.receive(SECOND), Err(Error::Closed)));
}

#[test]
fn a_sender_waits_while_the_channel_is_full() {
    let (mut here, mut there) = pair(Options { slots: 8, ..Options::default() });
    for number in 0..8u32 {
        here.sender.send(&number.to_le_bytes(), Some(Duration::ZERO)).expect("room");
    }
    assert!(matches!(here.sender.send(b"x", Some(Duration::from_millis(5))), Err(Error::Timeout)));
    let reader = std::thread::spawn(move || {
        (0..1000u32).all(|number| *there.receiver.receive(LONG).expect("a message") == number.to_le_bytes())
    });
    for number in 8..1000u32 {
        here.sender.send(&number.to_le_bytes(), LONG).expect("room");
    }
    assert!(reader.join().expect("the reader"));
}

#[test]
fn nothing_is_sent_before_the_commit() -> Result<(), Error> {
    let (mut here, mut there) = pair(Options::default());
    here.sender.reserve(4, None)?.fill(1);
    assert!(there.receiver.try_receive()?.is_none());
    assert!(matches!(there.receiver.receive(Some(Duration::from_millis(1))), Err(Error::Timeout)));
    here.sender.send(&[2], None)?;
    assert_eq!(there.receiver.try_receive()?.as_deref(), Some(&[2][..]));
    assert!(there.receiver.try_receive()?.is_none());
    Ok(())
}

#[test]
fn a_waker_ends_a_wait_for_messages() {
    let (mut here, there) = pair(Options::default());
    let waker = here.waker();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = stop.clone();
    let waiting = std::thread::spawn(move || {
        let start = Instant::now();
        let message = here.receiver.wait(LONG, || seen.load(std::sync::atomic::Ordering::Acquire));
        (message.expect("no error"), start.elapsed())
    });
    std::thread::sleep(Duration::from_millis(20));
    stop.store(true, std::sync::atomic::Ordering::Release);
    waker.wake();
    let (message, taken) = waiting.join().expect("the waiting thread");
    assert!(!message && taken < Duration::from_secs(5), "{message} after {taken:?}");
    drop(there);
}

#[test]
fn extra_memory_is_shared() {
    let (here, there) = pair(Options { extra: 4096, ..Options::default() });
    let (mine, theirs) = (here.extra(), there.extra());
    mine.as_ref()[1023].store(7, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(theirs.as_ref()[1023].load(std::sync::atomic::Ordering::Relaxed), 7);
    assert_eq!(theirs.as_ref().len(), 1024);
}
