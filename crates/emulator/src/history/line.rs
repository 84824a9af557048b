//! A *line*: frames without a gap between them, with the states and the keys that the history keeps for them.

use std::collections::VecDeque;
use std::time::SystemTime;

use super::LineOverview;
use super::packed::Packed;

/// The largest number of differences in a group. A group is a state that is stored on its own, and the states after it,
/// which are stored as differences. Old states are dropped in whole groups.
const GROUP: usize = 16;

/// Why a line begins, instead of continuing the line before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// The history of the emulator begins, or another game or another save file was loaded.
    Game,
    /// The game was reset.
    Reset,
    /// A state was loaded. For an attached emulator also: there is a new connection, or events were lost.
    State,
    /// The emulator went back to a frame of an earlier line.
    Rewind {
        /// The number of that line.
        line: u32,
        /// The frame.
        frame: u32,
    },
}

/// Describes a state that the history keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptState {
    /// The frame counter.
    pub frame: u32,
    /// When the state was saved.
    pub time: SystemTime,
    /// Whether the state has a small picture.
    pub pictured: bool,
}

/// A small picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thumbnail {
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// The rows from top to bottom. Each pixel has five bits of red, six of green and five of blue, with red in the
    /// highest bits.
    pub pixels: Box<[u16]>,
}

/// Each pixel of a small picture is the mean of a square of the original. This is the square's side in pixels.
const REDUCTION: usize = 3;

impl Thumbnail {
    /// Makes a picture smaller. Each pixel of the original has `bytes` bytes; the first three are red, green and blue.
    pub(crate) fn of(width: usize, rows: &[&[u8]], bytes: usize) -> Thumbnail {
        let (width, height) = (width / REDUCTION, rows.len() / REDUCTION);
        let mut pixels = Vec::with_capacity(width * height);
        for rows in rows.chunks_exact(REDUCTION) {
            for x in 0..width {
                let mut sums = [0_u32; 3];
                for row in rows {
                    for pixel in row[x * REDUCTION * bytes..(x + 1) * REDUCTION * bytes].chunks_exact(bytes) {
                        sums.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += u32::from(*value));
                    }
                }
                let [red, green, blue] = sums.map(|sum| sum / (REDUCTION * REDUCTION) as u32);
                pixels.push((red >> 3 << 11 | green >> 2 << 5 | blue >> 3) as u16);
            }
        }
        Thumbnail { width: width as u32, height: height as u32, pixels: pixels.into_boxed_slice() }
    }

    /// The pixels, row by row from the top, with three bytes each: red, green, blue.
    pub fn to_rgb(&self) -> Vec<u8> {
        let bits = |pixel: u16, shift: u32, count: u32| {
            let value = u32::from(pixel) >> shift & ((1 << count) - 1);
            (value * 255 / ((1 << count) - 1)) as u8
        };
        self.pixels
            .iter()
            .flat_map(|pixel| [bits(*pixel, 11, 5), bits(*pixel, 5, 6), bits(*pixel, 0, 5)])
            .collect()
    }

    fn size(&self) -> usize {
        size_of::<Thumbnail>() + 2 * self.pixels.len()
    }
}

/// Which keys are held from a frame on.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeysFrom {
    pub frame: u32,
    pub keys: u16,
}

/// A state to add to a line.
#[derive(Debug)]
pub(crate) struct NewState<'a> {
    /// The frame counter.
    pub frame: u32,
    /// The state, as the core saved it.
    pub bytes: &'a [u8],
    /// The bytes of the state that was added before this one; empty to store this one on its own.
    pub before: &'a [u8],
    /// A hash of everything that acts on the game, such as cheats, but not of the keys. `None` if an effect on the game
    /// cannot be repeated, such as that of a script. Always `None` for an attached emulator.
    pub surroundings: Option<u64>,
    /// The small picture of the state.
    pub thumbnail: Option<Thumbnail>,
}

/// How to reach a frame: load a state, and run frames with the same keys as before.
#[derive(Debug)]
pub(crate) struct Found {
    /// The line of the frame.
    pub line: u32,
    /// The state to load.
    pub state: Vec<u8>,
    /// The keys of each frame to run after that.
    pub keys: Vec<u16>,
    /// The frame that is reached.
    pub frame: u32,
}

/// A line, with its states in the order of their frames.
#[derive(Debug)]
pub(super) struct Line {
    id: u32,
    beginning: Beginning,
    states: VecDeque<StoredState>,
    keys: VecDeque<KeysFrom>,
    /// The memory that the states take, in bytes.
    size: usize,
}

#[derive(Debug)]
struct StoredState {
    frame: u32,
    time: SystemTime,
    /// Whether it is stored on its own, and not as the difference from the state before it.
    whole: bool,
    packed: Packed,
    thumbnail: Option<Thumbnail>,
    /// As in [`NewState`].
    surroundings: Option<u64>,
    /// The first frame after this state at which something other than the keys changed the game.
    changed: Option<u32>,
}

impl StoredState {
    fn size(&self) -> usize {
        size_of::<StoredState>() + self.packed.size() + self.thumbnail.as_ref().map_or(0, Thumbnail::size)
    }
}

impl Line {
    pub fn id(&self) -> u32 {
        self.id
    }

    /// How much memory the line takes, in bytes.
    pub fn size(&self) -> usize {
        size_of::<Line>() + self.size + self.keys.len() * size_of::<KeysFrom>()
    }

    /// Describes the part of the line from the frame `first` on.
    pub fn overview(&self, first: u32) -> LineOverview {
        let kept = |state: &StoredState| KeptState {
            frame: state.frame,
            time: state.time,
            pictured: state.thumbnail.is_some(),
        };
        // Include the keys that were already held at `first`.
        let held = self.keys.iter().rposition(|keys| keys.frame <= first).unwrap_or(0);
        LineOverview {
            id: self.id,
            beginning: self.beginning,
            states: self.states.iter().filter(|state| state.frame >= first).map(kept).collect(),
            keys: self.keys.iter().skip(held).map(|keys| (keys.frame, keys.keys)).collect(),
            changes: self.states.iter().filter_map(|state| state.changed).filter(|at| *at >= first).collect(),
        }
    }

    pub fn thumbnail(&self, frame: u32) -> Option<Thumbnail> {
        self.states.iter().find(|state| state.frame == frame)?.thumbnail.clone()
    }

    pub fn new(id: u32, beginning: Beginning) -> Line {
        Line { id, beginning, states: VecDeque::new(), keys: VecDeque::new(), size: 0 }
    }

    /// If this line began after the emulator went back: the line and the frame that it went back to.
    pub fn follows(&self) -> Option<(u32, u32)> {
        match self.beginning {
            Beginning::Rewind { line, frame } => Some((line, frame)),
            _ => None,
        }
    }

    /// The frames of the first and the last kept state.
    pub fn span(&self) -> Option<(u32, u32)> {
        Some((self.states.front()?.frame, self.states.back()?.frame))
    }

    pub fn ends_at(&self, frame: u32) -> bool {
        self.states.back().is_some_and(|last| last.frame == frame)
    }

    pub fn add(&mut self, new: NewState<'_>) {
        let differences = self.states.iter().rev().take_while(|state| !state.whole).count();
        let whole = new.before.is_empty() || differences >= GROUP;
        let state = StoredState {
            frame: new.frame,
            time: SystemTime::now(),
            whole,
            packed: Packed::new(if whole { &[] } else { new.before }, new.bytes),
            thumbnail: new.thumbnail,
            surroundings: new.surroundings,
            changed: None,
        };
        self.size += state.size();
        self.states.push_back(state);
    }

    pub fn note_keys(&mut self, keys: KeysFrom) {
        self.keys.push_back(keys);
    }

    pub fn note_change(&mut self, frame: u32) {
        if let Some(last) = self.states.back_mut() {
            last.changed.get_or_insert(frame);
        }
    }

    /// Drops the oldest group of states. Returns false if there is only one group.
    pub fn drop_oldest(&mut self) -> bool {
        // `next` is counted from the second state. So it is also the index of the last state of the oldest group.
        let Some(next) = self.states.iter().skip(1).position(|state| state.whole) else { return false };
        let dropped: usize = self.states.drain(..=next).map(|state| state.size()).sum();
        self.size -= dropped;
        let first = self.states.front().map_or(0, |state| state.frame);
        while self.keys.get(1).is_some_and(|next| next.frame <= first) {
            self.keys.pop_front();
        }
        true
    }

    /// Finds how to reach a frame, or the last frame before it that can be reached exactly. `None` if the frame is
    /// before the first kept state or after the last one.
    pub fn find(&self, frame: u32, surroundings: Option<u64>) -> Option<Found> {
        if self.states.back()?.frame < frame {
            return None;
        }
        let before = self.states.iter().rposition(|state| state.frame <= frame)?;
        // A state contains no picture, but running a frame draws one. So if `frame` has a state of its own, prefer to
        // run the frames from the state before it.
        let is_last = before + 1 == self.states.len();
        let earlier = before.checked_sub(1).filter(|earlier| {
            // The last state can contain a change that was made in its frame, such as a write to memory. Running frames
            // from the state before it would lose the change. The next frames may continue this line, so they need it.
            self.states[before].frame == frame && !(is_last && self.states[*earlier].changed == Some(frame))
        });
        let number =
            earlier.filter(|number| self.reach(*number, frame, surroundings) == frame).unwrap_or(before);
        let frame = self.reach(number, frame, surroundings);
        let start = self.states[number].frame;
        Some(Found {
            line: self.id,
            state: self.unpack(number),
            keys: (start..frame).map(|frame| self.keys_at(frame)).collect(),
            frame,
        })
    }

    /// The last frame, at most `frame`, that is reached exactly from the state with this number and the keys after it.
    fn reach(&self, number: usize, frame: u32, surroundings: Option<u64>) -> u32 {
        let state = &self.states[number];
        if state.surroundings.is_none() || state.surroundings != surroundings {
            return state.frame;
        }
        state.changed.map_or(frame, |changed| frame.min(changed))
    }

    /// The bytes of the state with this number.
    fn unpack(&self, number: usize) -> Vec<u8> {
        let whole = self.states.range(..=number).rposition(|state| state.whole).unwrap_or(0);
        let mut bytes = Vec::new();
        for state in self.states.range(whole..=number) {
            state.packed.unpack(&mut bytes);
        }
        bytes
    }

    fn keys_at(&self, frame: u32) -> u16 {
        let after = self.keys.partition_point(|keys| keys.frame <= frame);
        after.checked_sub(1).map_or(0, |last| self.keys[last].keys)
    }
}
