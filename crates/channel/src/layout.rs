//! The layout of the shared memory, as `docs/channel.md` describes it. All offsets are in bytes.

/// The longest message in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;

/// The first eight bytes of a block that is ready.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FWCHAN1\0");
/// Version of the layout.
pub const VERSION: u32 = 1;
/// The longest message that fits into the mailbox.
pub const MAILBOX_MAX: usize = 19;
/// The longest message that is stored in its slot.
pub const INLINE_MAX: usize = 112;
/// A long message begins at an offset that is a multiple of this.
pub const BULK_ALIGN: usize = 64;

/// Offsets in a block.
#[cfg(not(loom))]
pub mod at {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    /// The number of slots to which each side writes. The slots themselves begin at [`RINGS`].
    pub const SLOTS: usize = 12;
    /// The size of each side's memory for long messages.
    pub const BULK: usize = 16;
    /// The size of the extra memory.
    pub const EXTRA: usize = 20;
    /// The creator's process id.
    pub const CREATOR: usize = 64;
    /// The client's process id; 0 until it attaches.
    pub const ATTACHED: usize = 68;
    /// Two words, one for each side: 1 after this side has closed the channel.
    pub const CLOSED: usize = 72;
    /// The two halves of the mailbox, one for each side.
    pub const MAILBOX: usize = 128;
    /// Two words, one for each side: 1 while this side sleeps because it waits for a message.
    pub const READER_SLEEPS: usize = 256;
    /// Two words, one for each side: 1 while this side sleeps because it waits for room to write.
    pub const WRITER_SLEEPS: usize = 264;
    /// The first slot.
    pub const RINGS: usize = 4096;
}
