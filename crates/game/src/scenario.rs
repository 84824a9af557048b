use std::path::PathBuf;

use framewire_expression::{Formula, Range};
use framewire_protocol::{Key, Keys};

/// A task in a game: where an episode starts, what a player can do and observe, and when it ends.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name in the game file.
    pub name: String,
    /// Where each episode starts.
    pub start: Start,
    /// What a player can do in each step.
    pub actions: Actions,
    /// The number of frames in a step, from 1 to 60. The action's keys are held in each of these frames.
    pub frame_skip: u32,
    /// The probability, from 0 to 1, that a frame repeats the keys of the previous frame instead of the action's keys.
    pub sticky: f64,
    /// The largest number of frames without keys at the start of an episode. The actual number is random, from 0 to
    /// this number.
    pub max_noops: u32,
    /// An episode is truncated after this many frames, including the frames without keys at its start. `None` means
    /// without a limit.
    pub max_frames: Option<u32>,
    /// How the picture is observed; `None` if it is not observed.
    pub screen: Option<Screen>,
    /// The memory that is observed, in order.
    pub memory: Vec<Observed>,
    /// The reward of a frame. A step's reward is the sum over its frames. `None` means that all rewards are 0.
    pub reward: Option<Formula>,
    /// The episode ends when this is true. It is evaluated for each frame.
    pub terminated: Option<Formula>,
    /// The episode is cut off, for a reason outside of the task, when this is true. It is evaluated for each frame.
    pub truncated: Option<Formula>,
    /// Values that are reported with the observation, by name.
    pub info: Vec<(String, Formula)>,
}

/// Where an episode starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// Power-on, and then these keys, each for a number of frames.
    Inputs(Vec<(Keys, u32)>),
    /// A savestate.
    State(PathBuf),
}

/// What a player can do in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actions {
    /// One of these sets of keys.
    List(Vec<Keys>),
    /// Any set of these keys.
    Buttons(Vec<Key>),
}

/// How the picture is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// The part of the picture that is observed: x, y, width and height in pixels. `None` is the whole picture.
    pub crop: Option<[u32; 4]>,
    /// Width and height of the observation in pixels. `None` keeps the size of the observed part.
    pub size: Option<[u32; 2]>,
    /// Whether the observation has one value per pixel, the luminance, instead of red, green and blue.
    pub grey: bool,
    /// The number of steps in an observation, 1 to 16, with the newest last. With 1, the observation has no axis for
    /// steps.
    pub stack: u32,
    /// The number of frames at the end of the step, 1 or 2, over which the maximum of each value is taken.
    pub max: u32,
}

/// Memory that is observed.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// A number.
    Value(Formula),
    /// Bytes, each as a number.
    Bytes(Range),
}

impl Observed {
    /// How many numbers are observed: one for a value, and one for each byte.
    pub fn count(&self) -> usize {
        match self {
            Observed::Value(_) => 1,
            Observed::Bytes(range) => range.length.into(),
        }
    }
}
