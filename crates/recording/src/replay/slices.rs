//! Splits a recording into the parts that a replay plays in one batch each.

use std::ops::Range;

use framewire_protocol::Op;

use crate::{Entry, memory};

/// The largest number of frames in a slice. This many frames take about a tenth of a second, and other requests wait
/// for them.
const FRAMES: u64 = 240;

/// The largest number of times that a slice reads the work RAM. Each read makes the reply at most 288 KiB longer.
const MEMORIES: usize = 16;

/// The largest number of operations in a slice. Each step needs at most two. A batch can have 4096 operations.
const OPS: usize = 2048;

/// Splits the entries of a recording into slices, each for one batch of operations.
pub(super) struct Slices<'a> {
    entries: &'a [Entry],
    /// The number of frames that have already been taken from the first entry.
    done: u32,
    /// The largest number of frames in a slice.
    limit: u64,
    /// The number of frames before the next step.
    frame: u64,
    /// The interval, in frames, at which the emulator reports hashes by itself; 0 if it does not report any.
    reported: u64,
}

/// A part of a recording that one batch plays: consecutive entries.
pub(super) struct Slice<'a> {
    steps: Vec<Step<'a>>,
}

/// An entry in a slice, or a part of one.
enum Step<'a> {
    /// An entry of keys, or a part of one.
    Keys { keys: u16, frames: u32 },
    /// A hash of memory. To compare it, two operations have to read the memory.
    Read(&'a Entry),
    /// Any other entry. It needs no operation.
    Other(&'a Entry),
}

impl<'a> Slices<'a> {
    /// Splits `entries` into slices of one frame if `single` is true, and otherwise into slices of up to 240 frames.
    /// `reported` is the interval, in frames, at which the emulator reports hashes by itself.
    pub fn new(entries: &'a [Entry], single: bool, reported: u32) -> Slices<'a> {
        Slices {
            entries,
            done: 0,
            limit: if single { 1 } else { FRAMES },
            frame: 0,
            reported: reported.into(),
        }
    }

    /// The next step. It has at most `room` frames. `None` if there are no more entries, or if `room` is 0 and the next
    /// entry contains keys.
    fn step(&mut self, room: u64) -> Option<Step<'a>> {
        let entry = self.entries.first()?;
        let Entry::Keys { keys, frames } = entry else {
            self.entries = &self.entries[1..];
            let reported = self.reported > 0 && self.frame > 0 && self.frame.is_multiple_of(self.reported);
            let read = matches!(entry, Entry::Memory(_)) && !reported;
            return Some(if read { Step::Read(entry) } else { Step::Other(entry) });
        };
        let left = frames - self.done;
        let now = u32::try_from(room).unwrap_or(left).min(left);
        self.done += now;
        self.frame += u64::from(now);
        if self.done == *frames {
            self.entries = &self.entries[1..];
            self.done = 0;
        }
        if now > 0 { Some(Step::Keys { keys: *keys, frames: now }) } else { None }
    }
}

impl<'a> Iterator for Slices<'a> {
    type Item = Slice<'a>;

    fn next(&mut self) -> Option<Slice<'a>> {
        let mut slice = Slice { steps: Vec::new() };
        let (mut room, mut memories) = (self.limit, 0);
        while slice.steps.len() < OPS / 2
            && memories < MEMORIES
            && let Some(step) = self.step(room)
        {
            match step {
                Step::Keys { frames, .. } => room -= u64::from(frames),
                Step::Read(_) => memories += 1,
                Step::Other(_) => {}
            }
            slice.steps.push(step);
        }
        if slice.steps.is_empty() { None } else { Some(slice) }
    }
}

impl Slice<'_> {
    /// The number of frames in the slice.
    pub fn frames(&self) -> u64 {
        self.steps.iter().map(Step::frames).sum()
    }

    /// The operations that play the slice and read the memory that has to be compared.
    pub fn ops(&self, console: u8) -> Vec<Op> {
        let mut ops = Vec::new();
        for step in &self.steps {
            match step {
                Step::Keys { keys, frames } => {
                    ops.extend([Op::SetKeys { keys: *keys }, Op::Advance { frames: *frames }]);
                }
                Step::Read(_) => ops.extend(memory::read(console)),
                Step::Other(_) => {}
            }
        }
        ops
    }

    /// The recorded hashes of pictures with their frames. `before` is the number of frames before the slice.
    pub fn pictures(&self, before: u64) -> impl Iterator<Item = (u64, u32)> {
        self.hashes(before).filter_map(|(frame, entry, _)| match entry {
            Entry::Picture(hash) => Some((frame, *hash)),
            _ => None,
        })
    }

    /// The recorded hashes of memory with their frames, and the range of the results that contain this memory. The
    /// range is empty if the emulator reports the hash by itself.
    pub fn memories(&self, before: u64) -> impl Iterator<Item = (u64, u32, Range<usize>)> {
        self.hashes(before).filter_map(|(frame, entry, results)| match entry {
            Entry::Memory(hash) => Some((frame, *hash, results)),
            _ => None,
        })
    }

    fn hashes(&self, before: u64) -> impl Iterator<Item = (u64, &Entry, Range<usize>)> {
        let (mut frame, mut op) = (before, 0);
        self.steps.iter().filter_map(move |step| {
            frame += step.frames();
            let results = op..op + step.ops();
            op = results.end;
            match step {
                Step::Keys { .. } => None,
                Step::Read(entry) | Step::Other(entry) => Some((frame, *entry, results)),
            }
        })
    }
}

impl Step<'_> {
    fn frames(&self) -> u64 {
        match self {
            Step::Keys { frames, .. } => u64::from(*frames),
            Step::Read(_) | Step::Other(_) => 0,
        }
    }

    /// The number of operations for this step.
    fn ops(&self) -> usize {
        match self {
            Step::Keys { .. } | Step::Read(_) => 2,
            Step::Other(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: u16, frames: u32) -> Entry {
        Entry::Keys { keys, frames }
    }

    fn played(slices: &[Slice<'_>]) -> Vec<u16> {
        let mut all = Vec::new();
        for op in slices.iter().flat_map(|slice| slice.ops(0)).collect::<Vec<_>>().windows(2) {
            if let [Op::SetKeys { keys }, Op::Advance { frames }] = op {
                all.extend(vec![*keys; *frames as usize]);
            }
        }
        all
    }

    #[test]
    fn slices_contain_every_frame_once() {
        let entries =
            [keys(1, 1000), Entry::Picture(7), keys(2, 5), keys(3, 1), Entry::Memory(8), keys(1, 239)];
        let frames: Vec<u16> = [vec![1; 1000], vec![2; 5], vec![3], vec![1; 239]].concat();
        for single in [false, true] {
            let slices: Vec<_> = Slices::new(&entries, single, 0).collect();
            assert_eq!(played(&slices), frames);
            let longest = slices.iter().map(Slice::frames).max();
            assert_eq!(longest, Some(if single { 1 } else { FRAMES }));
            let (mut before, mut pictures, mut memories) = (0, Vec::new(), Vec::new());
            for slice in &slices {
                pictures.extend(slice.pictures(before));
                for (frame, hash, results) in slice.memories(before) {
                    assert!(matches!(
                        slice.ops(0)[results],
                        [Op::DomainReadRange { .. }, Op::DomainReadRange { .. }]
                    ));
                    memories.push((frame, hash));
                }
                before += slice.frames();
            }
            assert_eq!((pictures, memories), (vec![(1000, 7)], vec![(1006, 8)]));
        }
    }

    #[test]
    fn no_slice_has_too_many_operations() {
        let entries: Vec<Entry> = (0..20_000)
            .map(|frame| if frame % 2 == 0 { keys(frame % 8, 1) } else { Entry::Memory(0) })
            .collect();
        assert!(Slices::new(&entries, false, 0).all(|slice| slice.ops(0).len() <= OPS));
        assert_eq!(Slices::new(&entries, false, 0).map(|slice| slice.frames()).sum::<u64>(), 10_000);
        assert_eq!(Slices::new(&[], false, 0).count(), 0);
    }
}
