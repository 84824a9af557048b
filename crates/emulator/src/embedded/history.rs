//! Keeps states of a running core, and goes back to them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use framewire_libmgba::{Core, Error, flags};
use framewire_protocol::{Op, OpError, Status};

use super::errors::failed;
use super::machine::Machine;
use super::sensors;
use crate::Discontinuity;
use crate::history::{Beginning, Found, History, NewState, Thumbnail};

/// Frames between two states: half a second.
const SPACING: u32 = 30;
/// Frames between two states while something other than keys changes the game.
const SHORT_SPACING: u32 = 6;
/// Frames between two small pictures.
const PICTURE_SPACING: u32 = 60;
/// The parts of a state in addition to the machine, as in mGBA's own rewinding: the battery save and the cartridge's clock.
const FLAGS: u32 = flags::SAVEDATA | flags::RTC;

/// Adds the frames of a core to its history.
#[derive(Debug)]
pub(super) struct HistoryKeeper {
    pub history: Arc<History>,
    on: bool,
    /// The frame counter that the next frame begins with if it follows from the last one.
    next: Option<u32>,
    /// Why the next frame does not follow from the last one.
    beginning: Beginning,
    /// The last state, as the core saved it.
    last: Vec<u8>,
    /// Its frame.
    kept: u32,
    /// The frame of the last small picture.
    pictured: Option<u32>,
    /// The keys of the last frame.
    keys: Option<u16>,
    /// Whether something other than keys changed the game since the last state.
    changed: bool,
    /// A number for everything that acts on the game in addition to its keys.
    surroundings: u64,
    /// The checksum of the game.
    game: Option<u32>,
}

/// How an operation affects the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Influence {
    /// It does not change the game, or it only presses keys, which the history keeps.
    None,
    /// It changes the game.
    Change,
    /// It changes what acts on the game from now on.
    Surroundings,
    /// The frames after it do not follow from those before it.
    Break,
}

impl Influence {
    pub fn of(op: &Op) -> Influence {
        match op {
            Op::Write8 { .. }
            | Op::Write16 { .. }
            | Op::Write32 { .. }
            | Op::WriteRange { .. }
            | Op::WriteAt { .. }
            | Op::DomainWrite8 { .. }
            | Op::DomainWrite16 { .. }
            | Op::DomainWrite32 { .. }
            | Op::WriteRegister { .. }
            | Op::LoadSaveFile { .. }
            | Op::AutoloadSave {}
            | Op::Step {} => Influence::Change,
            Op::Freeze { .. }
            | Op::Unfreeze { .. }
            | Op::AddCheat { .. }
            | Op::LoadCheats { .. }
            | Op::EnableCheat { .. }
            | Op::RemoveCheat { .. }
            | Op::SetSensor { .. }
            | Op::Script { .. } => Influence::Surroundings,
            Op::Reset {} | Op::LoadState { .. } | Op::LoadStateFile { .. } | Op::LoadStateSlot { .. } => {
                Influence::Break
            }
            _ => Influence::None,
        }
    }
}

impl HistoryKeeper {
    pub fn new(history: Arc<History>) -> HistoryKeeper {
        HistoryKeeper {
            on: history.is_on(),
            history,
            next: None,
            beginning: Beginning::Game,
            last: Vec::new(),
            kept: 0,
            pictured: None,
            keys: None,
            changed: false,
            surroundings: 0,
            game: None,
        }
    }

    /// Called before each frame. `drawn` says whether the core shows the picture of the last one.
    pub fn before_frame(&mut self, core: &mut Core, drawn: bool) {
        if !self.on {
            return;
        }
        let frame = core.frame_counter();
        let follows = self.next == Some(frame);
        // After a reset or a state that was loaded, the core still shows the picture from before.
        let drawn = drawn && (follows || matches!(self.beginning, Beginning::Rewind { .. }));
        if !follows {
            self.begin(core);
        }
        let spacing = match self.changed {
            // The state of this frame was kept before the change.
            true if self.kept == frame => 0,
            true => SHORT_SPACING,
            false => SPACING,
        };
        if !follows || frame - self.kept >= spacing {
            self.keep(core, drawn);
        }
        let keys = core.keys();
        if self.keys != Some(keys) {
            self.keys = Some(keys);
            self.history.note_keys(frame, keys);
        }
        self.next = Some(frame + 1);
    }

    /// Whether the picture of the frame that comes is to be kept.
    pub fn needs_picture(&self) -> bool {
        self.on && self.next.is_some_and(|next| next - self.kept >= SPACING && self.wants_picture(next))
    }

    /// Notes that the next frame does not follow from the last one.
    pub fn discontinue(&mut self, discontinuity: Discontinuity) {
        self.next = None;
        self.beginning = match discontinuity {
            Discontinuity::Reset => Beginning::Reset,
            Discontinuity::State => Beginning::State,
            Discontinuity::Game => Beginning::Game,
        };
    }

    fn begin(&mut self, core: &mut Core) {
        let game = core.crc32();
        if self.game != Some(game) {
            self.game = Some(game);
            self.beginning = Beginning::Game;
            self.history.clear();
        }
        self.history.begin(self.beginning);
        // If the reason is unknown, a script loaded a state.
        self.beginning = Beginning::State;
        (self.keys, self.pictured, self.changed) = (None, None, false);
        self.last.clear();
    }

    fn keep(&mut self, core: &mut Core, drawn: bool) {
        // A state that cannot be saved leaves a gap, and is tried again after the next frame.
        let Ok(bytes) = core.save_state(FLAGS) else { return };
        let frame = core.frame_counter();
        let thumbnail = if drawn && self.wants_picture(frame) { Some(thumbnail(core)) } else { None };
        if thumbnail.is_some() {
            self.pictured = Some(frame);
        }
        let surroundings = if core.has_scripts() { None } else { Some(self.surroundings) };
        self.history.add(NewState { frame, bytes: &bytes, before: &self.last, surroundings, thumbnail });
        (self.last, self.kept, self.changed) = (bytes, frame, false);
    }

    fn wants_picture(&self, frame: u32) -> bool {
        self.pictured.is_none_or(|pictured| frame - pictured >= PICTURE_SPACING)
    }

    /// Keeps the current state, if the current frame was run here and has no state yet.
    fn keep_end(&mut self, core: &mut Core, drawn: bool) {
        if self.on && self.next == Some(core.frame_counter()) && self.next != Some(self.kept) {
            self.keep(core, drawn);
        }
    }

    /// Notes that something other than keys has changed the game.
    fn note_change(&mut self, frame: u32) {
        if self.on && self.next == Some(frame) {
            self.changed = true;
            self.history.note_change(frame);
        }
    }
}

impl Machine {
    /// Called before an operation with this influence is performed.
    pub(super) fn before_operation(&mut self, influence: Influence) {
        if influence == Influence::Break {
            self.keeper.keep_end(&mut self.core, self.drawn);
        }
    }

    /// Called after an operation with this influence was performed.
    pub(super) fn after_operation(&mut self, influence: Influence) {
        if matches!(influence, Influence::Change | Influence::Surroundings) {
            self.keeper.note_change(self.core.frame_counter());
        }
        if influence == Influence::Surroundings {
            self.keeper.surroundings = self.surroundings();
        }
    }

    /// A number for what acts on the game in addition to its keys: frozen values, cheats and sensors.
    fn surroundings(&self) -> u64 {
        let all = (self.frozen.list(), self.cheats.list(), sensors::list(&self.core));
        let mut hasher = DefaultHasher::new();
        format!("{all:?}").hash(&mut hasher);
        hasher.finish()
    }

    /// Goes back to a frame of the history: loads the state before it, and runs the frames up to it with the same keys.
    /// `line` 0 is the line that the emulator is on. Returns the frame that it reached: the requested one, or the last one
    /// before it that is known exactly.
    ///
    /// # Errors
    /// If nothing is kept of that frame, or while a recording, a replay or a timeline needs the frames in order.
    pub fn rewind(&mut self, line: u32, frame: u32) -> Result<u32, OpError> {
        if !self.keeper.on {
            let message =
                "this emulator was started without memory for a history, so it keeps no states to go back to";
            return Err(OpError::new(Status::Unsupported, message));
        }
        if self.watches.belong_to_recording() {
            let message =
                "the game is being recorded or replayed, and cannot go back meanwhile; end that first";
            return Err(OpError::new(Status::Busy, message));
        }
        if let Some(id) = self.keypad.timeline_under_way() {
            let message =
                format!("timeline {id} plays keys; cancel it or wait for its end before you go back");
            return Err(OpError::new(Status::Busy, message));
        }
        self.keeper.keep_end(&mut self.core, self.drawn);
        let surroundings = if self.core.has_scripts() { None } else { Some(self.keeper.surroundings) };
        let found = self.keeper.history.find(line, frame, surroundings)?;
        let held = self.core.keys();
        self.core.load_state(&found.state, FLAGS).map_err(failed)?;
        self.replay(&found).map_err(failed)?;
        self.core.set_keys(held);
        self.drawn = true;
        self.discontinue(Discontinuity::State);
        self.keeper.went_back(found.line, found.frame);
        Ok(self.core.frame_counter())
    }

    /// Runs the frames from a state on, and draws the last one.
    fn replay(&mut self, found: &Found) -> Result<(), Error> {
        let core = &mut self.core;
        for (number, keys) in found.keys.iter().enumerate() {
            core.set_drawing(number + 1 == found.keys.len());
            core.set_keys(*keys);
            core.run_frame();
            self.frozen.keep(core);
        }
        if found.keys.is_empty() && !core.has_scripts() {
            // The state has no picture. The picture of the next frame is at most one frame off.
            core.set_drawing(true);
            core.run_frame();
            core.load_state(&found.state, FLAGS)?;
        }
        // The sound of these frames was heard before.
        core.read_samples();
        Ok(())
    }
}

impl HistoryKeeper {
    /// The core went back to this frame.
    fn went_back(&mut self, line: u32, frame: u32) {
        self.history.set_current(line);
        self.beginning = Beginning::Rewind { line, frame };
        if self.history.is_end(line, frame) {
            // The core is back at the end of its line, which continues.
            (self.next, self.kept) = (Some(frame), frame);
            (self.keys, self.changed) = (None, false);
            self.last.clear();
        }
    }
}

/// The current picture, made smaller.
fn thumbnail(core: &Core) -> Thumbnail {
    let frame = core.frame();
    Thumbnail::of(frame.width as usize, &frame.rows().collect::<Vec<_>>(), 4)
}
