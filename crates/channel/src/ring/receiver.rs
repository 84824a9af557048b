use std::ops::Deref;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use crate::layout::{INLINE_MAX, MAX_MESSAGE};
use crate::memory::{Memory, Side, Sleeper};
use crate::sync::{Ordering, light_fence};
use crate::{Error, wait};

/// The receiving half of an endpoint.
pub struct Receiver<M: Memory> {
    pub(crate) memory: Arc<M>,
    pub(crate) side: Side,
    pub(crate) spin: Duration,
    /// Number of the next message.
    next: u64,
    /// How many the other side knows to be read.
    published: u32,
    /// One that came by the mailbox was read: the other side uses the line again once it knows that.
    owes: bool,
}

/// Looks before a wait in earnest; in a model they add nothing but states.
const SOON: u32 = if cfg!(loom) { 0 } else { 8 };

/// What was missing may be there again, without its contents.
const LOST: &str = "a part of its memory was missing";

#[derive(Clone, Copy)]
enum Place {
    Mailbox,
    Slot,
}

impl<M: Memory> Receiver<M> {
    pub(crate) fn new(memory: Arc<M>, side: Side, spin: Duration) -> Self {
        Receiver { memory, side, spin, next: 0, published: 0, owes: false }
    }

    /// Waits for the next message, for ever without a `timeout`.
    ///
    /// # Errors
    /// [`Error::Timeout`]; [`Error::Closed`] and [`Error::Died`] once all that was sent before the end has been read.
    #[inline(always)]
    pub fn receive(&mut self, timeout: Option<Duration>) -> Result<Message<'_, M>, Error> {
        let place = match self.find_soon() {
            Some(place) => place,
            None => self.wait_for_message(timeout, || false)?.ok_or(Error::Timeout)?,
        };
        self.message(place)
    }

    /// Looks a few times. What comes at once, as in a dialogue, is found here without a call.
    #[inline(always)]
    fn find_soon(&mut self) -> Option<Place> {
        let place = self.find();
        if place.is_some() {
            return place;
        }
        if self.owes {
            // No reply has told it.
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

    /// The next message if there is one.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    #[inline]
    pub fn try_receive(&mut self) -> Result<Option<Message<'_, M>>, Error> {
        if self.memory.is_lost() {
            return Err(Error::Damaged(self.memory.damage().unwrap_or(LOST)));
        }
        self.find().map(|place| self.message(place)).transpose()
    }

    /// Waits until there is a message or `stop` says that something else wants doing. A sleeping wait looks at `stop` when a
    /// `Waker` wakes it. Returns whether there is a message.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn wait(&mut self, timeout: Option<Duration>, stop: impl Fn() -> bool) -> Result<bool, Error> {
        if self.find().is_some() {
            return Ok(true);
        }
        Ok(self.wait_for_message(timeout, stop)?.is_some())
    }

    #[inline(always)]
    fn find(&self) -> Option<Place> {
        let writer = self.side.other();
        let slots = self.memory.slots(writer);
        // SYNC POINT (message): pairs with the stores in `Sender::publish`.
        if slots[self.next as usize & (slots.len() - 1)].stamp.load(Ordering::Acquire) == self.next + 1 {
            return Some(Place::Slot);
        }
        // SYNC POINT (message): as above.
        (self.memory.half(writer).stamp.load(Ordering::Acquire) == self.next + 1).then_some(Place::Mailbox)
    }

    #[cold]
    fn wait_for_message(
        &mut self,
        timeout: Option<Duration>,
        stop: impl Fn() -> bool,
    ) -> Result<Option<Place>, Error> {
        if self.owes {
            // No reply has told it.
            self.publish();
        }
        let mut place = None;
        let found = wait::spin(self.spin.min(timeout.unwrap_or(self.spin)), || {
            place = self.find();
            place.is_some() || stop()
        });
        if !found {
            // A writer that waits for room must not wait for a reader that waits for it.
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

    /// What cannot be in the places that are looked at, whatever the other side has sent until now: a wait there may never
    /// end. In a model it adds nothing but states.
    fn damage(&self) -> Option<&'static str> {
        if cfg!(loom) {
            return None;
        }
        let wanted = self.next + 1;
        let slots = self.memory.slots(self.side.other());
        let slot = slots[self.next as usize & (slots.len() - 1)].stamp.load(Ordering::Relaxed);
        let mailbox = self.memory.half(self.side.other()).stamp.load(Ordering::Relaxed);
        let told = self.memory.half(self.side).consumed.load(Ordering::Relaxed);
        // A slot holds messages whose numbers are a multiple of the slots apart, and none is sent before there is room.
        let fits_slot = slot == 0 || (slot <= wanted && (wanted - slot).is_multiple_of(slots.len() as u64));
        if !fits_slot || mailbox > wanted {
            Some("a message has a number that is not its turn")
        } else if told != self.published {
            Some("another program has overwritten what this side has read")
        } else {
            None
        }
    }

    #[inline(always)]
    fn message(&mut self, place: Place) -> Result<Message<'_, M>, Error> {
        let writer = self.side.other();
        let (start, length, bulk) = match place {
            Place::Mailbox => {
                let half = self.memory.half(writer);
                (half.data(), half.length(), None)
            }
            Place::Slot => {
                let slots = self.memory.slots(writer);
                let slot = &slots[self.next as usize & (slots.len() - 1)];
                let (length, offset) = slot.description();
                if length <= INLINE_MAX {
                    (slot.data(), length, None)
                } else {
                    let size = self.memory.bulk_size();
                    if length > MAX_MESSAGE || length > size || offset > size - length {
                        return Err(Error::Damaged("a message lies outside of its room"));
                    }
                    (self.memory.bulk(writer, offset, length), length, Some(offset))
                }
            }
        };
        // SAFETY: the place is inside the memory, which the receiver keeps alive, and has `length` bytes; it is the reader's
        // until it publishes that it has read the message, which the guard does that holds this. (A process of the same
        // user that breaks the protocol can change the bytes meanwhile; that is outside of what is defended against.)
        let bytes = unsafe { slice::from_raw_parts(start, length) };
        Ok(Message { receiver: self, bytes, place, bulk })
    }

    #[inline(always)]
    fn release(&mut self, place: Place, is_long: bool) {
        self.next += 1;
        let unpublished = (self.next as u32).wrapping_sub(self.published) as usize;
        match place {
            Place::Mailbox => self.owes = true,
            // A group of slots is given back together, so that the word does not go from core to core for each.
            Place::Slot if is_long || unpublished >= self.memory.slots(self.side.other()).len() / 8 => {
                self.publish();
            }
            Place::Slot => {}
        }
    }

    /// Whether everything was read that is there, and the other side does not know that.
    #[inline]
    pub(super) fn has_idled(&self) -> bool {
        self.published != self.next as u32 && self.find().is_none()
    }

    /// Tells the other side what has been read.
    #[inline(always)]
    pub(super) fn tell(&mut self) {
        self.owes = false;
        self.published = self.next as u32;
        // SYNC POINT (room): pairs with the load in `Sender::find`; all reads are done.
        self.memory.half(self.side).consumed.store(self.published, Ordering::Release);
    }

    #[cold]
    fn publish(&mut self) {
        self.tell();
        // SYNC POINT (sleep): pairs with `wait::sleep`.
        light_fence();
        wait::wake(&*self.memory, Sleeper::Writer(self.side.other()));
    }
}

/// A message where it lies. Dropping it gives its room back.
pub struct Message<'a, M: Memory> {
    receiver: &'a mut Receiver<M>,
    bytes: &'a [u8],
    place: Place,
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
        match self.place {
            Place::Mailbox => memory.half(writer).watch(),
            Place::Slot => {
                let slots = memory.slots(writer);
                slots[self.receiver.next as usize & (slots.len() - 1)].watch();
            }
        }
        if let Some(offset) = self.bulk {
            memory.watch_bulk(writer, offset, self.bytes.len(), false);
        }
        self.receiver.release(self.place, self.bulk.is_some());
    }
}
