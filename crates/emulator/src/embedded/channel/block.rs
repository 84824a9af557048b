//! The block of memory that the client sees: the place of the picture, the frame counter, and the memory that it watches.
//! `docs/emulator-channel.md` describes it.

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

const HEADER: usize = 4096 / 4;
/// Room for watched memory in bytes.
pub const WATCH_ROOM: usize = 64 * 1024;
/// The offsets, in words, of the picture that the core draws and of the copy for a client that does not hold the clock.
const LIVE: usize = HEADER + WATCH_ROOM / 4;
const COPY: usize = LIVE + PICTURE;
/// Size of the block in bytes.
pub const SIZE: usize = (COPY + PICTURE) * 4;
/// Bytes from one row of the picture to the next.
const STRIDE: usize = 1024;

/// A range of the bus that is copied into the block.
#[derive(Debug, Clone, Copy)]
pub struct WatchedRange {
    pub address: u32,
    pub length: u32,
}

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
        // SYNC POINT (ready): a client that sees the whole magic also sees the fields of the header that never change.
        block.words()[at::MAGIC + 1].store(MAGIC[1], Ordering::Release);
        block
    }

    /// Memory for the core to draw into.
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

    /// Marks the picture as changing: makes the sequence odd.
    pub fn begin(&self) {
        self.set(at::SEQUENCE, self.get(at::SEQUENCE) | 1);
        // SYNC POINT (picture): pairs with the client, which reads the sequence before and after the picture. A client that
        // sees a byte that is written from here on then also sees the odd number.
        fence(Ordering::Release);
    }

    /// Marks the picture as complete: gives the sequence a new even number. `ticks` frames have run since the channel was
    /// created.
    pub fn end(&self, ticks: u32) {
        let sequence = self.get(at::SEQUENCE);
        // SYNC POINT (picture): as above. A client that sees this number also sees everything that was written before.
        self.words()[at::SEQUENCE].store((sequence | 1).wrapping_add(1), Ordering::Release);
        self.set(at::TICK, ticks);
    }

    /// Updates what a client reads: the place of the picture, the frame number, the watched memory. A client that does not hold
    /// the clock gets a copy of the picture, because the core continues to draw.
    pub fn refresh(&self, machine: &mut Machine, watches: &[WatchedRange], holds_clock: bool) {
        let core = &mut machine.core;
        let picture = core.frame();
        if !holds_clock {
            // The core does not draw into these words now, because this is the core's thread.
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

/// The bytes of the block that these ranges take: each begins at a multiple of four.
pub fn room_for(watches: &[WatchedRange]) -> usize {
    watches.iter().map(|watch| (watch.length as usize).next_multiple_of(4)).fold(0, usize::saturating_add)
}
