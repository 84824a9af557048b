//! A core together with its keypad, watches, media, saves and clock.

use std::path::PathBuf;
use std::sync::Arc;

use framewire_libmgba::{Clock as CoreClock, Core, Platform, Time};
use framewire_protocol::{KeyStep, Keys, OpError, Outcome};

use super::Console;
use super::cheats::Cheats;
use super::computed::Frozen;
use super::history::HistoryKeeper;
use super::keys::{KeyChange, Keypad};
use super::media::Media;
use super::outcomes::Outcomes;
use super::pace::Speed;
use super::run::RunControl;
use super::runs::Runs;
use super::saves::Saves;
use super::scripting::Scripting;
use super::shared::EmbeddedState;
use super::watches::Watches;
use crate::{Clock, ClockTime, Discontinuity, EventKind, Responder};

/// The setting of a core for this time source.
pub(super) fn core_clock(clock: Clock) -> CoreClock {
    match clock {
        Clock::Wall => CoreClock::Host,
        Clock::Frames => CoreClock::Frames(Time::now()),
        Clock::At(ClockTime { unix_ms, zone }) => CoreClock::Frames(Time { unix_ms, zone: Some(zone) }),
    }
}

/// A core with everything that acts on it or reports from it between frames.
pub(super) struct Machine {
    pub core: Core,
    pub keypad: Keypad,
    /// The outcomes of batches with idempotency keys.
    pub outcomes: Outcomes,
    pub watches: Watches,
    /// The frozen values, which are written again after each frame.
    pub frozen: Frozen,
    pub media: Media,
    pub saves: Saves,
    pub cheats: Cheats,
    /// Adds states and keys to the history.
    pub keeper: HistoryKeeper,
    /// Whether frames run, and how fast.
    pub run: RunControl,
    /// The active runs (of the operation `run`), each with the batch that waits for it.
    pub runs: Runs,
    /// Whether the frames of an `advance` are running.
    pub advancing: bool,
    /// The outcomes of finished batches, which the worker sends.
    pub answers: Vec<(Responder, Outcome)>,
    /// Receives log lines, for example those of the operation `console_log`.
    pub console: Console,
    /// Runs Lua code that clients send.
    pub scripting: Scripting,
    pub shared: Arc<EmbeddedState>,
    /// The BIOS from the settings, and the console that it belongs to: that of the first game.
    bios: Option<(Platform, PathBuf)>,
    /// The time source of the console's clock, from the settings. With [`Clock::Wall`], the clock advances with the
    /// frames instead while a watch needs that. The watches of recordings and of most replays need it.
    clock: Clock,
    /// Whether an operation has tried to load another game, successfully or not, since the worker last updated the game
    /// in the report.
    pub tried_to_load: bool,
    /// The number of frames that have run. Unlike the core's frame counter, it is not changed by resets or loaded
    /// states.
    pub ticks: u64,
    /// Whether the last frame was drawn, so that the core's picture is current.
    pub drawn: bool,
    /// Whether the cartridge rumbled in the last frame.
    rumbles: bool,
}

impl Machine {
    pub fn new(
        core: Core,
        saves: Saves,
        speed: Speed,
        paused: bool,
        clock: Clock,
        scripting: Scripting,
        shared: Arc<EmbeddedState>,
    ) -> Machine {
        let bios = core.options().hardware.bios.clone().map(|file| (core.platform(), file));
        Machine {
            bios,
            clock,
            core,
            keypad: Keypad::default(),
            outcomes: Outcomes::default(),
            watches: Watches::new(shared.queues.clone()),
            frozen: Frozen::default(),
            media: Media::new(shared.outputs.clone()),
            saves,
            cheats: Cheats::default(),
            keeper: HistoryKeeper::new(shared.history.clone()),
            run: RunControl::new(speed, paused),
            runs: Runs::default(),
            advancing: false,
            answers: Vec::new(),
            console: scripting.console(),
            scripting,
            shared,
            tried_to_load: false,
            ticks: 0,
            drawn: true,
            rumbles: false,
        }
    }

    /// The BIOS for games of the console that does not run now.
    pub fn bios_of_other_console(&self) -> Option<PathBuf> {
        let (console, file) = self.bios.as_ref()?;
        if *console == self.core.platform() { None } else { Some(file.clone()) }
    }

    pub fn send_event(&self, kind: EventKind) {
        self.shared.events.send(self.core.frame_counter(), kind);
    }

    /// Updates the frame counter and the run state in the report. Called before an event or a reply about a change to
    /// either of them is sent. The worker updates the rest later.
    pub fn report(&self) {
        let mut report = self.shared.report.lock();
        report.frame = self.core.frame_counter();
        report.run_state = self.run.run_state();
    }

    /// Reports that the next frame does not follow from the last one.
    pub fn discontinue(&mut self, discontinuity: Discontinuity) {
        self.watches.discontinue(self.core.frame_counter(), discontinuity);
        self.keeper.discontinue(discontinuity);
        match discontinuity {
            Discontinuity::Reset => self.send_event(EventKind::Reset),
            Discontinuity::State => self.send_event(EventKind::State),
            // The worker sends the event for this, with the game's title.
            Discontinuity::Game => self.note_loaded_game(),
        }
    }

    /// Runs a frame. Watches, runs and receivers of media see its result before scripts, holds or timelines change
    /// anything. If `draw` is false, the frame is drawn only if scripts, watches, receivers or the history need the
    /// picture.
    pub fn run_frame(&mut self, draw: bool) {
        self.ticks += 1;
        self.settle_clock();
        self.settle_protection();
        self.drop_frozen_of_other_game();
        let game = self.game_and_save();
        self.keeper.before_frame(&mut self.core, game, self.drawn);
        let draw = draw
            || self.core.has_scripts()
            || self.watches.need_picture()
            || self.media.need_picture()
            || self.keeper.needs_picture();
        self.drawn = draw;
        let (watches, media, ticks) = (&mut self.watches, &mut self.media, self.ticks);
        let runs = &mut self.runs;
        let mut frame = 0;
        self.core.set_drawing(draw);
        self.core.run_frame_and_look(|core| {
            watches.after_frame(core);
            runs.after_frame(core);
            media.after_frame(core, ticks, draw);
            frame = core.frame_counter();
        });
        // A script may have reset the console or loaded a state. If the frame counter is still the same, this is not
        // detected.
        match self.core.frame_counter() {
            now if now == frame => {}
            0 => self.discontinue(Discontinuity::Reset),
            _ => self.discontinue(Discontinuity::State),
        }
        let rumbles = self.core.take_rumble();
        if rumbles != self.rumbles {
            self.rumbles = rumbles;
            self.send_event(EventKind::Rumble { on: rumbles });
        }
        // A script may have loaded another game during the frame.
        self.drop_frozen_of_other_game();
        self.frozen.write_all(&mut self.core);
        let change = self.keypad.advance();
        self.apply(change);
        self.settle_runs();
    }

    /// Sends the current picture to the receivers.
    pub fn show_picture(&mut self) {
        self.media.show(&mut self.core, self.ticks);
    }

    /// Sends the current picture to the receivers, unless it was already sent. Called when the game stops.
    pub fn settle_picture(&mut self) {
        self.media.settle(&mut self.core, self.ticks);
    }

    /// With [`Clock::Wall`]: makes the console's clock advance with the frames while a watch needs that, and follow the
    /// host's clock otherwise.
    pub fn settle_clock(&mut self) {
        if self.clock != Clock::Wall {
            return;
        }
        match (self.core.clock(), self.watches.need_frame_clock()) {
            (CoreClock::Host, true) => self.core.set_clock(CoreClock::Frames(Time::now())),
            (CoreClock::Frames(_), false) => self.core.set_clock(CoreClock::Host),
            _ => {}
        }
    }

    /// During a recording or a replay, protects the cartridge's save from the states that scripts load. See
    /// [`load_flags`](Self::load_flags) for the reason.
    pub fn settle_protection(&mut self) {
        self.core.protect_save(self.watches.has_recording_or_replay());
    }

    /// Runs this many frames, within a batch. Returns the frame counter after the last of them.
    pub fn advance(&mut self, frames: u32) -> u32 {
        self.advancing = true;
        for left in (0..frames).rev() {
            // The pictures of the other frames are needed only if a run may end there.
            self.run_frame(left == 0 || self.runs.need_picture());
            self.shared.alive();
        }
        self.advancing = false;
        self.media.settle(&mut self.core, self.ticks);
        self.core.frame_counter()
    }

    /// Holds exactly these keys, and ends holds and timelines of all keys.
    pub fn set_keys(&mut self, keys: u16) {
        self.release(Keys::MASK, self.core.keys() & !keys);
        self.core.set_keys(keys);
    }

    /// Releases `keys`, and ends their holds and timelines.
    pub fn clear_keys(&mut self, keys: u16) {
        self.release(keys, self.core.keys() & keys);
        self.core.clear_keys(keys);
    }

    /// Ends holds and timelines of `keys`: see [`Keypad::release`].
    pub fn release(&mut self, keys: u16, up: u16) {
        self.keypad.release(keys, up);
        self.report_ended();
    }

    /// Plays the steps of a timeline. Returns its id.
    ///
    /// # Errors
    /// If another timeline has one of its keys.
    pub fn play(&mut self, steps: Vec<KeyStep>) -> Result<u32, OpError> {
        let (id, change) = self.keypad.play(steps)?;
        self.apply(change);
        Ok(id)
    }

    /// Ends the timeline with this id. If `id` is 0, ends all timelines and holds. Returns whether there was anything
    /// to end.
    pub fn cancel_keys(&mut self, id: u32) -> bool {
        let (any, change) = self.keypad.cancel(id);
        self.apply(change);
        any
    }

    /// Presses and releases the keys of a change from the keypad. Also reports the timelines that have ended.
    pub fn apply(&mut self, change: KeyChange) {
        if change.clear != 0 {
            self.core.clear_keys(change.clear);
        }
        if change.add != 0 {
            self.core.add_keys(change.add);
        }
        self.report_ended();
    }

    /// Sends an event for each timeline that has ended.
    fn report_ended(&mut self) {
        for (id, cancelled) in self.keypad.take_ended(self.core.frame_counter()).into_iter().flatten() {
            self.send_event(EventKind::TimelineOver { id, cancelled });
        }
    }
}
