//! The history of an emulator: earlier states that it can go back to, with small pictures and the keys of each frame.
//!
//! - `packed`: stores a state as the difference from the state before it;
//! - `line`: a line: frames without a gap between them, and the states and keys that are kept for them;
//! - [`History`]: all lines, within a limit on memory.
//!
//! A history has no access to the emulator. The core's thread, or the tasks of an attached emulator, add to it, and
//! front ends read it at any time.

#![cfg_attr(not(feature = "embedded"), allow(dead_code, reason = "attached emulators use a part of it"))]

mod line;
mod packed;

use std::collections::VecDeque;

use framewire_protocol::{OpError, Status};
use parking_lot::Mutex;

pub use line::{Beginning, KeptState, Thumbnail};
pub(crate) use line::{Found, NewState};
use line::{KeysFrom, Line};

/// The default for the memory that an emulator's history may take, in bytes.
pub const DEFAULT_HISTORY: usize = 32 << 20;

/// The largest number of lines. Each loaded state begins a new line.
const MAX_LINES: usize = 64;

/// The earlier states that an emulator can go back to.
#[derive(Debug)]
pub struct History {
    /// The largest number of bytes that all lines may take.
    budget: usize,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    /// The lines in the order in which they began. New frames belong to the last line. But after the emulator has gone
    /// back to any frame other than the end of the last line, the next frame begins a new line.
    all: VecDeque<Line>,
    /// The number of the line that the emulator is on.
    current: u32,
    last_id: u32,
}

/// An overview of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// The largest amount of memory that the history may take, in bytes.
    pub budget: usize,
    /// The memory that it takes now, in bytes. This can be more than `budget`, because the newest states are always
    /// kept.
    pub used: usize,
    /// The number of the line that the emulator is on; `None` while the history is empty.
    pub current: Option<u32>,
    /// The lines, the oldest first.
    pub lines: Vec<LineOverview>,
}

/// An overview of a line: frames without a gap between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineOverview {
    /// The line's number, from 1.
    pub id: u32,
    /// Why the line begins, instead of continuing the line before it.
    pub beginning: Beginning,
    /// The states that are kept, in the order of their frames.
    pub states: Vec<KeptState>,
    /// The keys that were held: for each change, the frame counter before the first frame with these keys, and their
    /// mask.
    pub keys: Vec<(u32, u16)>,
    /// For each kept state, the frame of the first change after it that did not come from the keys. States without
    /// such a change are left out.
    pub changes: Vec<u32>,
}

/// Refuses to go back while the game is recorded or replayed, or while a timeline plays or waits.
///
/// # Errors
/// What to end first.
pub(crate) fn check_may_go_back(
    has_recording_or_replay: bool,
    timeline_under_way: Option<u32>,
) -> Result<(), OpError> {
    if has_recording_or_replay {
        let message = "the game is being recorded or replayed, so it cannot go back; end that first";
        return Err(OpError::new(Status::Busy, message));
    }
    if let Some(id) = timeline_under_way {
        let message = format!("timeline {id} plays keys; cancel it or wait for its end before you go back");
        return Err(OpError::new(Status::Busy, message));
    }
    Ok(())
}

impl History {
    /// An empty history that takes at most `budget` bytes of memory, or more if the newest states alone need more. With
    /// 0, it stays empty.
    pub(crate) fn new(budget: usize) -> History {
        History { budget, lines: Mutex::default() }
    }

    /// Describes the frames from `first` on.
    pub fn overview(&self, first: u32) -> Overview {
        let lines = self.lines.lock();
        Overview {
            budget: self.budget,
            used: lines.used(),
            current: lines.get(lines.current).map(Line::id),
            lines: lines.all.iter().map(|line| line.overview(first)).collect(),
        }
    }

    /// The small picture of a frame of a line, if one is kept.
    pub fn thumbnail(&self, line: u32, frame: u32) -> Option<Thumbnail> {
        self.lines.lock().get(line)?.thumbnail(frame)
    }

    /// Whether the history may take any memory, so that states are kept at all.
    pub(crate) fn is_on(&self) -> bool {
        self.budget > 0
    }

    /// Removes all lines. Called when another game is loaded.
    pub(crate) fn clear(&self) {
        self.lines.lock().all.clear();
    }

    /// Begins a line. `beginning` is the reason why the next frame does not continue the last line.
    pub(crate) fn begin(&self, beginning: Beginning) {
        let lines = &mut *self.lines.lock();
        lines.last_id += 1;
        lines.current = lines.last_id;
        lines.all.push_back(Line::new(lines.last_id, beginning));
        if lines.all.len() > MAX_LINES {
            lines.all.pop_front();
        }
    }

    /// Adds a state to the last line. If the history now takes too much memory, drops the oldest states.
    pub(crate) fn add(&self, state: NewState<'_>) {
        let mut lines = self.lines.lock();
        if let Some(line) = lines.all.back_mut() {
            line.add(state);
        }
        while lines.used() > self.budget && lines.drop_oldest() {}
    }

    /// Records which keys are held from a frame on.
    pub(crate) fn note_keys(&self, frame: u32, keys: u16) {
        if let Some(line) = self.lines.lock().all.back_mut() {
            line.note_keys(KeysFrom { frame, keys });
        }
    }

    /// Records that something other than the keys changed the game at a frame, after the last state was kept.
    pub(crate) fn note_change(&self, frame: u32) {
        if let Some(line) = self.lines.lock().all.back_mut() {
            line.note_change(frame);
        }
    }

    /// Records that the emulator went back to this frame of a line. Returns whether this is the frame of the last state
    /// of the last line. Then the next frames continue that line.
    pub(crate) fn go_back(&self, line: u32, frame: u32) -> bool {
        let lines = &mut *self.lines.lock();
        lines.current = line;
        lines.all.back().is_some_and(|last| last.id() == line && last.ends_at(frame))
    }

    /// Replaces a frame for which there is no state yet: if `frame` is after the line's last state, but not after the
    /// current frame `now`, returns the frame of that state. Otherwise returns `frame`. `line` 0 is the line that the
    /// emulator is on.
    pub(crate) fn until_end(&self, line: u32, frame: u32, now: u32) -> u32 {
        let lines = self.lines.lock();
        let span = lines.get(if line == 0 { lines.current } else { line }).and_then(Line::span);
        span.map_or(frame, |(_, last)| if (last..=now).contains(&frame) { last } else { frame })
    }

    /// Finds how to reach a frame of a line, or of the lines that it follows from. `line` 0 is the line that the
    /// emulator is on. `surroundings` is the present value for [`NewState::surroundings`].
    ///
    /// # Errors
    /// If there is no such line, or the frame is not kept.
    pub(crate) fn find(&self, line: u32, frame: u32, surroundings: Option<u64>) -> Result<Found, OpError> {
        let lines = self.lines.lock();
        let id = if line == 0 { lines.current } else { line };
        let mut line = lines.get(id).ok_or_else(|| lines.no_line(id))?;
        loop {
            if let Some(found) = line.find(frame, surroundings) {
                return Ok(found);
            }
            let earlier = line.follows().filter(|(_, fork)| frame <= *fork);
            line = earlier.and_then(|(id, _)| lines.get(id)).ok_or_else(|| lines.no_frame(id, frame))?;
        }
    }
}

impl Lines {
    fn get(&self, id: u32) -> Option<&Line> {
        self.all.iter().find(|line| line.id() == id)
    }

    fn used(&self) -> usize {
        self.all.iter().map(Line::size).sum()
    }

    /// Drops the oldest group of states: a state that is stored on its own and the differences that follow it. Returns
    /// false if only the newest group is left.
    fn drop_oldest(&mut self) -> bool {
        let alone = self.all.len() == 1;
        let Some(oldest) = self.all.front_mut() else { return false };
        if oldest.drop_oldest() {
            return true;
        }
        if !alone {
            self.all.pop_front();
        }
        !alone
    }

    fn no_line(&self, id: u32) -> OpError {
        let problem = match (self.all.front(), self.all.back()) {
            (Some(first), Some(last)) => {
                let (first, last) = (first.id(), last.id());
                format!("line {id} is not kept; the kept lines have numbers from {first} to {last}")
            }
            _ => "no state is kept yet; states are kept while the game runs".to_owned(),
        };
        OpError::new(Status::NotFound, problem)
    }

    fn no_frame(&self, id: u32, frame: u32) -> OpError {
        let (mut first, mut last) = (u32::MAX, 0);
        let (mut line, mut end) = (self.get(id), u32::MAX);
        while let Some(part) = line {
            if let Some((from, to)) = part.span() {
                (first, last) = (first.min(from), last.max(to.min(end)));
            }
            let earlier = part.follows();
            end = earlier.map_or(0, |(_, fork)| fork);
            line = earlier.and_then(|(id, _)| self.get(id));
        }
        let problem = format!("frame {frame} of line {id} is not kept; use a frame from {first} to {last}");
        OpError::new(Status::NotFound, problem)
    }
}
