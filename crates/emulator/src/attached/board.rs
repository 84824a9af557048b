//! What is known of an attached emulator beside its link's status.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use framewire_link::{Listen, Notice};
use framewire_protocol::{Batch, EventFrame, EventItem, Op, Outcome, Value};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::advances::Advances;
use super::watches::Watches;
use crate::Happening;
use crate::event::Teller;

/// The game in the emulator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Game {
    pub title: Option<String>,
    pub code: Option<String>,
    pub checksum: Option<u32>,
}

impl From<Outcome> for Game {
    fn from(outcome: Outcome) -> Game {
        let mut game = Game::default();
        for (number, result) in outcome.results.into_iter().enumerate() {
            match (number, result) {
                (0, Ok(Value::Text(title))) => game.title = Some(title),
                (1, Ok(Value::Text(code))) => game.code = Some(code),
                (2, Ok(Value::Int(checksum))) => game.checksum = Some(checksum as u32),
                _ => {}
            }
        }
        game
    }
}

/// What the link's task, the front ends and the keepers share.
pub(super) struct Board {
    pub teller: Teller,
    pub watches: Arc<Watches>,
    pub game: Mutex<Game>,
    /// Rings when the game may be another one.
    pub game_changed: Notify,
    /// As far as is known: another client may have begun or ended it.
    lockstep: AtomicBool,
    pub advances: Advances,
}

/// What an operation of a batch changes here when it is done.
#[derive(Debug)]
pub(super) enum Noted {
    Watch(u32),
    Lockstep(bool),
}

/// The operations of a batch that are to be noted, by their number in it; `None` if there are none.
pub(super) fn noted(batch: &Batch) -> Option<Vec<(usize, Noted)>> {
    let noted = |op: &Op| match op {
        Op::Watch { id, .. } => Some(Noted::Watch(*id)),
        Op::Lockstep { timeout } => Some(Noted::Lockstep(*timeout > 0)),
        Op::Resume {} => Some(Noted::Lockstep(false)),
        _ => None,
    };
    let ops = batch.ops.iter().enumerate();
    let list: Vec<_> = ops.filter_map(|(number, op)| Some((number, noted(op)?))).collect();
    (!list.is_empty()).then_some(list)
}

impl Board {
    pub fn new() -> Board {
        Board {
            teller: Teller::new(),
            watches: Arc::default(),
            game: Mutex::default(),
            game_changed: Notify::new(),
            lockstep: AtomicBool::new(false),
            advances: Advances::default(),
        }
    }

    /// What a link is to tell.
    pub fn listener(board: &Arc<Board>) -> Listen {
        let board = board.clone();
        Box::new(move |frame, notice| board.hear(frame, notice))
    }

    pub fn in_lockstep(&self) -> bool {
        self.lockstep.load(Relaxed)
    }

    /// Notes what a batch has begun and ended.
    pub fn note(&self, noted: &[(usize, Noted)], outcome: &Outcome) {
        for (number, noted) in noted {
            match (noted, outcome.results.get(*number)) {
                (Noted::Watch(id), Some(Ok(Value::Bytes(base)))) => {
                    self.watches.begun(*id, outcome.frame, base);
                }
                (Noted::Lockstep(on), Some(Ok(_))) => self.lockstep.store(*on, Relaxed),
                _ => {}
            }
        }
    }

    fn hear(&self, frame: u32, notice: Notice) {
        match notice {
            Notice::Connected => {
                self.watches.forget();
                self.game_changed.notify_one();
                self.teller.tell(frame, Happening::Connected);
            }
            Notice::Disconnected(problem) => self.teller.tell(frame, Happening::Disconnected { problem }),
            Notice::Missed(count) => {
                // The end of lockstep may be among them.
                self.lockstep.store(false, Relaxed);
                self.teller.tell(frame, Happening::Missed { count });
            }
            Notice::Stalled => self.teller.tell(frame, Happening::Stalled),
            Notice::Running => self.teller.tell(frame, Happening::Running),
            Notice::Events(events) => self.happened(events),
        }
    }

    fn happened(&self, EventFrame { frame, items }: EventFrame) {
        for item in items {
            match item {
                EventItem::Changed { watch, ticks, news } => self.watches.changed(watch, frame, ticks, news),
                EventItem::Reset => self.teller.tell(frame, Happening::Reset),
                EventItem::State => self.teller.tell(frame, Happening::State),
                EventItem::TimelineOver { id, cancelled } => {
                    self.teller.tell(frame, Happening::TimelineOver { id, cancelled });
                }
                EventItem::LockstepOver => {
                    self.lockstep.store(false, Relaxed);
                    self.teller.tell(frame, Happening::LockstepOver);
                }
                EventItem::Game => self.game_changed.notify_one(),
            }
        }
    }

    /// Notes which game it is, and tells if it is another one.
    pub fn identified(&self, frame: u32, game: Game) {
        if std::mem::replace(&mut *self.game.lock(), game.clone()) != game {
            let Game { title, code, checksum } = game;
            self.teller.tell(frame, Happening::Game { title, code, checksum });
        }
    }
}
