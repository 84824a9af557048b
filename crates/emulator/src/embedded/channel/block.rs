//! The block of shared memory that the client reads: a header with the frame counter and the offset of the picture, the
//! memory that the client watches, and the picture. `docs/emulator-channel.md` describes it.
//!
//! A client can *hold the clock*: then frames run only when it requests them.

use std::sync::atomic::{AtomicU32, Ordering, fence};

use framewire_channel::Extra;
use framewire_libmgba::{Canvas, PICTURE};

use super::super::machine::Machine;

const MAGIC: [u32; 2] = [u32::from_le_bytes(*b"FWFR"), u32::from_le_bytes(*b"AME1")];
const VERSION: u32 = 1;

/// Offsets of header fields, in words.
mod at {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 2;
    pub const SEQUENCE: usize = 3;
    pub const FRAME: usize = 4;
    pub const TICK: usize = 5;
    pub const WIDTH: usize = 6;
    pub const HEIGHT: usize = 7;
    pub const STRIDE: usize = 8;
    pub const PICTURE: usize = 9;
    pub const CLOCK: usize = 10;
    pub const PLATFORM: usize = 11;
    pub const KEYS: usize = 12;
    pub const WATCHED: usize = 13;
    pub const WATCH: usize = 14;
}

/// The size of the header, in words.
const HEADER: usize = 4096 / 4;
/// The space for watched memory, in bytes.
pub const WATCH_ROOM: usize = 64 * 1024;
/// The offset of the picture that the core draws, in words.
const LIVE: usize = HEADER + WATCH_ROOM / 4;
/// The offset of a copy of the picture, in words. A client gets the copy while it does not hold the clock.
const COPY: usize = LIVE + PICTURE;
/// The size of the block in bytes.
pub const SIZE: usize = (COPY + PICTURE) * 4;
/// The number of bytes from one row of the picture to the next.
const STRIDE: usize = 1024;

/// A range of the bus that is copied into the block.
#[derive(Debug, Clone, Copy)]
pub struct WatchedRange {
    pub address: u32,
    pub length: u32,
}

/// The block, in the extra memory of a channel.
pub struct Block(Extra);

/// The part of the block that the core draws into.
struct Screen(Extra);

impl AsRef<[AtomicU32]> for Screen {
    fn as_ref(&self) -> &[AtomicU32] {
        &self.0.as_ref()[LIVE..COPY]
    }
}

impl Block {
    pub fn new(extra: Extra) -> Block {
        let block = Block(extra);
        block.set(at::VERSION, VERSION);
        block.set(at::STRIDE, STRIDE as u32);
        block.set(at::WATCH, (HEADER * 4) as u32);
        block.set(at::MAGIC, MAGIC[0]);
        // SYNC POINT (ready): a client that sees the second word of the magic number also sees the constant fields of
        // the header.
        block.words()[at::MAGIC + 1].store(MAGIC[1], Ordering::Release);
        block
    }

    /// The part of the block into which the core draws.
    pub fn canvas(&self) -> Canvas {
        Box::new(Screen(self.0.clone()))
    }

    fn words(&self) -> &[AtomicU32] {
        self.0.as_ref()
    }

    fn set(&self, at: usize, value: u32) {
        self.words()[at].store(value, Ordering::Relaxed);
    }

    fn get(&self, at: usize) -> u32 {
        self.words()[at].load(Ordering::Relaxed)
    }

    /// Marks the picture as incomplete: makes the sequence number odd.
    pub fn begin(&self) {
        self.set(at::SEQUENCE, self.get(at::SEQUENCE) | 1);
        // SYNC POINT (picture): pairs with the client, which reads the sequence number before and after it reads the
        // picture. If the client reads a byte that was written after this fence, its second read returns the odd number
        // or a later one.
        fence(Ordering::Release);
    }

    /// Marks the picture as complete: sets the sequence number to the next even number. `ticks` frames have run since
    /// the channel was created.
    pub fn end(&self, ticks: u32) {
        let sequence = self.get(at::SEQUENCE);
        // SYNC POINT (picture): as above. A client that reads this number also sees everything that was written before
        // it.
        self.words()[at::SEQUENCE].store((sequence | 1).wrapping_add(1), Ordering::Release);
        self.set(at::TICK, ticks);
    }

    /// Updates the header, the watched memory and, if needed, the copy of the picture. A client that does not hold the
    /// clock gets a copy of the picture, because the core continues to draw.
    pub fn refresh(&self, machine: &mut Machine, watches: &[WatchedRange], holds_clock: bool) {
        let core = &mut machine.core;
        let picture = core.frame();
        if !holds_clock {
            // The core cannot draw into these words at the same time, because this is the core's thread.
            let rows = picture.height as usize * STRIDE / 4;
            let words = self.words();
            for (to, from) in words[COPY..COPY + rows].iter().zip(&words[LIVE..LIVE + rows]) {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        self.set(at::WIDTH, picture.width);
        self.set(at::HEIGHT, picture.height);
        self.set(at::PICTURE, 4 * if holds_clock { LIVE } else { COPY } as u32);
        self.set(at::CLOCK, u32::from(holds_clock));
        self.set(at::FRAME, core.frame_counter());
        self.set(at::PLATFORM, core.platform().number());
        self.set(at::KEYS, core.keys().into());
        let mut word = HEADER;
        for watch in watches {
            for offset in (0..watch.length).step_by(4) {
                let address = watch.address.wrapping_add(offset);
                let bytes = (watch.length - offset).min(4);
                let value = if bytes == 4 && address.is_multiple_of(4) {
                    core.read32(address)
                } else {
                    (0..bytes).fold(0, |value, byte| {
                        value | u32::from(core.read8(address.wrapping_add(byte))) << (8 * byte)
                    })
                };
                self.set(word, value);
                word += 1;
            }
        }
        self.set(at::WATCHED, 4 * (word - HEADER) as u32);
    }
}

/// The number of bytes that these ranges take in the block, where each range begins at a multiple of four.
pub fn room_for(watches: &[WatchedRange]) -> usize {
    watches.iter().map(|watch| (watch.length as usize).next_multiple_of(4)).fold(0, usize::saturating_add)
}
