//! Keeps states of a running core in its history, and goes back to them. A history consists of *lines*: frames without
//! a gap between them. A loaded state or a reset, for example, begins a new line.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use framewire_libmgba::{Core, Error, flags};
use framewire_protocol::op::OpKind;
use framewire_protocol::{Op, OpError, Status};

use super::errors::failed;
use super::machine::Machine;
use super::sensors;
use crate::Discontinuity;
use crate::history::{Beginning, Found, History, NewState, Thumbnail, check_may_go_back};

/// The number of frames between two states: half a second.
const SPACING: u32 = 30;
/// The number of frames between two states if something other than the keys has changed the game since the last state.
const SHORT_SPACING: u32 = 6;
/// The number of frames between two small pictures.
const PICTURE_SPACING: u32 = 60;
/// The optional parts of each state: the battery save and the cartridge's clock, as in mGBA's own rewinding.
const FLAGS: u32 = flags::SAVEDATA | flags::RTC;

/// Adds states and keys of a core to its history.
#[derive(Debug)]
pub(super) struct HistoryKeeper {
    pub history: Arc<History>,
    /// The frame counter that is expected before the next frame. If the counter has another value, or this is `None`,
    /// the next frame begins a new line. It is always `None` if the history may take no memory.
    next: Option<u32>,
    /// Why the next frame begins a new line, if it begins one.
    beginning: Beginning,
    /// Whether the core had a picture of the frame to which it last went back.
    has_rewound_picture: bool,
    /// The last state, as the core saved it.
    last: Vec<u8>,
    /// The frame of the last state.
    kept: u32,
    /// The frame of the last small picture.
    pictured: Option<u32>,
    /// The keys of the last frame.
    keys: Option<u16>,
    /// Whether something other than the keys has changed the game since the last state.
    changed: bool,
    /// Whether the processor has made single steps since the last frame.
    stepped: bool,
    /// A hash of what acts on the game, apart from the keys: frozen values, cheats, sensors and writes to the ROM.
    surroundings: u64,
    /// How many times the ROM in memory has changed.
    rom_changes: u32,
    /// The game that the states belong to.
    game: Option<GameAndSave>,
}

/// The checksum of a game, and [`Saves::file_changes`](super::saves::Saves::file_changes). States contain the battery
/// save. So after another save file was loaded, an earlier state must not be loaded: its save would overwrite that
/// file. The same holds for a state with a temporary save, or without a save file.
pub(super) type GameAndSave = (u32, u32);

/// How an operation affects the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Influence {
    /// The operation does not change the game, or the history needs no note of the change. For example, the history
    /// stores the keys of each frame anyway, and `rewind` itself reports a discontinuity.
    None,
    /// The operation changes the game once.
    Change,
    /// The operation changes the game once, and may pass the end of the frame.
    Step,
    /// The operation changes something that acts on the game in all later frames, such as a cheat.
    Surroundings,
    /// The operation changes the ROM, which states do not contain. So the change acts on all later frames, too.
    Rom,
    /// The next frame does not follow from the last one.
    Break,
}

impl Influence {
    pub fn of(op: &Op) -> Influence {
        use OpKind::*;
        if let Op::DomainWrite8 { domain, .. }
        | Op::DomainWrite16 { domain, .. }
        | Op::DomainWrite32 { domain, .. } = op
            && domain.starts_with("cart")
        {
            return Influence::Rom;
        }
        match op.kind() {
            Write8 | Write16 | Write32 | WriteRange | WriteAt | DomainWrite8 | DomainWrite16
            | DomainWrite32 | WriteRegister | LoadSaveFile | AutoloadSave => Influence::Change,
            Step => Influence::Step,
            Freeze | Unfreeze | AddCheat | LoadCheats | EnableCheat | RemoveCheat | SetSensor | Script => {
                Influence::Surroundings
            }
            Reset | LoadState | LoadStateFile | LoadStateSlot | LoadFile | LoadRom => Influence::Break,
            Echo | CurrentFrame | FrameCycles | Frequency | GameCode | GameTitle | Platform | RomSize
            | Checksum | Cycles | Read8 | Read16 | Read32 | ReadRange | Domains | DomainBase
            | DomainBound | DomainName | DomainSize | DomainRead8 | DomainRead16 | DomainRead32
            | DomainReadRange | ReadRegister | GetKeys | GetKey | SetKeys | AddKeys | ClearKeys
            | HoldKeys | PlayKeys | CancelKeys | Timeline | AppendKeys | SaveState | SaveStateFile
            | SaveStateSlot | Pause | Resume | SetSpeed | Advance | Lockstep | Run | Rewind | Screenshot
            | ScreenshotFile | ConsoleLog | ConsoleWarn | ConsoleError | Watch | Unwatch | Evaluate
            | ReadAt | Frozen | Cheats | Sensors | Layers | SetLayer => Influence::None,
        }
    }
}

impl HistoryKeeper {
    pub fn new(history: Arc<History>) -> HistoryKeeper {
        HistoryKeeper {
            history,
            next: None,
            beginning: Beginning::Game,
            has_rewound_picture: false,
            last: Vec::new(),
            kept: 0,
            pictured: None,
            keys: None,
            changed: false,
            stepped: false,
            surroundings: 0,
            rom_changes: 0,
            game: None,
        }
    }

    /// Called before each frame. `drawn` says whether the last frame was drawn.
    pub fn before_frame(&mut self, core: &mut Core, game: GameAndSave, drawn: bool) {
        if !self.history.is_on() {
            return;
        }
        let frame = core.frame_counter();
        let follows = self.next == Some(frame) && self.game == Some(game);
        self.stepped = false;
        // After a reset, or after a state was loaded, the core still shows the earlier picture.
        let rewound = self.has_rewound_picture && matches!(self.beginning, Beginning::Rewind { .. });
        let drawn = drawn && (follows || rewound);
        if !follows {
            self.begin(game);
        }
        let spacing = if !self.changed {
            SPACING
        } else if self.kept == frame {
            // The last state was saved in this frame, before the change. So save the changed state, too.
            0
        } else {
            SHORT_SPACING
        };
        // If no state could be saved after a reset, `kept` is larger than `frame`. Then the subtraction wraps around to
        // a large number, so a state is saved now.
        if !follows || frame.wrapping_sub(self.kept) >= spacing {
            self.keep(core, drawn);
        }
        let keys = core.keys();
        if self.keys != Some(keys) {
            self.keys = Some(keys);
            self.history.note_keys(frame, keys);
        }
        // After the largest number, the next frame begins a new line.
        self.next = frame.checked_add(1);
    }

    /// Whether the history needs a small picture of the next frame.
    pub fn needs_picture(&self) -> bool {
        self.next.is_some_and(|next| next.wrapping_sub(self.kept) >= SPACING && self.wants_picture(next))
    }

    /// Records that the next frame does not follow from the last one.
    pub fn discontinue(&mut self, discontinuity: Discontinuity) {
        self.next = None;
        self.beginning = match discontinuity {
            Discontinuity::Reset => Beginning::Reset,
            Discontinuity::State => Beginning::State,
            Discontinuity::Game => Beginning::Game,
        };
    }

    /// Clears the history if it belongs to another game or another save file, because its states do not fit.
    fn drop_other_game(&mut self, now: GameAndSave) {
        if self.game.is_some_and(|game| game != now) {
            (self.game, self.next, self.beginning) = (None, None, Beginning::Game);
            self.history.clear();
        }
    }

    /// Begins a new line.
    fn begin(&mut self, game: GameAndSave) {
        if self.game != Some(game) {
            self.game = Some(game);
            self.beginning = Beginning::Game;
            self.history.clear();
        }
        self.history.begin(self.beginning);
        // If a line begins later without a known reason, a script has loaded a state.
        self.beginning = Beginning::State;
        (self.keys, self.pictured, self.changed) = (None, None, false);
        self.last.clear();
    }

    /// Adds the current state to the history.
    fn keep(&mut self, core: &mut Core, drawn: bool) {
        // If the state cannot be saved, the next frame tries again.
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

    /// Adds the current state to the history, if the current frame follows from the earlier ones and has no state yet.
    fn keep_end(&mut self, core: &mut Core, drawn: bool) {
        let is_kept = self.next == Some(self.kept) && !self.changed;
        if self.next == Some(core.frame_counter()) && !is_kept {
            self.keep(core, drawn);
        }
    }

    /// Records that something other than the keys has changed the game.
    fn note_change(&mut self, frame: u32) {
        if self.next == Some(frame) {
            self.changed = true;
            self.history.note_change(frame);
        }
    }

    /// Called after the core went back to this frame. `pictured` says whether the core has a picture of it.
    fn went_back(&mut self, line: u32, frame: u32, pictured: bool) {
        self.stepped = false;
        (self.beginning, self.has_rewound_picture) = (Beginning::Rewind { line, frame }, pictured);
        if self.history.go_back(line, frame) {
            // The core is at the end of the last line again, so the next frames continue that line.
            (self.next, self.kept) = (Some(frame), frame);
            (self.keys, self.changed) = (None, false);
            self.last.clear();
        }
    }
}

impl Machine {
    /// The game to which the states of the next frames belong.
    pub(super) fn game_and_save(&mut self) -> GameAndSave {
        (self.core.crc32(), self.saves.file_changes(&mut self.core))
    }

    /// Called before an operation with this influence is performed.
    pub(super) fn before_operation(&mut self, influence: Influence) {
        // Of several single steps, only the first one needs a state before it. Each step changes the game, so
        // `keep_end` would save a state before each of them.
        let steps = influence == Influence::Step && !std::mem::replace(&mut self.keeper.stepped, true);
        if influence == Influence::Break || steps {
            self.keeper.keep_end(&mut self.core, self.drawn);
        }
    }

    /// Called after an operation with this influence was performed.
    pub(super) fn after_operation(&mut self, influence: Influence) {
        if matches!(influence, Influence::Change | Influence::Step | Influence::Surroundings | Influence::Rom)
        {
            self.keeper.note_change(self.core.frame_counter());
        }
        if influence == Influence::Rom {
            self.keeper.rom_changes += 1;
        }
        if matches!(influence, Influence::Surroundings | Influence::Rom) {
            self.note_surroundings();
        }
    }

    /// Removes the frozen values of another game, which must not act on this one.
    pub(super) fn drop_frozen_of_other_game(&mut self) {
        if self.frozen.drop_others(&self.core) {
            self.note_surroundings();
        }
    }

    /// Called when another game, or the same game again, was loaded.
    pub(super) fn note_loaded_game(&mut self) {
        let game = self.game_and_save();
        self.keeper.drop_other_game(game);
        // libmgba has removed all cheats.
        self.cheats.drop_if_removed(&mut self.core);
        self.frozen.drop_others(&self.core);
        // Loading has undone all writes to the ROM. If there were any, this counts as one more change.
        self.keeper.rom_changes += u32::from(self.keeper.rom_changes > 0);
        self.note_surroundings();
    }

    /// Called when something that acts on the game has changed.
    pub(super) fn note_surroundings(&mut self) {
        self.keeper.surroundings = self.surroundings();
    }

    /// The present value for [`HistoryKeeper::surroundings`].
    fn surroundings(&self) -> u64 {
        let all =
            (self.frozen.list(), self.cheats.list(), sensors::list(&self.core), self.keeper.rom_changes);
        let mut hasher = DefaultHasher::new();
        format!("{all:?}").hash(&mut hasher);
        hasher.finish()
    }

    /// Goes back to a frame of the history: loads the state before it, and runs the frames up to it with the same keys.
    /// `line` 0 is the line that the emulator is on. Returns the frame that was reached: the requested frame, or the
    /// last frame before it that can be reproduced exactly.
    ///
    /// # Errors
    /// If the history may take no memory, if it does not contain the frame, or during a recording, a replay or a
    /// timeline.
    pub fn rewind(&mut self, line: u32, frame: u32) -> Result<u32, OpError> {
        if !self.keeper.history.is_on() {
            let message =
                "this emulator was started without memory for a history, so it keeps no states to go back to";
            return Err(OpError::new(Status::Unsupported, message));
        }
        check_may_go_back(self.watches.has_recording_or_replay(), self.keypad.timeline_under_way())?;
        // A script can load another game or save without reporting it.
        let game = self.game_and_save();
        self.keeper.drop_other_game(game);
        self.keeper.keep_end(&mut self.core, self.drawn);
        let surroundings = if self.core.has_scripts() { None } else { Some(self.keeper.surroundings) };
        let found = self.keeper.history.find(line, frame, surroundings)?;
        let held = self.core.keys();
        let keys = found.keys.first().copied().unwrap_or(held);
        let loaded = self.core.load_state_with_keys(keys, &found.state, FLAGS);
        let replayed = loaded.and_then(|()| self.replay(&found));
        self.core.set_keys(held);
        let pictured = replayed.map_err(failed)?;
        // Otherwise, the next operation that needs a picture would run one more frame.
        self.drawn = true;
        self.discontinue(Discontinuity::State);
        self.keeper.went_back(found.line, found.frame, pictured);
        Ok(self.core.frame_counter())
    }

    /// Runs the frames that follow the loaded state, and draws the last one. Returns whether the core has a picture of
    /// the frame that was reached or, if no frame had to run, of the next one.
    fn replay(&mut self, found: &Found) -> Result<bool, Error> {
        let core = &mut self.core;
        for (number, keys) in found.keys.iter().enumerate() {
            core.set_drawing(number + 1 == found.keys.len());
            core.set_keys(*keys);
            core.run_frame();
            self.frozen.write_all(core);
        }
        let draws_next = found.keys.is_empty() && !core.has_scripts();
        if draws_next {
            // A state contains no picture. So run one frame to draw a picture, and load the state again. That picture
            // is one frame too late. With scripts, this is not possible, because the frame would run their callbacks.
            core.set_drawing(true);
            core.run_frame();
            core.load_state(&found.state, FLAGS)?;
        }
        // Discard the sound of these frames, because it has already been played.
        core.read_samples();
        Ok(draws_next || !found.keys.is_empty())
    }
}

/// A small version of the current picture.
fn thumbnail(core: &Core) -> Thumbnail {
    let frame = core.frame();
    Thumbnail::of(frame.width as usize, &frame.rows().collect::<Vec<_>>(), 4)
}
