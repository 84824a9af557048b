//! Sizes beyond which nothing is taken, so that no file and no caller makes a core allocate without bound.

/// The largest ROM taken, in bytes.
pub const MAX_ROM_SIZE: usize = 64 << 20;

/// The longest range read or written at once, in bytes: the largest part of a
/// GBA's address space, one image of the cartridge.
pub const MAX_RANGE: usize = 32 << 20;

/// The largest savestate read, in bytes; a real one is below 1 MiB.
pub const MAX_STATE_SIZE: usize = 16 << 20;

/// The largest battery save taken, in bytes; a real one has up to 128 KiB and a
/// few bytes for a clock.
pub const MAX_SAVE_SIZE: usize = 1 << 20;
