//! The two structures that hold a short message next to its stamp: a half of the mailbox, and a slot of a ring.
//! docs/channel.md describes the mailbox and the rings.

use std::cell::UnsafeCell;

use crate::layout::{INLINE_MAX, MAILBOX_MAX};
use crate::sync::{AtomicU32, AtomicU64, Shadow};

/// A side's half of the mailbox.
#[repr(C, align(32))]
pub struct Half {
    /// One more than the number of the message that is here; 0 before the first.
    pub stamp: AtomicU64,
    data: UnsafeCell<[u8; MAILBOX_MAX]>,
    length: UnsafeCell<u8>,
    /// How many messages from the other side were read by this side (the low 32 bits of the count).
    pub consumed: AtomicU32,
    shadow: Shadow,
}

/// One slot of a ring.
#[repr(C, align(128))]
pub struct Slot {
    /// One more than the number of the message that is here; 0 before the first.
    pub stamp: AtomicU64,
    length: UnsafeCell<u32>,
    /// Where a long message begins in the bulk room, the memory for long messages.
    bulk: UnsafeCell<u32>,
    data: UnsafeCell<[u8; INLINE_MAX]>,
    shadow: Shadow,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Half>() == 32 && size_of::<Slot>() == 128);

// SAFETY: everything except the stamp and `consumed`, which are atomic, is used by one side at a time: by the writer
// while the stamp is old, and by the reader from the moment the stamp is new until it publishes that it has read the
// message.
unsafe impl Sync for Half {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Half {
    /// The bytes of a message.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.data.get().cast()
    }

    /// Writes the length. Only the writer may call this.
    #[inline]
    pub fn set_length(&self, length: usize) {
        self.shadow.write();
        // SAFETY: see `Sync` above.
        unsafe { *self.length.get() = length as u8 }
    }

    /// Reads the length. Only the reader may call this. Whatever the other side wrote, the length fits into the half.
    #[inline]
    pub fn length(&self) -> usize {
        self.shadow.read();
        // SAFETY: see `Sync` above.
        usize::from(unsafe { *self.length.get() }).min(MAILBOX_MAX)
    }

    /// Reports a read of the bytes to loom (a model checker), which detects whether they are written at the same time.
    #[inline]
    pub fn watch(&self) {
        self.shadow.read();
    }
}

impl Slot {
    /// The bytes of a short message.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.data.get().cast()
    }

    /// Writes the length, and where a long message begins. Only the writer may call this.
    #[inline]
    pub fn describe(&self, length: usize, bulk: usize) {
        self.shadow.write();
        // SAFETY: see `Sync` above.
        unsafe {
            *self.length.get() = length as u32;
            if length > INLINE_MAX {
                *self.bulk.get() = bulk as u32;
            }
        }
    }

    /// Reads the length, and where a long message begins. Only the reader may call this. The other side may have
    /// written any values, so the caller must check both.
    #[inline]
    pub fn description(&self) -> (usize, usize) {
        self.shadow.read();
        // SAFETY: see `Sync` above.
        unsafe { (*self.length.get() as usize, *self.bulk.get() as usize) }
    }

    /// Reports a read of the bytes to loom (a model checker), which detects whether they are written at the same time.
    #[inline]
    pub fn watch(&self) {
        self.shadow.read();
    }
}

#[cfg(loom)]
impl Default for Half {
    fn default() -> Self {
        Half {
            stamp: AtomicU64::new(0),
            data: UnsafeCell::new([0; MAILBOX_MAX]),
            length: UnsafeCell::new(0),
            consumed: AtomicU32::new(0),
            shadow: Shadow::default(),
        }
    }
}

#[cfg(loom)]
impl Default for Slot {
    fn default() -> Self {
        Slot {
            stamp: AtomicU64::new(0),
            length: UnsafeCell::new(0),
            bulk: UnsafeCell::new(0),
            data: UnsafeCell::new([0; INLINE_MAX]),
            shadow: Shadow::default(),
        }
    }
}
