//! One environment: a core that plays episodes of a task.

use std::ops::Range;
use std::sync::Arc;

use framewire_expression::{Memory as History, Number};
use framewire_libmgba::{Core, Platform, flags};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

use crate::batch::Row;
use crate::error::Error;
use crate::saved::{Observed, Saved};
use crate::screen::Pictures;
use crate::task::{Evaluated, Reading, STATE_FLAGS, Task};

pub(crate) struct Environment {
    task: Arc<Task>,
    pub(crate) core: Core,
    /// How many frames are drawn at the end of each step.
    drawn: u32,
    /// Whether there must be a correct picture after each step, each reset and each loaded state.
    renders: bool,
    /// Whether every frame is drawn, because the environment renders and an episode can end in any frame.
    draws_all: bool,
    /// Whether the core's picture is that of its last frame.
    pub(crate) has_picture: bool,
    random: ChaCha8Rng,
    /// The keys of the previous frame. A frame repeats them with the probability `sticky` of the scenario.
    keys: u16,
    /// The number of frames since the start of the episode.
    pub(crate) frames: u32,
    /// The sum of the episode's rewards.
    pub(crate) earned: f64,
    /// Whether the episode has ended or was cut off.
    over: bool,
    /// How many times the environment has run a frame, begun an episode or loaded a state.
    pub(crate) moves: u64,
    pictures: Option<Pictures>,
    /// The numbers of the last observation; `None` before the first one.
    last: Option<Observed>,
    // What each formula remembers of earlier frames.
    reward: History,
    terminated: History,
    truncated: History,
    info: Vec<History>,
    observed: Vec<History>,
    // Buffers for numbers and bytes from memory, kept so that they are allocated only once.
    values: Vec<i64>,
    bytes: Vec<u8>,
}

impl Environment {
    /// Creates an environment. With `renders`, the last frame of each step is drawn even if the picture is not
    /// observed.
    pub(crate) fn new(task: &Arc<Task>, seed: u64, renders: bool) -> Result<Environment, Error> {
        // If the layout's `max` is 2, the picture of a step is the maximum of the last two frames, so both are drawn.
        let drawn = task.layout.as_ref().map_or(u32::from(renders), |layout| layout.max);
        Ok(Environment {
            core: task.core()?,
            drawn,
            renders,
            draws_all: renders && (task.terminated.is_some() || task.truncated.is_some()),
            has_picture: false,
            random: ChaCha8Rng::seed_from_u64(seed),
            keys: 0,
            frames: 0,
            earned: 0.0,
            over: false,
            moves: 0,
            pictures: task.start_pictures.clone(),
            last: None,
            reward: History::default(),
            terminated: History::default(),
            truncated: History::default(),
            info: vec![History::default(); task.info.len()],
            observed: vec![History::default(); task.observed.len()],
            values: Vec::new(),
            bytes: Vec::new(),
            task: task.clone(),
        })
    }

    /// Whether an episode has begun, with its first observation.
    pub(crate) fn has_begun(&self) -> bool {
        self.last.is_some()
    }

    /// Whether the episode has ended, so that the environment must be reset.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Starts the random numbers again, from this seed.
    pub(crate) fn seed(&mut self, seed: u64) {
        self.random = ChaCha8Rng::seed_from_u64(seed);
    }

    /// Begins an episode, without the frames of `max_noops` at its start, and without an observation.
    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        let start = if self.renders { &self.task.start_with_picture } else { &self.task.start };
        self.core.load_state_with_keys(0, start, self.state_flags())?;
        self.moves += 1;
        self.has_picture = self.renders;
        self.keys = 0;
        self.frames = 0;
        self.earned = 0.0;
        self.over = false;
        for history in self.histories() {
            history.clear();
        }
        self.pictures.clone_from(&self.task.start_pictures);
        // The formulas are evaluated now, so that a `delta` in the next frame has a value to compare with.
        self.evaluate();
        Ok(())
    }

    /// Begins an episode and writes its first observation.
    pub(crate) fn reset(&mut self, row: &mut Row<'_>) -> Result<(), Error> {
        self.begin()?;
        let noops = self.noops();
        for noop in 0..noops {
            self.run_frame(0, noop + 1 == noops);
            self.evaluate();
        }
        let task = self.task.clone();
        if let (Some(pictures), Some(layout)) = (&mut self.pictures, &task.layout)
            && noops > 0
        {
            pictures.begin(layout);
        }
        *row.reward = 0.0;
        *row.terminated = false;
        *row.truncated = false;
        self.observe(row.screen, row.memory, row.info);
        Ok(())
    }

    /// A random number of frames without keys for the start of an episode.
    fn noops(&mut self) -> u32 {
        match self.task.scenario.max_noops {
            0 => 0,
            most => (self.random.next_u64() % (u64::from(most) + 1)) as u32,
        }
    }

    /// Plays the frames of a step with these keys held, and writes the results of the step.
    pub(crate) fn step(&mut self, keys: u16, row: &mut Row<'_>) {
        let task = self.task.clone();
        let scenario = &task.scenario;
        let left = scenario.max_frames.map_or(u32::MAX, |most| most - self.frames);
        let frames = scenario.frame_skip.min(left);
        let mut reward = 0.0;
        *row.terminated = false;
        *row.truncated = false;
        let mut pictures = 0;
        for frame in 0..frames {
            let held = if self.is_sticky(scenario.sticky) { self.keys } else { keys };
            let draws = frame + self.drawn >= frames;
            let (of_frame, terminated, truncated) = self.play_frame(held, draws);
            pictures += u32::from(draws);
            reward += of_frame;
            (*row.terminated, *row.truncated) = (terminated, truncated);
            if self.over {
                break;
            }
        }
        *row.reward = reward;
        if let (Some(own), Some(layout)) = (&mut self.pictures, &task.layout) {
            // The maximum needs the pictures of two successive frames. If a step takes only one picture
            // and `frames` is at most 2, this is the picture of its first frame. The frame before it is the last one of
            // the previous step, whose picture is still kept. In a longer step, no picture of the frame before it
            // is kept.
            let is_adjacent = pictures == 2 || (pictures == 1 && frames <= 2);
            own.end_step(layout, layout.max == 2 && is_adjacent);
        }
        self.observe(row.screen, row.memory, row.info);
    }

    fn is_sticky(&mut self, probability: f64) -> bool {
        probability > 0.0 && chance(&mut self.random, probability)
    }

    /// Runs a frame. If `observes` is true, takes its picture for the observation.
    fn run_frame(&mut self, keys: u16, observes: bool) {
        let draws = observes || self.draws_all;
        self.core.set_keys(keys);
        self.core.set_drawing(draws);
        self.core.run_frame();
        self.moves += 1;
        self.has_picture = draws;
        self.keys = keys;
        self.frames += 1;
        if observes && let (Some(pictures), Some(layout)) = (&mut self.pictures, &self.task.layout) {
            pictures.take(layout, self.core.frame());
        }
    }

    /// Evaluates the formulas that need every frame: the reward, and the conditions under which the episode ends or is
    /// cut off. A formula without a value counts as 0.
    fn evaluate(&mut self) -> (f64, bool, bool) {
        let Environment { task, core, values, reward, terminated, truncated, .. } = self;
        let mut number = |evaluated: &Option<Evaluated>, history: &mut History| {
            evaluated.as_ref().and_then(|evaluated| value(core, values, evaluated, history))
        };
        let reward = number(&task.reward, reward).map_or(0.0, Number::as_f64);
        let terminated = number(&task.terminated, terminated).is_some_and(Number::is_true);
        let truncated = number(&task.truncated, truncated).is_some_and(Number::is_true);
        (reward, terminated, truncated)
    }

    /// Writes the observation, and the values of `info`.
    fn observe(&mut self, screen: &mut [u8], memory: &mut [f32], info: &mut [f64]) {
        self.write_pictures(screen);
        let Environment { task, core, values, observed, info: histories, bytes, .. } = self;
        let mut at = 0;
        for (reading, history) in task.observed.iter().zip(observed) {
            match reading {
                Reading::Value(evaluated) => {
                    let number = value(core, values, evaluated, history);
                    memory[at] = number.map_or(f32::NAN, |number| number.as_f64() as f32);
                    at += 1;
                }
                Reading::Bytes(range) => {
                    bytes.resize(range.len, 0);
                    range.read(core, bytes);
                    for (to, from) in memory[at..].iter_mut().zip(bytes.iter()) {
                        *to = f32::from(*from);
                    }
                    at += range.len;
                }
            }
        }
        for (((_, evaluated), history), to) in task.info.iter().zip(histories).zip(&mut *info) {
            *to = value(core, values, evaluated, history).map_or(f64::NAN, Number::as_f64);
        }
        let last = self.last.get_or_insert_default();
        memory.clone_into(&mut last.memory);
        info.clone_into(&mut last.info);
    }

    /// Writes the last observation and its values of `info` again. Before the first one, writes zeros.
    pub(crate) fn write_last(&self, row: &mut Row<'_>) {
        if let Some(Observed { memory, info }) = &self.last {
            self.write_pictures(row.screen);
            row.memory.copy_from_slice(memory);
            row.info.copy_from_slice(info);
        } else {
            row.screen.fill(0);
            row.memory.fill(0.0);
            row.info.fill(0.0);
        }
    }

    fn write_pictures(&self, screen: &mut [u8]) {
        if let Some(pictures) = &self.pictures {
            let [older, newer] = pictures.observation();
            let (to_older, to_newer) = screen.split_at_mut(older.len());
            to_older.copy_from_slice(older);
            to_newer.copy_from_slice(newer);
        }
    }

    /// Plays one frame of an episode. Returns its reward, whether the episode has ended, and whether it was cut off. If
    /// `observes` is true, takes the frame's picture for the observation.
    pub(crate) fn play_frame(&mut self, keys: u16, observes: bool) -> (f64, bool, bool) {
        self.run_frame(keys, observes);
        let (reward, terminated, truncated) = self.evaluate();
        let truncated = truncated || self.task.scenario.max_frames == Some(self.frames);
        self.earned += reward;
        self.over = terminated || truncated;
        (reward, terminated, truncated)
    }

    /// The value of a formula that does not remember earlier frames; `None` if it has no value.
    pub(crate) fn value(&mut self, evaluated: &Evaluated) -> Option<Number> {
        value(&mut self.core, &mut self.values, evaluated, &mut History::default())
    }

    fn histories(&mut self) -> impl Iterator<Item = &mut History> {
        let ends = [&mut self.reward, &mut self.terminated, &mut self.truncated];
        ends.into_iter().chain(&mut self.info).chain(&mut self.observed)
    }

    /// Saves everything that the next steps depend on, and also the last observation, in compressed form.
    pub(crate) fn save(&mut self) -> Result<Vec<u8>, Error> {
        let machine = self.core.save_state(self.state_flags())?;
        let pictures = self.pictures.as_ref().map(Pictures::parts);
        let saved = Saved {
            scenario: self.task.scenario.name.clone(),
            frames: self.frames,
            earned: self.earned,
            keys: self.keys,
            over: self.over,
            random: self.random.clone(),
            histories: self.histories().map(|history| history.earlier().to_vec()).collect(),
            pictures,
            last: self.last.clone(),
            machine,
        };
        Ok(saved.encode())
    }

    /// Reads a state that [`save`](Environment::save) returned, and checks that it fits this environment.
    /// [`restore`](Environment::restore) checks the console's own state, too.
    pub(crate) fn read(&self, state: &[u8]) -> Result<Saved, Error> {
        let saved = Saved::decode(state).map_err(Error::State)?;
        let own = &self.task.scenario.name;
        if saved.scenario != *own {
            let other = &saved.scenario;
            let message = format!("the state is of the scenario {other}, and this environment is of {own}");
            return Err(Error::State(message));
        }
        let pictures_fit = match (&self.pictures, &saved.pictures) {
            (Some(pictures), Some(parts)) => pictures.fits(parts),
            (own, other) => own.is_some() == other.is_some(),
        };
        // There is one history each for the reward and for the two conditions under which an episode ends.
        let histories = 3 + self.info.len() + self.observed.len();
        let last_fits = saved.last.as_ref().is_none_or(|Observed { memory, info }| {
            memory.len() == self.task.memory_len() && info.len() == self.info.len()
        });
        if !pictures_fit || !last_fits || saved.histories.len() != histories {
            let message =
                "the state is of another version of this scenario; it observes or evaluates other things";
            return Err(Error::State(message.to_owned()));
        }
        if let Some(most) = self.task.scenario.max_frames
            && saved.frames > most
        {
            let message = format!(
                "the state is from frame {} of its episode, and episodes of this environment end after {most} frames (max_frames)",
                saved.frames
            );
            return Err(Error::State(message));
        }
        Ok(saved)
    }

    /// Continues from a state that [`read`](Environment::read) returned. If it fails, nothing is changed.
    pub(crate) fn restore(&mut self, saved: Saved) -> Result<(), Error> {
        self.core.load_state_with_keys(saved.keys, &saved.machine, self.state_flags())?;
        self.moves += 1;
        // A state of an environment that does not render has no picture.
        self.has_picture = self.renders && saved.machine.starts_with(b"\x89PNG");
        if let (Some(pictures), Some(parts)) = (&mut self.pictures, saved.pictures) {
            pictures.set_parts(parts);
        }
        self.last = saved.last;
        debug_assert_eq!(self.histories().count(), saved.histories.len());
        for (history, earlier) in self.histories().zip(saved.histories) {
            *history = History::from_earlier(earlier);
        }
        self.frames = saved.frames;
        self.earned = saved.earned;
        self.keys = saved.keys;
        self.over = saved.over || self.task.scenario.max_frames == Some(saved.frames);
        self.random = saved.random;
        Ok(())
    }

    /// The parts of the console's state that are saved and loaded.
    fn state_flags(&self) -> u32 {
        STATE_FLAGS | if self.renders { flags::SCREENSHOT } else { 0 }
    }

    /// SHA-256 of the console's state without its sound unit.
    pub(crate) fn hash(&mut self) -> Result<[u8; 32], Error> {
        let mut state = self.core.save_state(STATE_FLAGS)?;
        let sound: &[Range<usize>] = match self.core.platform() {
            Platform::Gba => &[0x130..0x1F0, 0x370..0x3D0],
            Platform::Gb => &[0x48..0xB4, 0x1D8..0x260],
        };
        // libmgba 0.10.5 does not restore the timing of all sound channels exactly. After a state is loaded, these
        // parts can differ from those of a console that ran without interruption, but everything that a game can see
        // is equal.
        for range in sound {
            if let Some(bytes) = state.get_mut(range.clone()) {
                bytes.fill(0);
            }
        }
        Ok(Sha256::digest(state).into())
    }
}

/// Returns true with this probability.
pub(crate) fn chance(random: &mut ChaCha8Rng, probability: f64) -> bool {
    // 53 random bits: the precision of an `f64`.
    ((random.next_u64() >> 11) as f64 / (1u64 << 53) as f64) < probability
}

fn value(
    core: &mut Core,
    values: &mut Vec<i64>,
    evaluated: &Evaluated,
    history: &mut History,
) -> Option<Number> {
    evaluated.memory.read(core, values);
    evaluated.formula.evaluate(core.frame_counter(), values, history)
}
