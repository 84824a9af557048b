//! The memory of a channel: its parts, and the operations on them.

#[cfg(not(loom))]
mod block;
mod cells;
#[cfg(not(loom))]
mod lost;
#[cfg(not(loom))]
pub mod sys;

#[cfg(not(loom))]
pub use block::Block;
pub use cells::{Half, Slot};

use std::time::Duration;

use crate::sync::AtomicU32;

/// One of the two sides: the creator, or the client, which attaches. The number of a side is its index in the layout,
/// and the byte of the block's file that the side locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Creator = 0,
    Attached = 1,
}

impl Side {
    pub fn other(self) -> Side {
        match self {
            Side::Creator => Side::Attached,
            Side::Attached => Side::Creator,
        }
    }
}

/// A thread that can sleep: the reader or the writer of a side.
#[derive(Debug, Clone, Copy)]
pub enum Sleeper {
    Reader(Side),
    Writer(Side),
}

/// Memory of a channel. The references and pointers that it returns are valid as long as the value exists.
pub trait Memory: Send + Sync {
    /// The half of the mailbox that a side writes. Each half holds one short message.
    fn half(&self, side: Side) -> &Half;
    /// The slots that a side writes; their number is a power of two.
    fn slots(&self, side: Side) -> &[Slot];
    /// The size of a side's bulk room in bytes. The bulk room holds the long messages that the side writes.
    fn bulk_size(&self) -> usize;
    /// The start of a range in a side's bulk room. Panics if the range does not lie inside the room.
    fn bulk(&self, side: Side, offset: usize, length: usize) -> *mut u8;
    /// Reports to loom, the library that tests this code, that a range of a side's bulk room is read or written.
    fn watch_bulk(&self, side: Side, offset: usize, length: usize, write: bool);
    /// The word that is 1 while this reader or writer sleeps.
    fn sleeps(&self, sleeper: Sleeper) -> &AtomicU32;
    /// Sleeps while the word of `sleeper` is 1, for at most `limit`.
    fn sleep(&self, sleeper: Sleeper, limit: Duration);
    /// Wakes the thread that sleeps as this reader or writer.
    fn wake(&self, sleeper: Sleeper);
    /// Makes all processes of the channel pass a full barrier.
    fn barrier(&self);
    /// The longest time to sleep without checking whether the other side is alive.
    fn check_interval(&self) -> Duration;
    /// Whether an access found that a part of the memory is gone.
    fn is_lost(&self) -> bool;
    /// What is wrong with the memory, if anything. This makes system calls.
    fn damage(&self) -> Option<&'static str>;
    /// Whether the side opposite `side` has closed the channel.
    fn peer_closed(&self, side: Side) -> bool;
    /// Whether the process of the side opposite `side` is alive.
    fn peer_lives(&self, side: Side) -> bool;
}
