use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

use crate::layout::MAX_MESSAGE;
use crate::memory::{Block, Memory, Side, Sleeper};
use crate::{Error, Receiver, Reserved, Sender, wait};

/// How to create a channel, and how to wait for its messages. A process that attaches uses only `spin`.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How many messages can wait in each direction: a power of two from 8 to 65,536.
    pub slots: usize,
    /// Bytes for long messages in each direction: a multiple of 4,096, from 2 MiB (twice the longest message) to 1 GiB.
    pub bulk: usize,
    /// Bytes of [`Extra`] memory: a multiple of 4,096, from 0 to 1 GiB.
    pub extra: usize,
    /// How long a wait polls before it sleeps.
    pub spin: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options { slots: 4096, bulk: 2 * MAX_MESSAGE, extra: 0, spin: Duration::from_micros(50) }
    }
}

/// One side of a channel. Dropping it, or its sender and its receiver, ends the channel, unless an [`Extra`] or a
/// [`Waker`] of this side still exists. The other side can still read the messages that were sent before.
pub struct Endpoint {
    /// Sends to the other side.
    pub sender: Sender,
    /// Receives from the other side.
    pub receiver: Receiver,
}

impl Endpoint {
    /// Creates a channel. If the creator of an older channel with this name has died, the new channel replaces that
    /// one. One process creates a channel, and one other process attaches to it.
    ///
    /// # Errors
    /// [`Error::Served`], [`Error::Foreign`], [`Error::Name`], [`Error::Size`] and [`Error::System`].
    pub fn create(name: &str, options: Options) -> Result<Endpoint, Error> {
        Ok(Endpoint::new(Block::create(name, options.slots, options.bulk, options.extra)?, options.spin))
    }

    /// Checks whether a channel with this name can be created. Creates nothing.
    ///
    /// # Errors
    /// [`Error::Served`], [`Error::Foreign`], [`Error::Name`] and [`Error::System`].
    pub fn check_name(name: &str) -> Result<(), Error> {
        Block::check_name(name)
    }

    /// Attaches to a channel that another process has created. Waits until there is a channel with this name to which
    /// no process has attached yet. Without a `timeout`, waits forever.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Attached`] and [`Error::Damaged`] after `timeout`; other errors at once.
    pub fn connect(name: &str, timeout: Option<Duration>, options: Options) -> Result<Endpoint, Error> {
        let deadline = wait::deadline(timeout);
        loop {
            match Block::attach(name) {
                Ok(block) => return Ok(Endpoint::new(block, options.spin)),
                // The program that serves a damaged channel replaces it.
                Err(Error::Missing(_) | Error::Attached(_) | Error::Damaged(_))
                    if deadline.is_none_or(|deadline| Instant::now() < deadline) =>
                {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn new(block: Block, spin: Duration) -> Endpoint {
        let side = block.side();
        let block = Arc::new(block);
        Endpoint {
            sender: Sender::new(block.clone(), side, spin),
            receiver: Receiver::new(block, side, spin),
        }
    }

    /// Waits until another process has attached to a channel that this one created. Without a `timeout`, waits forever.
    /// On the side that attached, this returns at once.
    ///
    /// # Errors
    /// [`Error::Timeout`] and [`Error::Damaged`].
    pub fn accept(&self, timeout: Option<Duration>) -> Result<(), Error> {
        let block = &self.receiver.memory;
        let deadline = wait::deadline(timeout);
        while !block.is_attached() {
            if let Some(damage) = block.damage() {
                return Err(Error::Damaged(damage));
            }
            let rest =
                deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
            if rest.is_zero() {
                return Err(Error::Timeout);
            }
            block.sleep_until_attached(rest.min(Duration::from_secs(1)));
        }
        Ok(())
    }

    /// Like [`Sender::reserve`], but the message can also report to the other side how many messages this side has
    /// read. If the two sides send in turn, this is faster than [`Sender::reserve`].
    ///
    /// # Errors
    /// Those of [`Sender::reserve`].
    #[inline(always)]
    pub fn reserve(&mut self, length: usize, timeout: Option<Duration>) -> Result<Reserved<'_>, Error> {
        self.sender.reserve_reply(Some(&mut self.receiver), length, timeout)
    }

    /// Like [`Sender::send`]; see [`reserve`](Self::reserve).
    ///
    /// # Errors
    /// Those of [`Sender::reserve`].
    #[inline]
    pub fn send(&mut self, data: &[u8], timeout: Option<Duration>) -> Result<(), Error> {
        let mut place = self.reserve(data.len(), timeout)?;
        place.copy_from_slice(data);
        place.commit();
        Ok(())
    }

    /// The extra memory: words of 4 bytes. It is empty if the channel was created with [`Options::extra`] 0.
    pub fn extra(&self) -> Extra {
        Extra(self.receiver.memory.clone())
    }

    /// A handle with which another thread can end this side's [`Receiver::wait`].
    pub fn waker(&self) -> Waker {
        Waker { block: self.receiver.memory.clone(), side: self.receiver.side }
    }
}

/// Lets one thread end the [`Receiver::wait`] of another thread of this process. Keeps the channel open, as a sender or
/// a receiver does.
#[derive(Clone)]
pub struct Waker {
    block: Arc<Block>,
    side: Side,
}

impl Waker {
    /// Makes a [`Receiver::wait`] that sleeps, or is about to sleep, check its `stop` condition again. Before this
    /// call, change the value that `stop` reads.
    pub fn wake(&self) {
        // SYNC POINT (sleep): pairs with the barrier in `wait::sleep`. A full fence costs more than `light_fence`, but
        // this call is rare.
        fence(Ordering::SeqCst);
        wait::wake(&*self.block, Sleeper::Reader(self.side));
    }
}

/// Extra memory that both sides see, for any purpose that they agree on. Keeps the channel open, as a sender or a
/// receiver does.
#[derive(Clone)]
pub struct Extra(Arc<Block>);

impl AsRef<[AtomicU32]> for Extra {
    fn as_ref(&self) -> &[AtomicU32] {
        self.0.extra()
    }
}
