use std::ops::Deref;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use crate::layout::{INLINE_MAX, MAX_MESSAGE};
use crate::memory::{Memory, Side, Sleeper, Slot};
use crate::sync::{Ordering, light_fence};
use crate::{Error, wait};

/// The receiving half of an endpoint.
pub struct Receiver<M: Memory> {
    pub(crate) memory: Arc<M>,
    pub(crate) side: Side,
    pub(crate) spin: Duration,
    /// Number of the next message.
    next: u64,
    /// How many messages this side has reported as read; see `publish`.
    published: u32,
    /// Whether a message in the mailbox was read, but not yet reported as read. Until it is reported, the other side
    /// cannot use the mailbox again.
    mailbox_unreported: bool,
}

/// How many times `find_soon` checks again before the real wait begins. In loom's models, these checks would only add
/// states to explore.
const SOON: u32 = if cfg!(loom) { 0 } else { 8 };

#[derive(Clone, Copy)]
enum Found {
    Mailbox,
    Slot,
}

impl<M: Memory> Receiver<M> {
    pub(crate) fn new(memory: Arc<M>, side: Side, spin: Duration) -> Self {
        Receiver { memory, side, spin, next: 0, published: 0, mailbox_unreported: false }
    }

    /// Waits for the next message. Without a `timeout`, waits forever.
    ///
    /// # Errors
    /// [`Error::Timeout`]; [`Error::Damaged`]; [`Error::Closed`] and [`Error::Died`], once every message from the
    /// other side has been read.
    #[inline(always)]
    pub fn receive(&mut self, timeout: Option<Duration>) -> Result<Message<'_, M>, Error> {
        let place = match self.find_soon() {
            Some(place) => place,
            None => self.wait_for_message(timeout, || false)?.ok_or(Error::Timeout)?,
        };
        self.message(place)
    }

    /// Looks for a message a few times. It is inlined, so a reply that comes at once is found without a function call.
    #[inline(always)]
    fn find_soon(&mut self) -> Option<Found> {
        let place = self.find();
        if place.is_some() {
            return place;
        }
        if self.mailbox_unreported {
            // A message to the other side can also report that the mailbox was read. No message has done so yet.
            // Therefore, this side reports it now.
            self.publish();
        }
        for _ in 0..SOON {
            wait::pause();
            let place = self.find();
            if place.is_some() {
                return place;
            }
        }
        None
    }

    /// The next message, if there is one.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    #[inline]
    pub fn try_receive(&mut self) -> Result<Option<Message<'_, M>>, Error> {
        if self.memory.is_lost()
            && let Some(damage) = self.memory.damage()
        {
            return Err(Error::Damaged(damage));
        }
        self.find().map(|place| self.message(place)).transpose()
    }

    /// Waits until there is a message or `stop` returns true. Without a `timeout`, waits forever. While this sleeps, it
    /// calls `stop` again when a `Waker` wakes it, and at least every 50 ms. Returns whether there is a message.
    ///
    /// # Errors
    /// Those of [`receive`](Self::receive).
    pub fn wait(&mut self, timeout: Option<Duration>, stop: impl Fn() -> bool) -> Result<bool, Error> {
        if self.find().is_some() {
            return Ok(true);
        }
        Ok(self.wait_for_message(timeout, stop)?.is_some())
    }

    /// [`Error::Closed`] if the other side has closed the channel, [`Error::Died`] if its process has died without
    /// closing it, `None` otherwise. [`wait`](Self::wait) reports this only when every message has been read.
    pub fn peer_gone(&self) -> Option<Error> {
        if self.memory.peer_closed(self.side) {
            Some(Error::Closed)
        } else if !self.memory.peer_lives(self.side) {
            Some(Error::Died)
        } else {
            None
        }
    }

    /// The slot of the next message.
    #[inline(always)]
    fn slot(&self) -> &Slot {
        let slots = self.memory.slots(self.side.other());
        &slots[self.next as usize & (slots.len() - 1)]
    }

    #[inline(always)]
    fn find(&self) -> Option<Found> {
        // SYNC POINT (message): pairs with the stores in `Sender::publish`.
        if self.slot().stamp.load(Ordering::Acquire) == self.next + 1 {
            return Some(Found::Slot);
        }
        // SYNC POINT (message): as above.
        if self.memory.half(self.side.other()).stamp.load(Ordering::Acquire) == self.next + 1 {
            return Some(Found::Mailbox);
        }
        None
    }

    #[cold]
    fn wait_for_message(
        &mut self,
        timeout: Option<Duration>,
        stop: impl Fn() -> bool,
    ) -> Result<Option<Found>, Error> {
        if self.mailbox_unreported {
            // For the same reason as in `find_soon`. (`wait` does not call `find_soon`.)
            self.publish();
        }
        let mut place = None;
        let found = wait::spin(self.spin.min(timeout.unwrap_or(self.spin)), || {
            place = self.find();
            place.is_some() || stop()
        });
        if !found {
            // Before this reader sleeps, it reports everything that it has read. Otherwise, this reader and a writer
            // that waits for room could wait for each other.
            if self.published != self.next as u32 {
                self.publish();
            }
            let rest = timeout.map(|timeout| timeout.saturating_sub(self.spin));
            let sleeper = Sleeper::Reader(self.side);
            wait::sleep(
                &*self.memory,
                self.side,
                sleeper,
                rest,
                || self.damage(),
                || {
                    place = self.find();
                    place.is_some() || stop()
                },
            )?;
        }
        Ok(place)
    }

    /// Looks for a number in shared memory that the protocol does not allow. With such a number, a wait might never
    /// end. Returns a description. In loom's models, this check would only add states to explore.
    fn damage(&self) -> Option<&'static str> {
        if cfg!(loom) {
            return None;
        }
        let wanted = self.next + 1;
        let slots = self.memory.slots(self.side.other()).len() as u64;
        let slot = self.slot().stamp.load(Ordering::Relaxed);
        let mailbox = self.memory.half(self.side.other()).stamp.load(Ordering::Relaxed);
        let consumed = self.memory.half(self.side).consumed.load(Ordering::Relaxed);
        // The numbers of the messages in one slot differ by multiples of the number of slots. A slot gets its next
        // message only after this side has read the one in it.
        let fits_slot = slot == 0 || (slot <= wanted && (wanted - slot).is_multiple_of(slots));
        if !fits_slot || mailbox > wanted {
            Some("a message has a wrong number")
        } else if consumed != self.published {
            Some("another program has overwritten the count of messages that this side has read")
        } else {
            None
        }
    }

    #[inline(always)]
    fn message(&mut self, place: Found) -> Result<Message<'_, M>, Error> {
        let writer = self.side.other();
        let (start, length, bulk) = match place {
            Found::Mailbox => {
                let half = self.memory.half(writer);
                (half.data(), half.length(), None)
            }
            Found::Slot => {
                let slot = self.slot();
                let (length, offset) = slot.description();
                if length <= INLINE_MAX {
                    (slot.data(), length, None)
                } else {
                    let size = self.memory.bulk_size();
                    if length > MAX_MESSAGE || length > size || offset > size - length {
                        return Err(Error::Damaged("a message lies outside of the memory for messages"));
                    }
                    (self.memory.bulk(writer, offset, length), length, Some(offset))
                }
            }
        };
        // SAFETY: the place is inside the memory, which the receiver keeps alive, and has `length` bytes. It belongs to
        // the reader until the guard, `Message`, publishes that the message was read. (A process of the same user that
        // breaks the protocol can change the bytes meanwhile. The channel does not protect against such a process.)
        let bytes = unsafe { slice::from_raw_parts(start, length) };
        Ok(Message { receiver: self, bytes, place, bulk })
    }

    #[inline(always)]
    fn release(&mut self, place: Found, is_long: bool) {
        self.next += 1;
        let unpublished = (self.next as u32).wrapping_sub(self.published) as usize;
        match place {
            Found::Mailbox => self.mailbox_unreported = true,
            // Several slots are released together. Otherwise each slot would move the cache line of `consumed` between
            // the cores.
            Found::Slot if is_long || unpublished >= self.memory.slots(self.side.other()).len() / 8 => {
                self.publish();
            }
            Found::Slot => {}
        }
    }

    /// Whether this side has read all messages, but has not yet reported that to the other side.
    #[inline]
    pub(super) fn must_report_all_read(&self) -> bool {
        self.published != self.next as u32 && self.find().is_none()
    }

    /// Stores how many messages were read, for the other side.
    #[inline(always)]
    pub(super) fn store_consumed(&mut self) {
        self.mailbox_unreported = false;
        self.published = self.next as u32;
        // SYNC POINT (room): pairs with the load in `Sender::find`; this side has finished reading these messages.
        self.memory.half(self.side).consumed.store(self.published, Ordering::Release);
    }

    #[cold]
    fn publish(&mut self) {
        self.store_consumed();
        // SYNC POINT (sleep): pairs with `wait::sleep`.
        light_fence();
        wait::wake(&*self.memory, Sleeper::Writer(self.side.other()));
    }
}

/// A message in shared memory. After it is dropped, the other side can reuse its memory.
pub struct Message<'a, M: Memory> {
    receiver: &'a mut Receiver<M>,
    bytes: &'a [u8],
    place: Found,
    /// The offset of a long message in the bulk room, the part of the memory for long messages.
    bulk: Option<usize>,
}

impl<M: Memory> Deref for Message<'_, M> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl<M: Memory> Drop for Message<'_, M> {
    #[inline(always)]
    fn drop(&mut self) {
        let writer = self.receiver.side.other();
        let memory = &self.receiver.memory;
        // `watch` reports the read to loom; without loom, it does nothing.
        match self.place {
            Found::Mailbox => memory.half(writer).watch(),
            Found::Slot => self.receiver.slot().watch(),
        }
        if let Some(offset) = self.bulk {
            memory.watch_bulk(writer, offset, self.bytes.len(), false);
        }
        self.receiver.release(self.place, self.bulk.is_some());
    }
}
