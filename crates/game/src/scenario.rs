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
    /// Frames of a step, 1 to 60. The action's keys are held in each of them.
    pub frame_skip: u32,
    /// The probability, 0 to 1, that a frame repeats the keys of the frame before instead of taking the action's.
    pub sticky: f64,
    /// Before an episode, a random number of frames without keys is played, from 0 to this.
    pub max_noops: u32,
    /// An episode is truncated after this many frames.
    pub max_frames: Option<u32>,
    /// How the picture is observed; `None` if it is not.
    pub screen: Option<Screen>,
    /// The memory that is observed, in order.
    pub memory: Vec<Observed>,
    /// The reward of a frame. A step's reward is the sum over its frames.
    pub reward: Option<Formula>,
    /// Whether the episode ends in this frame.
    pub terminated: Option<Formula>,
    /// Whether the episode is cut off in this frame, for a reason outside of the task.
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
    /// Width and height of the observation in pixels. `None` keeps those of the part.
    pub size: Option<[u32; 2]>,
    /// Whether it has one value per pixel, the luminance, rather than red, green and blue.
    pub grey: bool,
    /// How many steps it has, the newest last; 1 to 16. With 1, it has no axis for them.
    pub stack: u32,
    /// Each value is the greatest one over the last frames of the step, this many; 1 or 2.
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
    /// How many numbers it gives.
    pub fn len(&self) -> usize {
        match self {
            Observed::Value(_) => 1,
            Observed::Bytes(range) => range.length.into(),
        }
    }

    /// Whether it gives no numbers. It never does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
