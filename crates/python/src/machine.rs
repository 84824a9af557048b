//! A core with the work that each frame needs: planned key presses, watches, sound and a recording.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use framewire_emulator::embedded::{Cheats, Frozen, KeyChange, Keypad, check_access};
use framewire_expression::{Expression, Range, Subject};
use framewire_libmgba::{Clock, Core, Time};
use framewire_protocol::timeline::KeyStep;
use framewire_protocol::{Access, OpError};
use framewire_symbols::{Symbols, TextTable, decode_text};
use framewire_vecenv::Memory;

use crate::recorder::Recorder;

/// The largest number of changes of a watch that are kept until they are read, and the largest number of ended
/// timelines that are kept. When the limit is reached, the oldest entry is dropped.
const MAX_WAITING: usize = 65_536;

/// The largest number of chunks of sound that wait to be read: about a minute.
const MAX_SOUND: usize = 3600;

/// A core, and the state that is updated with each frame.
pub(crate) struct Machine {
    pub(crate) core: Core,
    keypad: Keypad,
    watches: HashMap<u32, Watch>,
    sounds: HashMap<u32, Sound>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) cheats: Cheats,
    pub(crate) frozen: Frozen,
    /// Timelines that have ended but have not been reported yet: for each, its id, the frame, and whether it was
    /// cancelled.
    pub(crate) ended: VecDeque<(u32, u32, bool)>,
    next_id: u32,
    /// The frame counter after the last frame, if that frame was not drawn.
    undrawn: Option<u32>,
    /// For the emulator of an environment: [`VectorEnv::moves`](framewire_vecenv::VectorEnv::moves) at its last use.
    moves: Option<u64>,
    /// Whether the cartridge's clock follows the frames only because of a recording or a replay.
    has_frame_clock: bool,
}

/// The value of an [`Observed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// The expression has no value, for example after a division by zero.
    None,
    Number(i64),
    Condition(bool),
    Bytes(Vec<u8>),
    Text(String),
}

impl Value {
    /// Whether a condition with this value is true.
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Value::None => false,
            Value::Number(number) => *number != 0,
            Value::Condition(is_true) => *is_true,
            Value::Bytes(bytes) => bytes.iter().any(|byte| *byte != 0),
            Value::Text(text) => !text.is_empty(),
        }
    }
}

/// An expression, a range of bytes, or a text in memory, compiled for one game.
#[derive(Debug, Clone)]
pub(crate) enum Observed {
    Number(Expression, Memory),
    Bytes(Range),
    /// The text in a range of bytes, with the game's character table.
    Text(Range, Option<Arc<TextTable>>),
}

impl Observed {
    /// Compiles what a user wrote, such as `score > 5` or `bytes[magic, 8]`. The error is a message for the user.
    pub(crate) fn compile(text: &str, core: &Core, symbols: &Symbols) -> Result<Observed, String> {
        match Subject::parse(text, symbols).map_err(|error| error.to_string())? {
            Subject::Expression(expression) => {
                let memory = Memory::new(core, expression.places())?;
                Ok(Observed::Number(expression, memory))
            }
            Subject::Range(range) => Ok(Observed::Bytes(checked(range, core)?)),
            Subject::Text(range) => Ok(Observed::Text(checked(range, core)?, symbols.text().cloned())),
        }
    }

    /// The present value.
    pub(crate) fn value(&self, core: &mut Core) -> Value {
        match self {
            Observed::Number(expression, memory) => {
                let mut values = Vec::new();
                memory.read(core, &mut values);
                match expression.value(core.frame_counter(), &values) {
                    None => Value::None,
                    Some(value) if expression.is_condition() => Value::Condition(value != 0),
                    Some(value) => Value::Number(value),
                }
            }
            Observed::Bytes(range) => read(range, core).map_or(Value::None, Value::Bytes),
            Observed::Text(range, characters) => read(range, core)
                .map_or(Value::None, |bytes| Value::Text(decode_text(characters.as_deref(), &bytes))),
        }
    }
}

/// Returns the range, or an error if the core does not have this memory.
fn checked(range: Range, core: &Core) -> Result<Range, String> {
    let Range { domain, address, length } = &range;
    let access =
        Access { domain: domain.as_deref(), address: *address, length: u32::from(*length), write: false };
    check_access(core, &access).map_err(|error| error.message)?;
    Ok(range)
}

/// The present bytes of a range.
fn read(Range { domain, address, length }: &Range, core: &mut Core) -> Option<Vec<u8>> {
    let length = usize::from(*length);
    match domain {
        None => core.read_range(*address, length).ok(),
        Some(name) => core.domain_read_range(core.domain_index(name)?, *address, length).ok(),
    }
}

/// A change of a watched expression.
pub(crate) struct Change {
    /// The position of the expression in the watch, from 0.
    pub(crate) expression: usize,
    pub(crate) frame: u32,
    /// Frames since the watch began.
    pub(crate) tick: u64,
    pub(crate) old: Value,
    pub(crate) new: Value,
}

struct Watch {
    observed: Vec<Observed>,
    values: Vec<Value>,
    ticks: u64,
    changes: VecDeque<Change>,
    /// Changes that were dropped before the oldest one.
    missed: u64,
}

#[derive(Default)]
struct Sound {
    chunks: VecDeque<Vec<i16>>,
    /// Samples that were dropped before the oldest chunk.
    missed: u64,
}

impl Machine {
    pub(crate) fn new(core: Core) -> Machine {
        Machine {
            core,
            keypad: Keypad::default(),
            watches: HashMap::new(),
            sounds: HashMap::new(),
            recorder: None,
            cheats: Cheats::default(),
            frozen: Frozen::default(),
            ended: VecDeque::new(),
            next_id: 0,
            undrawn: None,
            moves: None,
            has_frame_clock: false,
        }
    }

    /// Runs frames. The last one is drawn if `draws` is true. Other frames are drawn only if a recording needs their
    /// picture.
    pub(crate) fn run(&mut self, frames: u32, draws: bool) {
        for left in (0..frames).rev() {
            self.run_frame(draws && left == 0);
        }
    }

    /// Runs a frame, and updates everything that depends on frames. The frame is drawn if `draws` is true, or if a
    /// recording needs its picture.
    pub(crate) fn run_frame(&mut self, draws: bool) {
        let draws = draws || self.recorder.as_ref().is_some_and(Recorder::needs_picture);
        let keys = self.core.keys();
        self.core.set_drawing(draws);
        self.core.run_frame();
        self.set_has_picture(draws);
        if let Some(recorder) = &mut self.recorder {
            recorder.take(keys, &mut self.core);
        }
        for watch in self.watches.values_mut() {
            watch.after_frame(&mut self.core);
        }
        if !self.sounds.is_empty() {
            let samples = self.core.read_samples();
            self.sounds.values_mut().for_each(|sound| sound.push(&samples));
        }
        self.frozen.write_all(&mut self.core);
        let change = self.keypad.advance();
        self.apply(change);
    }

    /// Whether the picture shows an earlier frame, because the last frame was not drawn.
    pub(crate) fn has_old_picture(&self) -> bool {
        self.undrawn == Some(self.core.frame_counter())
    }

    /// Stores whether the picture shows the last frame.
    pub(crate) fn set_has_picture(&mut self, has_picture: bool) {
        self.undrawn = (!has_picture).then(|| self.core.frame_counter());
    }

    /// Plays a timeline, which begins with the next frame. Returns its id and its number of frames.
    pub(crate) fn play(&mut self, steps: Vec<KeyStep>) -> Result<(u32, u32), OpError> {
        let frames = steps.last().map_or(0, |last| last.offset);
        let (id, change) = self.keypad.play(steps)?;
        self.apply(change);
        Ok((id, frames))
    }

    /// Ends a timeline; with 0, all of them. Returns whether there was one.
    pub(crate) fn cancel(&mut self, id: u32) -> bool {
        let (any, change) = self.keypad.cancel(id);
        self.apply(change);
        any
    }

    /// Whether a timeline is playing, has ended, or was cancelled.
    pub(crate) fn timeline(&self, id: u32) -> Result<framewire_protocol::Value, OpError> {
        self.keypad.describe(id)
    }

    /// The keys that stay held until a request releases them.
    pub(crate) fn lasting_keys(&self) -> u16 {
        self.core.keys() & !self.keypad.owned()
    }

    /// Holds the keys of `add`, and releases the keys of `clear` that are not in `add`. Takes the keys of
    /// both masks away from all timelines.
    pub(crate) fn set_keys(&mut self, add: u16, clear: u16) {
        let (held, clear) = (self.core.keys(), clear & !add);
        self.keypad.release(add | clear, held & clear);
        self.core.set_keys(held & !clear | add);
        self.note_ended();
    }

    fn apply(&mut self, change: KeyChange) {
        if change.clear != 0 {
            self.core.clear_keys(change.clear);
        }
        if change.add != 0 {
            self.core.add_keys(change.add);
        }
        self.note_ended();
    }

    fn note_ended(&mut self) {
        let frame = self.core.frame_counter();
        for (id, cancelled) in self.keypad.take_ended(frame).into_iter().flatten() {
            if self.ended.len() == MAX_WAITING {
                self.ended.pop_front();
            }
            self.ended.push_back((id, frame, cancelled));
        }
    }

    /// Called when the game's state changes in a way that a replay of the keys does not reproduce, for example when a
    /// state is loaded. `what` names the change. Ends the recording. The picture does not count as old until the next
    /// frame.
    pub(crate) fn discontinue(&mut self, what: &str) {
        self.undrawn = None;
        if let Some(recorder) = &mut self.recorder {
            recorder.end(&format!("{what} after frame {}", recorder.frames()), None);
        }
        self.release_clock();
    }

    /// Ends the recording if the environment of this emulator has moved since the last call, because a recording
    /// contains only the frames that the emulator itself runs.
    pub(crate) fn follow(&mut self, moves: Option<u64>) {
        if std::mem::replace(&mut self.moves, moves) != moves {
            self.discontinue("the environment played a step, was reset or loaded a state");
        }
    }

    /// Makes the cartridge's clock follow the frames, so that the clock shows the same times in a replay.
    pub(crate) fn settle_clock(&mut self) {
        if matches!(self.core.clock(), Clock::Host) {
            self.core.set_clock(Clock::Frames(Time::now()));
            self.has_frame_clock = true;
        }
    }

    /// Makes the cartridge's clock follow this computer's clock again, if it did before `settle_clock` and no recording
    /// is under way.
    pub(crate) fn release_clock(&mut self) {
        let is_recording = self.recorder.as_ref().is_some_and(|recorder| recorder.ended().is_none());
        if !is_recording && std::mem::take(&mut self.has_frame_clock) {
            self.core.set_clock(Clock::Host);
        }
    }

    /// Begins to watch. Returns the id of the watch, and the present values.
    pub(crate) fn watch(&mut self, observed: Vec<Observed>) -> (u32, Vec<Value>) {
        let values: Vec<Value> = observed.iter().map(|each| each.value(&mut self.core)).collect();
        let id = self.new_id();
        let watch = Watch { observed, values: values.clone(), ticks: 0, changes: VecDeque::new(), missed: 0 };
        self.watches.insert(id, watch);
        (id, values)
    }

    /// Takes the oldest change. Returns it and how many changes were lost before it; `None` if there is no change.
    pub(crate) fn take_change(&mut self, id: u32) -> Option<(Change, u64)> {
        let watch = self.watches.get_mut(&id)?;
        let change = watch.changes.pop_front()?;
        Some((change, std::mem::take(&mut watch.missed)))
    }

    pub(crate) fn unwatch(&mut self, id: u32) {
        self.watches.remove(&id);
    }

    /// Begins to keep the sound of each frame. Returns an id for `take_sound` and `unlisten`.
    pub(crate) fn listen(&mut self) -> u32 {
        // Drop the sound of earlier frames.
        if self.sounds.is_empty() {
            drop(self.core.read_samples());
        }
        let id = self.new_id();
        self.sounds.insert(id, Sound::default());
        id
    }

    /// Takes the oldest chunk. Returns it and how many samples were lost before it.
    pub(crate) fn take_sound(&mut self, id: u32) -> Option<(Vec<i16>, u64)> {
        let sound = self.sounds.get_mut(&id)?;
        let chunk = sound.chunks.pop_front()?;
        Some((chunk, std::mem::take(&mut sound.missed)))
    }

    /// Whether the sound is kept for this id.
    pub(crate) fn is_listening(&self, id: u32) -> bool {
        self.sounds.contains_key(&id)
    }

    pub(crate) fn unlisten(&mut self, id: u32) {
        self.sounds.remove(&id);
    }

    fn new_id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }
}

impl Watch {
    fn after_frame(&mut self, core: &mut Core) {
        self.ticks += 1;
        for (expression, (observed, value)) in self.observed.iter().zip(&mut self.values).enumerate() {
            let new = observed.value(core);
            if new == *value {
                continue;
            }
            if self.changes.len() == MAX_WAITING {
                self.changes.pop_front();
                self.missed += 1;
            }
            let old = std::mem::replace(value, new.clone());
            let (frame, tick) = (core.frame_counter(), self.ticks);
            self.changes.push_back(Change { expression, frame, tick, old, new });
        }
    }
}

impl Sound {
    fn push(&mut self, samples: &[i16]) {
        if self.chunks.len() == MAX_SOUND
            && let Some(lost) = self.chunks.pop_front()
        {
            // Each sample has a number for left and one for right.
            self.missed += lost.len() as u64 / 2;
        }
        self.chunks.push_back(samples.to_vec());
    }
}
