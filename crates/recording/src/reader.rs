//! Reads recordings and checks them for damage.

use std::collections::VecDeque;
use std::io;

use crc32fast::Hasher;
use framewire_protocol::DecodeError;
use framewire_protocol::wire::Reader;

use crate::entry::kind;
use crate::error::DamageKind;
use crate::{Damage, Entry, FormatError, Head, MAX_FILE, Writer};

/// A recording that was read from a file, up to the first damaged entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    head: Head,
    state: Vec<u8>,
    entries: Vec<Entry>,
    frames: u64,
    ending: Ending,
}

/// How a recording ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The file is complete. The text is the reason why the recording ended.
    Whole(String),
    /// The file is damaged. Nothing from this place on can be used.
    Damaged(Damage),
}

impl Recording {
    /// Reads a file up to its end or up to the first damage.
    ///
    /// # Errors
    /// If the file is larger than [`MAX_FILE`], is not a recording, or is damaged before its first frame.
    pub fn read(file: &[u8]) -> Result<Recording, FormatError> {
        if file.len() as u64 > MAX_FILE {
            return Err(FormatError::TooLarge(file.len() as u64));
        }
        let (head, length) = Head::read(file)?;
        let mut entries = Entries::after_head(file, length);
        let state = match entries.next() {
            Some(Ok(Entry::State(state))) => state,
            Some(Err(damage)) => return Err(FormatError::Start(damage)),
            Some(Ok(_)) | None => return Err(FormatError::Start(entries.damage(length, DamageKind::Entry))),
        };
        let mut recording =
            Recording { head, state, entries: Vec::new(), frames: 0, ending: Ending::Whole(String::new()) };
        entries.frame = 1;
        recording.ending = loop {
            let offset = entries.offset();
            match entries.next() {
                None => break Ending::Damaged(entries.damage(offset, DamageKind::Cut)),
                Some(Err(damage)) => break Ending::Damaged(damage),
                Some(Ok(Entry::End { frames, reason })) if frames == recording.frames => {
                    break match entries.next() {
                        None => Ending::Whole(reason),
                        Some(_) => Ending::Damaged(entries.damage(offset, DamageKind::More)),
                    };
                }
                Some(Ok(Entry::End { .. } | Entry::State(_))) => {
                    break Ending::Damaged(entries.damage(offset, DamageKind::Entry));
                }
                Some(Ok(entry)) => {
                    if let Entry::Keys { frames, .. } = entry {
                        recording.frames += u64::from(frames);
                        entries.frame = recording.frames + 1;
                    }
                    recording.entries.push(entry);
                }
            }
        };
        Ok(recording)
    }

    /// The game and the settings of the recording.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The state before the first frame.
    pub fn state(&self) -> &[u8] {
        &self.state
    }

    /// The entries for keys and hashes, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The number of frames before the end or the damage.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// How the recording ends.
    pub fn ending(&self) -> &Ending {
        &self.ending
    }

    /// The number of hashes of pictures.
    pub fn pictures(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry, Entry::Picture(_))).count()
    }

    /// Writes the recording again with another head and without damaged parts. If it was damaged, `reason` becomes the
    /// reason for its end.
    pub(crate) fn write<W: io::Write>(&self, out: W, head: &Head, reason: &str) -> io::Result<W> {
        let mut writer = Writer::begin(out, head, self.state.clone())?;
        for entry in &self.entries {
            match entry {
                Entry::Keys { keys, frames } => writer.keys(*keys, u64::from(*frames))?,
                Entry::Picture(hash) => writer.picture(*hash)?,
                Entry::Memory(hash) => writer.memory(*hash)?,
                Entry::State(_) | Entry::End { .. } => {}
            }
        }
        match &self.ending {
            Ending::Whole(reason) => writer.end(reason),
            Ending::Damaged(_) => writer.end(reason),
        }
    }

    /// Writes the recording again with these hashes of pictures: one after every group of `every` frames. `every` must
    /// be at least 1. Leaves out damaged parts.
    ///
    /// # Errors
    /// Those of [`Writer`].
    pub fn write_with<W: io::Write>(&self, out: W, every: u32, pictures: &[u32]) -> io::Result<W> {
        let head = Head { picture_interval: every, ..self.head.clone() };
        let mut writer = Writer::begin(out, &head, self.state.clone())?;
        let mut pictures = pictures.iter();
        for entry in &self.entries {
            match entry {
                Entry::Keys { keys, frames } => {
                    let mut left = u64::from(*frames);
                    while left > 0 {
                        let to_next = u64::from(every) - writer.frames() % u64::from(every);
                        let now = left.min(to_next);
                        writer.keys(*keys, now)?;
                        left -= now;
                        if now == to_next
                            && let Some(hash) = pictures.next()
                        {
                            writer.picture(*hash)?;
                        }
                    }
                }
                Entry::Memory(hash) => writer.memory(*hash)?,
                Entry::State(_) | Entry::Picture(_) | Entry::End { .. } => {}
            }
        }
        match &self.ending {
            Ending::Whole(reason) => writer.end(reason),
            Ending::Damaged(damage) => writer.end(&damage.to_string()),
        }
    }
}

/// A place between two entries, where the file can be cut off and completed with an end.
pub(crate) struct EndPlace {
    /// The offset of the place in the file, in bytes.
    pub offset: usize,
    /// The number of frames before the place.
    pub frames: u64,
    /// The checksum of everything before the place, except for the checksums themselves.
    pub checksum: Hasher,
}

impl EndPlace {
    /// The largest number of places that [`last`](Self::last) returns. The entry for the end is written at one of them,
    /// and replaces the entries after it. With this many places, the entries after the first place take more bytes than
    /// the entry for the end, so it fits there even if the disk is full.
    const MANY: usize = 256;

    /// The last places of a file, in the order of their offsets.
    ///
    /// # Errors
    /// If no part of the file can be played.
    pub fn last(file: &[u8]) -> Result<VecDeque<EndPlace>, FormatError> {
        let (_, length) = Head::read(file)?;
        let mut entries = Entries::after_head(file, length);
        let (mut places, mut frames) = (VecDeque::new(), 0);
        while let Some(Ok(entry)) = entries.next() {
            match entry {
                Entry::State(_) if places.is_empty() => {}
                Entry::State(_) | Entry::End { .. } => break,
                _ if places.is_empty() => break,
                Entry::Keys { frames: more, .. } => frames += u64::from(more),
                Entry::Picture(_) | Entry::Memory(_) => {}
            }
            if places.len() == EndPlace::MANY {
                places.pop_front();
            }
            places.push_back(EndPlace {
                offset: entries.offset(),
                frames,
                checksum: entries.checksum.clone(),
            });
        }
        if places.is_empty() {
            return Err(FormatError::Start(entries.damage(length, DamageKind::Entry)));
        }
        Ok(places)
    }
}

/// Iterates over the entries of a file, and verifies the checksum of each.
struct Entries<'a> {
    reader: Reader<'a>,
    file: &'a [u8],
    checksum: Hasher,
    /// The frame to which the next entry belongs, unless that entry is a hash.
    frame: u64,
}

impl<'a> Entries<'a> {
    fn after_head(file: &'a [u8], head: usize) -> Entries<'a> {
        let mut checksum = Hasher::new();
        checksum.update(&file[..head]);
        Entries { reader: Reader::new(&file[head..]), file, checksum, frame: 0 }
    }

    fn offset(&self) -> usize {
        self.file.len() - self.reader.remaining()
    }

    fn damage(&self, offset: usize, kind: DamageKind) -> Damage {
        Damage { frame: self.frame, offset, kind }
    }

    fn entry(&mut self) -> Result<Entry, DamageKind> {
        let start = self.offset();
        let entry = self.reader.get::<Entry>();
        // This is only the probable kind of damage: a changed byte in a length can make an entry look truncated.
        let entry = entry.map_err(|error| match error {
            DecodeError::Truncated(_) => DamageKind::Cut,
            _ => DamageKind::Entry,
        })?;
        self.checksum.update(&self.file[start..self.offset()]);
        match self.reader.get::<u32>() {
            Err(_) => Err(DamageKind::Cut),
            Ok(sum) if sum == self.checksum.clone().finalize() => Ok(entry),
            Ok(_) => Err(DamageKind::Checksum),
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.offset();
        if self.reader.remaining() == 0 {
            return None;
        }
        // An entry with a hash belongs to the frame before the entry.
        let of_hash = matches!(self.file[offset], kind::PICTURE | kind::MEMORY);
        Some(self.entry().map_err(|kind| {
            let damage = self.damage(offset, kind);
            Damage { frame: damage.frame - u64::from(of_hash && damage.frame > 1), ..damage }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::tests::head;

    fn file() -> Vec<u8> {
        let mut writer = Writer::begin(Vec::new(), &head(), vec![9; 100]).unwrap();
        for _ in 0..10 {
            writer.keys(1, 3).unwrap();
            writer.keys(1, 2).unwrap();
            writer.keys(0x200, 1).unwrap();
            writer.picture(77).unwrap();
        }
        writer.keys(0, 300).unwrap();
        writer.memory(5).unwrap();
        assert_eq!(writer.frames(), 360);
        let written = writer.bytes();
        let file = writer.end("stopped").unwrap();
        assert!(file.len() as u64 > written);
        file
    }

    #[test]
    fn a_written_recording_is_read_unchanged() {
        let recording = Recording::read(&file()).unwrap();
        assert_eq!((recording.head(), recording.state()), (&head(), &[9; 100][..]));
        assert_eq!((recording.frames(), recording.pictures()), (360, 10));
        assert_eq!(recording.ending(), &Ending::Whole("stopped".to_owned()));
        let first =
            [Entry::Keys { keys: 1, frames: 5 }, Entry::Keys { keys: 0x200, frames: 1 }, Entry::Picture(77)];
        assert_eq!(recording.entries()[..3], first);
    }

    /// After a change of any byte, the entries before the damage are still read unchanged.
    #[test]
    fn every_changed_byte_is_detected_at_its_frame() {
        let file = file();
        let whole = Recording::read(&file).unwrap();
        let (_, head) = Head::read(&file).unwrap();
        for at in 0..file.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut changed = file.clone();
                changed[at] ^= flip;
                match Recording::read(&changed) {
                    // The changed byte is in the head's text or in the state.
                    Err(FormatError::Start(damage)) => {
                        assert!(damage.frame == 0 && damage.offset == head, "{at}")
                    }
                    Err(_) => assert!(at < head, "{at}"),
                    Ok(recording) => {
                        let Ending::Damaged(damage) = recording.ending() else { panic!("not found at {at}") };
                        assert!(damage.offset <= at && at < damage.offset + 20, "{at}: {damage}");
                        let of_hash = matches!(changed[damage.offset], b'P' | b'M');
                        assert_eq!(damage.frame, recording.frames() + u64::from(!of_hash), "{at}");
                        assert!(whole.entries().starts_with(recording.entries()), "{at}");
                    }
                }
            }
        }
    }

    /// In this file, the entry for the state has 109 bytes. The last entry of keys has 9 bytes, the others 8.
    #[test]
    fn truncation_missing_entries_and_extra_bytes_are_detected() {
        let file = file();
        let (_, head) = Head::read(&file).unwrap();
        let whole = Recording::read(&file).unwrap();
        for end in 0..file.len() {
            match Recording::read(&file[..end]) {
                Err(FormatError::Start(_)) => assert!(end < head + 109),
                Err(_) => assert!(end < head),
                Ok(recording) => {
                    assert!(
                        matches!(recording.ending(), Ending::Damaged(damage) if damage.kind == DamageKind::Cut)
                    );
                    assert!(whole.entries().starts_with(recording.entries()));
                }
            }
        }
        // Remove the second entry of keys. The damage is detected at the next entry: a hash, which then belongs to
        // frame 5.
        let start = head + 109 + 8;
        let without = [&file[..start], &file[start + 8..]].concat();
        let recording = Recording::read(&without).unwrap();
        assert_eq!(recording.frames(), 5);
        assert!(matches!(
            recording.ending(),
            Ending::Damaged(Damage { frame: 5, kind: DamageKind::Checksum, .. })
        ));
        let longer = [&file[..], b"P"].concat();
        assert!(matches!(
            Recording::read(&longer).unwrap().ending(),
            Ending::Damaged(Damage { frame: 361, kind: DamageKind::More, .. })
        ));
    }

    #[test]
    fn replacing_the_hashes_changes_nothing_else() {
        let recording = Recording::read(&file()).unwrap();
        for every in [1, 7, 60, 1000] {
            let hashes: Vec<u32> = (0..360 / every).collect();
            let bytes = recording.write_with(Vec::new(), every, &hashes).unwrap();
            let again = Recording::read(&bytes).unwrap();
            assert_eq!((again.frames(), again.pictures()), (360, hashes.len()));
            assert_eq!((again.ending(), again.state()), (recording.ending(), recording.state()));
            let keys = |recording: &Recording| {
                let mut all = Vec::new();
                for entry in recording.entries() {
                    if let Entry::Keys { keys, frames } = entry {
                        all.extend(vec![*keys; *frames as usize]);
                    }
                }
                all
            };
            assert_eq!(keys(&again), keys(&recording));
        }
    }
}
