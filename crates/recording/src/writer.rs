//! Writes recordings.

use std::io::{self, Write};

use crc32fast::Hasher;
use framewire_protocol::wire::Wire;

use crate::{Entry, Head};

/// Writes a recording. Consecutive frames with the same keys become one entry. The errors of all methods are those of
/// the inner writer.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// The checksum of everything so far, except for the checksums themselves.
    checksum: Hasher,
    /// The frames that have been added but not written yet: their keys, which are the same in all of them, and their
    /// number.
    pending: (u16, u32),
    frames: u64,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the head and the state before the first frame.
    pub fn begin(mut out: W, head: &Head, state: Vec<u8>) -> io::Result<Writer<W>> {
        let head = head.to_string();
        out.write_all(head.as_bytes())?;
        let mut checksum = Hasher::new();
        checksum.update(head.as_bytes());
        let mut writer = Writer { out, checksum, pending: (0, 0), frames: 0, bytes: head.len() as u64 };
        writer.put(&Entry::State(state))?;
        Ok(writer)
    }

    /// Adds frames in which these keys are held.
    pub fn keys(&mut self, keys: u16, frames: u64) -> io::Result<()> {
        let mut left = frames;
        while left > 0 {
            if self.pending.0 != keys || self.pending.1 == u32::MAX {
                self.write_pending()?;
                self.pending.0 = keys;
            }
            let now = u32::try_from(left).unwrap_or(u32::MAX).min(u32::MAX - self.pending.1);
            self.pending.1 += now;
            left -= u64::from(now);
        }
        self.frames += frames;
        Ok(())
    }

    /// Writes the hash of the picture after the frames so far.
    pub fn picture(&mut self, hash: u32) -> io::Result<()> {
        self.write_pending()?;
        self.put(&Entry::Picture(hash))
    }

    /// Writes the hash of the work RAM after the frames so far.
    pub fn memory(&mut self, hash: u32) -> io::Result<()> {
        self.write_pending()?;
        self.put(&Entry::Memory(hash))
    }

    /// Writes everything that was added so far. If frames with the same keys follow, they become a new entry.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_pending()?;
        self.out.flush()
    }

    /// The number of frames that were added so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The number of bytes that were written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the recording with this reason.
    pub fn end(mut self, reason: &str) -> io::Result<W> {
        self.write_pending()?;
        self.put(&Entry::End { frames: self.frames, reason: reason.to_owned() })?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes the frames that wait in `pending`.
    fn write_pending(&mut self) -> io::Result<()> {
        let (keys, frames) = std::mem::take(&mut self.pending);
        if frames == 0 { Ok(()) } else { self.put(&Entry::Keys { keys, frames }) }
    }

    fn put(&mut self, entry: &Entry) -> io::Result<()> {
        let mut bytes = entry.to_bytes();
        self.checksum.update(&bytes);
        self.checksum.clone().finalize().encode(&mut bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(&bytes)
    }
}

impl Writer<Vec<u8>> {
    /// Takes the bytes that were written since the last call.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}
