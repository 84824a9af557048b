use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use super::Receiver;
use crate::layout::{BULK_ALIGN, INLINE_MAX, MAILBOX_MAX, MAX_MESSAGE};
use crate::memory::{Memory, Side, Sleeper, Slot};
use crate::sync::{Ordering, light_fence};
use crate::{Error, wait};

/// The sending half of an endpoint.
pub struct Sender<M: Memory> {
    memory: Arc<M>,
    side: Side,
    spin: Duration,
    /// Number of the next message.
    head: u64,
    /// Positions in the bulk room (the part of the memory for long messages): where the next long message can begin,
    /// and where the oldest long message that may be unread begins. Both keep counting beyond the end of the room, so
    /// the offset in the room is the remainder of a division by its size.
    bulk_head: u64,
    bulk_tail: u64,
    /// Long messages that may be unread: their numbers and where they end.
    long: VecDeque<(u64, u64)>,
}

#[derive(Clone, Copy)]
enum Place {
    Mailbox,
    Slot,
    Bulk(usize),
}

impl<M: Memory> Sender<M> {
    pub(crate) fn new(memory: Arc<M>, side: Side, spin: Duration) -> Self {
        Sender { memory, side, spin, head: 0, bulk_head: 0, bulk_tail: 0, long: VecDeque::new() }
    }

    /// Reserves room for a message of `length` bytes, 1 to [`MAX_MESSAGE`]. The caller writes the message where the
    /// other side will read it; until then, the bytes have arbitrary values. Waits until there is room. Without a
    /// `timeout`, waits forever.
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::Timeout`]; [`Error::Damaged`]; [`Error::Closed`] and [`Error::Died`] if there is no
    /// room and the other side is gone, so no room can become free.
    #[inline(always)]
    pub fn reserve(&mut self, length: usize, timeout: Option<Duration>) -> Result<Reserved<'_, M>, Error> {
        self.reserve_reply(None, length, timeout)
    }

    /// Like [`reserve`](Self::reserve), but sending the message can also report how many messages the `reader` has
    /// read. This happens if the message goes into the mailbox, or if the `reader` has read all messages from the other
    /// side and has not reported that yet. So in a dialogue, the cache line of the mailbox moves to the other core once
    /// per message instead of twice.
    #[inline(always)]
    pub(crate) fn reserve_reply<'a>(
        &'a mut self,
        reader: Option<&'a mut Receiver<M>>,
        length: usize,
        timeout: Option<Duration>,
    ) -> Result<Reserved<'a, M>, Error> {
        if length == 0 || length > MAX_MESSAGE || length > self.memory.bulk_size().max(INLINE_MAX) {
            return Err(Error::Length(length));
        }
        let place = match self.find(length) {
            Some(place) => place,
            None => self.wait(length, timeout)?,
        };
        let start = match place {
            Place::Mailbox => self.memory.half(self.side).data(),
            Place::Slot => self.slot().data(),
            Place::Bulk(offset) => self.memory.bulk(self.side, offset, length),
        };
        // SAFETY: the place is inside the memory, which the sender keeps alive, and has `length` bytes. The place
        // belongs to the writer until the stamp is stored, which consumes the guard, `Reserved`.
        let bytes = unsafe { slice::from_raw_parts_mut(start, length) };
        Ok(Reserved { sender: self, reader, place, bytes })
    }

    /// Sends a copy of `data`.
    ///
    /// # Errors
    /// Those of [`reserve`](Self::reserve).
    #[inline]
    pub fn send(&mut self, data: &[u8], timeout: Option<Duration>) -> Result<(), Error> {
        let mut place = self.reserve(data.len(), timeout)?;
        place.copy_from_slice(data);
        place.commit();
        Ok(())
    }

    /// The slot of the next message.
    #[inline(always)]
    fn slot(&self) -> &Slot {
        let slots = self.memory.slots(self.side);
        &slots[self.head as usize & (slots.len() - 1)]
    }

    #[inline(always)]
    fn find(&mut self, length: usize) -> Option<Place> {
        // SYNC POINT (room): pairs with the store in `Receiver::store_consumed`; the reader has finished with the
        // messages that `consumed` counts.
        let consumed = self.memory.half(self.side.other()).consumed.load(Ordering::Acquire);
        let unread = (self.head as u32).wrapping_sub(consumed) as usize;
        if unread == 0 && length <= MAILBOX_MAX {
            return Some(Place::Mailbox);
        }
        if unread >= self.memory.slots(self.side).len() {
            return None;
        }
        if length <= INLINE_MAX {
            return Some(Place::Slot);
        }
        // The shared memory holds only the low 32 bits of the count of read messages. Calculate the whole count.
        let read = self.head.saturating_sub(unread as u64);
        while let Some(&(number, end)) = self.long.front() {
            if number >= read {
                break;
            }
            self.bulk_tail = end;
            self.long.pop_front();
        }
        let size = self.memory.bulk_size() as u64;
        let offset = self.bulk_head % size;
        // A message is not split, so a part at the end of the room may stay unused.
        let start =
            if offset + length as u64 > size { self.bulk_head - offset + size } else { self.bulk_head };
        let fits = start + length as u64 - self.bulk_tail <= size;
        if fits { Some(Place::Bulk((start % size) as usize)) } else { None }
    }

    #[cold]
    fn wait(&mut self, length: usize, timeout: Option<Duration>) -> Result<Place, Error> {
        let memory = self.memory.clone();
        let (side, spin) = (self.side, self.spin);
        let head = self.head as u32;
        let damage = || {
            let consumed = memory.half(side.other()).consumed.load(Ordering::Relaxed);
            let is_possible = head.wrapping_sub(consumed) as usize <= memory.slots(side).len();
            if is_possible { None } else { Some("the other side has read messages that were not sent") }
        };
        let mut place = None;
        let mut is_ready = || {
            place = self.find(length);
            place.is_some()
        };
        if !wait::spin(spin.min(timeout.unwrap_or(spin)), &mut is_ready) {
            let rest = timeout.map(|timeout| timeout.saturating_sub(spin));
            wait::sleep(&*memory, side, Sleeper::Writer(side), rest, damage, is_ready)?;
        }
        place.ok_or(Error::Timeout)
    }

    #[inline(always)]
    fn publish(&mut self, reader: Option<&mut Receiver<M>>, place: Place, length: usize) {
        let stamp = self.head + 1;
        // If the two sides send in turn, this side has read everything. After it reports that, the other side can use
        // the mailbox.
        let reader = reader.filter(|reader| matches!(place, Place::Mailbox) || reader.must_report_all_read());
        let reported = reader.is_some();
        if let Some(reader) = reader {
            reader.store_consumed();
        }
        match place {
            Place::Mailbox => {
                let half = self.memory.half(self.side);
                half.set_length(length);
                // SYNC POINT (message): pairs with the load in `Receiver::find`; a reader that sees the stamp also sees
                // the message.
                half.stamp.store(stamp, Ordering::Release);
            }
            Place::Slot | Place::Bulk(_) => {
                let mut start = 0;
                if let Place::Bulk(offset) = place {
                    start = offset;
                    self.memory.watch_bulk(self.side, offset, length, true); // only for tests with loom
                    let size = self.memory.bulk_size() as u64;
                    let skipped = (offset as u64 + size - self.bulk_head % size) % size;
                    let end = self.bulk_head + skipped + length.next_multiple_of(BULK_ALIGN) as u64;
                    self.bulk_head = end;
                    self.long.push_back((self.head, end));
                }
                let slot = self.slot();
                slot.describe(length, start);
                // SYNC POINT (message): as above.
                slot.stamp.store(stamp, Ordering::Release);
            }
        }
        self.head = stamp;
        // SYNC POINT (sleep): pairs with `wait::sleep`.
        light_fence();
        wait::wake(&*self.memory, Sleeper::Reader(self.side.other()));
        if reported {
            wait::wake(&*self.memory, Sleeper::Writer(self.side.other()));
        }
    }
}

/// Room for a message. Nothing is sent if it is dropped without [`commit`](Self::commit).
pub struct Reserved<'a, M: Memory> {
    sender: &'a mut Sender<M>,
    reader: Option<&'a mut Receiver<M>>,
    place: Place,
    bytes: &'a mut [u8],
}

impl<M: Memory> Reserved<'_, M> {
    /// Sends the message.
    #[inline(always)]
    pub fn commit(self) {
        self.sender.publish(self.reader, self.place, self.bytes.len());
    }
}

impl<M: Memory> Deref for Reserved<'_, M> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl<M: Memory> DerefMut for Reserved<'_, M> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Endpoint, Options};

    #[test]
    fn a_long_message_is_freed_even_after_2_to_the_31_short_messages() {
        let name = format!("test-sender-{}", std::process::id());
        let mut endpoint = Endpoint::create(&name, Options::default()).unwrap();
        let sender = &mut endpoint.sender;
        sender.send(&[1; 1_000_000], None).unwrap();
        // Set the counts to what they would be after 2^31 short messages.
        sender.head += 1 << 31;
        let consumed = &sender.memory.half(sender.side.other()).consumed;
        consumed.store(sender.head as u32, Ordering::Relaxed);
        for _ in 0..2 {
            sender.send(&[2; 1_000_000], Some(Duration::ZERO)).unwrap();
        }
    }
}
