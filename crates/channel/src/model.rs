//! Models for loom, which runs the two sides of a small channel in every interleaving with at most `bound`
//! preemptions: two or three, depending on the test.
//!
//! Run them with `RUSTFLAGS="--cfg loom" cargo test --release -p framewire-channel --lib model` and a separate target
//! folder.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::time::Duration;

use loom::sync::{Condvar, Mutex};
use loom::thread;

use crate::layout::BULK_ALIGN;
use crate::memory::{Half, Memory, Side, Sleeper, Slot};
use crate::ring::{Receiver, Sender};
use crate::sync::{AtomicU32, Ordering, Shadow, fence};

const BULK: usize = 384;

/// The memory of a channel, with loom's atomics instead of memory that two processes share.
struct Model {
    halves: [Half; 2],
    slots: Vec<Slot>,
    bulk: UnsafeCell<[u8; BULK]>,
    shadows: [Shadow; BULK / BULK_ALIGN],
    sleeping: [AtomicU32; 4],
    lock: Mutex<()>,
    woken: Condvar,
    attached_slots: Vec<Slot>,
}

// SAFETY: the bulk room (the memory for long messages) is written and read under the ring's protocol, which `shadows`
// checks.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    fn new(slots: usize) -> Arc<Model> {
        Arc::new(Model {
            halves: Default::default(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            bulk: UnsafeCell::new([0; BULK]),
            shadows: Default::default(),
            sleeping: Default::default(),
            lock: Mutex::new(()),
            woken: Condvar::new(),
            attached_slots: vec![Slot::default()],
        })
    }

    /// The sender and the receiver of a side.
    fn endpoint(self: &Arc<Model>, side: Side) -> (Sender<Model>, Receiver<Model>) {
        (Sender::new(self.clone(), side, Duration::ZERO), Receiver::new(self.clone(), side, Duration::ZERO))
    }
}

impl Memory for Model {
    fn half(&self, side: Side) -> &Half {
        &self.halves[side as usize]
    }
    fn slots(&self, side: Side) -> &[Slot] {
        if side == Side::Creator { &self.slots } else { &self.attached_slots }
    }
    fn bulk_size(&self) -> usize {
        BULK
    }
    fn bulk(&self, _: Side, offset: usize, length: usize) -> *mut u8 {
        assert!(offset + length <= BULK);
        self.bulk.get().cast::<u8>().wrapping_add(offset)
    }
    fn watch_bulk(&self, _: Side, offset: usize, length: usize, write: bool) {
        for shadow in &self.shadows[offset / BULK_ALIGN..(offset + length).div_ceil(BULK_ALIGN)] {
            if write { shadow.write() } else { shadow.read() }
        }
    }
    fn sleeps(&self, sleeper: Sleeper) -> &AtomicU32 {
        &self.sleeping[match sleeper {
            Sleeper::Reader(side) => side as usize,
            Sleeper::Writer(side) => 2 + side as usize,
        }]
    }
    fn sleep(&self, sleeper: Sleeper, _: Duration) {
        // Like a futex: the value is read under a lock that wakers also take. This sleep never ends by itself, so a
        // missed wake-up is a deadlock, which loom reports.
        let mut guard = self.lock.lock().unwrap();
        while self.sleeps(sleeper).load(Ordering::Relaxed) == 1 {
            guard = self.woken.wait(guard).unwrap();
        }
    }
    fn wake(&self, _: Sleeper) {
        let _guard = self.lock.lock().unwrap();
        self.woken.notify_all();
    }
    fn barrier(&self) {
        fence(Ordering::SeqCst);
    }
    fn check_interval(&self) -> Duration {
        Duration::from_secs(3600)
    }
    fn is_lost(&self) -> bool {
        false
    }
    fn damage(&self) -> Option<&'static str> {
        None
    }
    fn peer_closed(&self, _: Side) -> bool {
        false
    }
    fn peer_lives(&self, _: Side) -> bool {
        true
    }
}

fn check(bound: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.check(body);
}

/// Sends messages of these lengths through this many slots. The messages are numbered from 1. Each byte of a message is
/// the message's number.
fn exchange(bound: usize, slots: usize, lengths: &'static [usize]) {
    check(bound, move || {
        let model = Model::new(slots);
        let ((mut sender, _), (_, mut receiver)) =
            (model.endpoint(Side::Creator), model.endpoint(Side::Attached));
        let writer = thread::spawn(move || {
            for (number, length) in lengths.iter().enumerate() {
                let mut place = sender.reserve(*length, None).unwrap();
                place.fill(number as u8 + 1);
                place.commit();
            }
        });
        for (number, length) in lengths.iter().enumerate() {
            let message = receiver.receive(None).unwrap();
            assert_eq!(message.len(), *length);
            assert!(message.iter().all(|byte| *byte == number as u8 + 1), "message {} is torn", number + 1);
        }
        writer.join().unwrap();
    });
}

#[test]
fn model_short_messages_use_the_mailbox_and_slots() {
    exchange(3, 2, &[11, 11, 11]);
}

#[test]
fn model_a_writer_sleeps_on_a_full_ring_and_is_woken() {
    exchange(3, 1, &[30, 30, 30]);
}

#[test]
fn model_long_messages_reuse_the_bulk_room() {
    exchange(3, 2, &[200, 150, 120]);
}

#[test]
fn model_messages_of_different_sizes_stay_in_order() {
    exchange(2, 2, &[5, 40, 150, 5]);
}

/// Sends a short message that also reports how many messages were read.
fn reply(sender: &mut Sender<Model>, receiver: &mut Receiver<Model>, data: &[u8]) {
    let mut place = sender.reserve_reply(Some(receiver), data.len(), None).unwrap();
    place.copy_from_slice(data);
    place.commit();
}

#[test]
fn model_replies_report_what_was_read() {
    check(3, || {
        let model = Model::new(2);
        let (mut sender, mut receiver) = model.endpoint(Side::Creator);
        let (mut other_sender, mut other_receiver) = model.endpoint(Side::Attached);
        let other = thread::spawn(move || {
            for _ in 0..2 {
                let request = other_receiver.receive(None).unwrap().to_vec();
                reply(&mut other_sender, &mut other_receiver, &request);
            }
        });
        for number in 0..2 {
            reply(&mut sender, &mut receiver, &[number; 9]);
            assert_eq!(*receiver.receive(None).unwrap(), [number; 9]);
        }
        other.join().unwrap();
    });
}

#[test]
fn model_a_reply_wakes_a_writer_that_waits_for_room() {
    check(3, || {
        let model = Model::new(1);
        let (mut sender, mut receiver) = model.endpoint(Side::Creator);
        let (mut other_sender, mut other_receiver) = model.endpoint(Side::Attached);
        let other = thread::spawn(move || {
            other_receiver.receive(None).unwrap();
            reply(&mut other_sender, &mut other_receiver, &[7; 9]);
            assert_eq!(*other_receiver.receive(None).unwrap(), [2; 9]);
        });
        sender.send(&[1; 9], None).unwrap();
        sender.send(&[2; 9], None).unwrap();
        assert_eq!(*receiver.receive(None).unwrap(), [7; 9]);
        other.join().unwrap();
    });
}
