//! A core with what belongs to it: what runs with its frames, and what was asked of its clock.

use std::sync::Arc;

use framewire_libmgba::Core;
use framewire_protocol::{Keys, OpError, timeline};

use super::Console;
use super::clock;
use super::keys::{Change, Keypad};
use super::memory::Memory;
use super::pace::Speed;
use super::run::RunControl;
use super::saves::Saves;
use super::shared::Shared;
use super::taps::Media;
use super::watches::Watches;
use crate::{Clock, Discontinuity, Happening};

/// Most frames that a batch runs.
const MAX_ADVANCE: u32 = 3600;

/// A core with what belongs to it between frames.
pub(super) struct Machine {
    pub core: Core,
    pub keypad: Keypad,
    pub memory: Memory,
    pub watches: Watches,
    pub media: Media,
    pub saves: Saves,
    /// What was asked of the clock.
    pub run: RunControl,
    /// Takes lines of the console operations and of scripts.
    pub console: Console,
    pub shared: Arc<Shared>,
    /// What the console's clock goes by, as long as no recording or replay needs it to go by frames.
    clock: Clock,
    /// How often another game was put in, or tried to be.
    pub games: u32,
    /// Frames run, whatever the core's own counter says after a reset or a state.
    pub ticks: u64,
    /// Frames that the batch under way has run.
    pub advanced: u32,
}

impl Machine {
    pub fn new(
        mut core: Core,
        saves: Saves,
        speed: Speed,
        paused: bool,
        clock: Clock,
        console: Console,
        shared: Arc<Shared>,
    ) -> Machine {
        clock::begin(clock, &mut core);
        Machine {
            clock,
            core,
            keypad: Keypad::default(),
            memory: Memory::default(),
            watches: Watches::new(shared.feeds.clone()),
            media: Media::new(shared.taps.clone()),
            saves,
            run: RunControl::new(speed, paused),
            console,
            shared,
            games: 0,
            ticks: 0,
            advanced: 0,
        }
    }

    /// Tells whoever listens to this emulator's events.
    pub fn tell(&self, what: Happening) {
        self.shared.teller.tell(self.core.frame_counter(), what);
    }

    /// The next frame does not follow from the last one.
    pub fn discontinue(&mut self, discontinuity: Discontinuity) {
        self.watches.discontinue(self.core.frame_counter(), discontinuity);
        match discontinuity {
            Discontinuity::Reset => self.tell(Happening::Reset),
            Discontinuity::State => self.tell(Happening::State),
            // Told with its name.
            Discontinuity::Game => {}
        }
    }

    /// Runs a frame. Whoever watches sees it as it was, before scripts, holds or timelines change anything.
    pub fn run_frame(&mut self) {
        self.ticks += 1;
        self.settle_clock();
        let (watches, media, ticks) = (&mut self.watches, &mut self.media, self.ticks);
        let mut frame = 0;
        self.core.run_frame_and_look(|core| {
            watches.look(core);
            media.look(core, ticks);
            frame = core.frame_counter();
        });
        // Scripts reset and load states too. One whose state is of this very frame is not seen.
        match self.core.frame_counter() {
            now if now == frame => {}
            0 => self.discontinue(Discontinuity::Reset),
            _ => self.discontinue(Discontinuity::State),
        }
        let change = self.keypad.advance();
        self.apply(change);
    }

    /// Has the console's clock go by frames as long as a watch needs that.
    pub fn settle_clock(&mut self) {
        clock::settle(self.clock, &mut self.core, self.watches.need_frame_clock());
    }

    /// Runs frames in the middle of a batch. Gives the frame counter behind them.
    ///
    /// # Errors
    /// If they are none, or with those before in this batch too many.
    pub fn advance(&mut self, frames: u32) -> Result<u32, OpError> {
        if frames == 0 || frames > MAX_ADVANCE - self.advanced {
            let left = match self.advanced {
                0 => String::new(),
                advanced => format!(", and this one has run {advanced} already"),
            };
            let message = format!("frames is {frames}; a batch runs 1 to {MAX_ADVANCE} of them{left}");
            return Err(OpError::bad_argument(message));
        }
        self.advanced += frames;
        for _ in 0..frames {
            self.run_frame();
            self.shared.alive();
        }
        self.media.settle(&mut self.core, self.ticks);
        Ok(self.core.frame_counter())
    }

    /// Holds these keys and no others, whatever was to hold or play them.
    pub fn set_keys(&mut self, keys: u16) {
        self.let_go(Keys::MASK, self.core.keys() & !keys);
        self.core.set_keys(keys);
    }

    /// Keys are set by hand, as [`Keypad::let_go`] is told.
    pub fn let_go(&mut self, keys: u16, up: u16) {
        self.keypad.let_go(keys, up);
        self.tell_over();
    }

    /// Holds keys for a number of frames.
    ///
    /// # Errors
    /// If too many holds wait.
    pub fn hold_keys(&mut self, keys: u16, frames: u32) -> Result<(), OpError> {
        let change = self.keypad.hold(keys, frames)?;
        self.apply(change);
        Ok(())
    }

    /// Plays a timeline. Gives its id.
    ///
    /// # Errors
    /// If it is none, or another one has one of its keys.
    pub fn play_keys(&mut self, steps: &[u8]) -> Result<u32, OpError> {
        let (id, change) = self.keypad.play(timeline::decode(steps)?)?;
        self.apply(change);
        Ok(id)
    }

    /// Ends a timeline, or with 0 all of them and all holds. Whether there was any.
    pub fn cancel_keys(&mut self, id: u32) -> bool {
        let (any, change) = self.keypad.cancel(id);
        self.apply(change);
        any
    }

    fn apply(&mut self, change: Change) {
        if change.clear != 0 {
            self.core.clear_keys(change.clear);
        }
        if change.add != 0 {
            self.core.add_keys(change.add);
        }
        self.tell_over();
    }

    fn tell_over(&mut self) {
        for (id, cancelled) in self.keypad.take_over(self.core.frame_counter()).into_iter().flatten() {
            self.tell(Happening::TimelineOver { id, cancelled });
        }
    }
}
