//! The state of an attached emulator, in addition to the status of its link.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use framewire_link::{Listen, Notice};
use framewire_protocol::{Batch, EventFrame, EventItem, Op, OpError, Outcome, Value};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::history::StateFetcher;
use super::watches::AttachedWatches;
use crate::EventKind;
use crate::event::EventSender;
use crate::history::Beginning;

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

/// The state that the link's task, the front ends and the refresh tasks share.
pub(super) struct AttachedState {
    pub events: EventSender,
    pub watches: Arc<AttachedWatches>,
    pub fetcher: Arc<StateFetcher>,
    timelines: Mutex<OwnTimelines>,
    pub game: Mutex<Game>,
    /// Whether `game` was received over the current connection.
    game_known: AtomicBool,
    /// Notified when another game may have been loaded.
    pub game_changed: Notify,
    /// Whether the emulator is in lockstep. This may be wrong, because another client of the script may have started or
    /// ended lockstep.
    lockstep: AtomicBool,
    pub advances: Advances,
}

/// The timelines that this emulator has started.
#[derive(Debug, Default)]
struct OwnTimelines {
    /// Those that are playing or waiting.
    under_way: BTreeSet<u32>,
    /// Timelines whose end the script has reported: those with the highest numbers, at most [`MAX_OVER`]. They show
    /// that a timeline is over, even if the reply to the batch that started it arrives after the report of its end.
    /// This can happen because a batch with `run` or `advance` is answered after its frames, and because a repeated
    /// batch is answered again.
    over: BTreeSet<u32>,
}

/// The largest number of timelines in [`OwnTimelines::over`].
const MAX_OVER: usize = 1024;

impl OwnTimelines {
    /// Called when the reply to the batch that started a timeline has arrived.
    fn started(&mut self, id: u32) {
        if !self.over.contains(&id) {
            self.under_way.insert(id);
        }
    }

    /// Called when the script reports the end of a timeline.
    fn ended(&mut self, id: u32) {
        self.under_way.remove(&id);
        self.over.insert(id);
        if self.over.len() > MAX_OVER {
            self.over.pop_first();
        }
    }

    /// Called when a timeline was cancelled or, if `id` is 0, when all timelines were cancelled.
    fn cancelled(&mut self, id: u32) {
        if id == 0 {
            self.under_way.clear();
        } else {
            self.under_way.remove(&id);
        }
    }
}

/// The effect of an operation on [`AttachedState`], after it was performed.
#[derive(Debug)]
pub(super) enum OpEffect {
    /// A watch with this number starts.
    Watch(u32),
    /// Lockstep starts (`true`) or ends.
    Lockstep(bool),
    /// A timeline starts, or waits for other timelines. Its number is the operation's result, or the first item of the
    /// result.
    Timeline,
    /// The timeline with this number is cancelled. 0 means that all timelines are cancelled.
    Cancel(u32),
    /// The next frame does not follow from the last one.
    Break(Beginning),
}

/// The effects of the operations of a batch, each with the index of its operation.
pub(super) fn effects(batch: &Batch) -> Vec<(usize, OpEffect)> {
    // In a batch that runs frames, `cancel_keys` has no effect here. The events of these frames have already reported
    // the end of the cancelled timelines, and other timelines may have started before the reply arrives.
    let is_late = batch.ops.iter().any(|op| matches!(op, Op::Run { .. } | Op::Advance { .. }));
    let effect = |op: &Op| match op {
        Op::Watch { id, .. } => Some(OpEffect::Watch(*id)),
        Op::Lockstep { timeout } => Some(OpEffect::Lockstep(*timeout > 0)),
        Op::Resume {} => Some(OpEffect::Lockstep(false)),
        Op::PlayKeys { .. } | Op::AppendKeys { .. } => Some(OpEffect::Timeline),
        Op::CancelKeys { id } if !is_late => Some(OpEffect::Cancel(*id)),
        Op::Reset {} => Some(OpEffect::Break(Beginning::Reset)),
        Op::LoadState { .. } | Op::LoadStateFile { .. } | Op::LoadStateSlot { .. } => {
            Some(OpEffect::Break(Beginning::State))
        }
        _ => None,
    };
    let ops = batch.ops.iter().enumerate();
    ops.filter_map(|(number, op)| Some((number, effect(op)?))).collect()
}

/// The `read_at` operations of a batch: the index of each, and how many bytes its result must have.
pub(super) fn reads_at(batch: &Batch) -> Vec<(usize, usize)> {
    let reads = batch.ops.iter().enumerate().filter(|(_, op)| matches!(op, Op::ReadAt { .. }));
    reads.map(|(number, op)| (number, op.largest_result())).collect()
}

/// Puts an error in place of each result of `read_at` that has the wrong type or length.
pub(super) fn check_reads(reads: &[(usize, usize)], outcome: &mut Outcome) {
    for (number, length) in reads {
        if let Some(result) = outcome.results.get_mut(*number)
            && let Ok(value) = result
            && !matches!(value, Value::Bytes(bytes) if bytes.len() == *length)
        {
            *result = Err(OpError::unexpected_reply());
        }
    }
}

impl AttachedState {
    /// The state of a new emulator, whose history may take `history` bytes of memory.
    pub fn new(history: usize) -> AttachedState {
        AttachedState {
            events: EventSender::new(),
            watches: Arc::default(),
            fetcher: Arc::new(StateFetcher::new(history)),
            timelines: Mutex::default(),
            game: Mutex::default(),
            game_known: AtomicBool::new(false),
            game_changed: Notify::new(),
            lockstep: AtomicBool::new(false),
            advances: Advances::default(),
        }
    }

    /// A function that handles the notices of a link.
    pub fn listener(shared: &Arc<AttachedState>) -> Listen {
        let shared = shared.clone();
        Box::new(move |frame, notice| shared.handle(frame, notice))
    }

    pub fn in_lockstep(&self) -> bool {
        self.lockstep.load(Relaxed)
    }

    /// Whether the game was received over the current connection.
    pub fn knows_game(&self) -> bool {
        self.game_known.load(Relaxed)
    }

    /// Applies the effects of a batch that was performed.
    pub fn apply(&self, effects: &[(usize, OpEffect)], outcome: &Outcome) {
        for (number, effect) in effects {
            match (effect, outcome.results.get(*number)) {
                (OpEffect::Watch(id), Some(Ok(Value::Bytes(base)))) => {
                    self.watches.begun(*id, outcome.frame, base);
                }
                (OpEffect::Lockstep(on), Some(Ok(_))) => self.lockstep.store(*on, Relaxed),
                (OpEffect::Timeline, Some(Ok(value))) => {
                    if let Some(id) = timeline_id(value) {
                        self.timelines.lock().started(id);
                    }
                }
                (OpEffect::Cancel(id), Some(Ok(_))) => self.timelines.lock().cancelled(*id),
                // A load that loaded nothing has the result `false`.
                (OpEffect::Break(beginning), Some(Ok(value))) if *value != Value::Bool(false) => {
                    self.fetcher.discontinue(*beginning);
                }
                _ => {}
            }
        }
    }

    /// A timeline that is playing or waiting, if this emulator has started one.
    pub fn timeline_under_way(&self) -> Option<u32> {
        self.timelines.lock().under_way.first().copied()
    }

    fn handle(&self, frame: u32, notice: Notice) {
        match notice {
            Notice::Connected => {
                self.game_known.store(false, Relaxed);
                self.watches.forget();
                // Keep `over`, because a batch whose reply was lost is now answered again. If the script was loaded
                // again, `Missed` follows.
                self.timelines.lock().under_way.clear();
                self.fetcher.discontinue(Beginning::State);
                self.game_changed.notify_one();
                self.events.send(frame, EventKind::Connected);
            }
            Notice::Disconnected(problem) => self.events.send(frame, EventKind::Disconnected { problem }),
            Notice::Missed(count) => {
                // The end of lockstep may be among the lost events.
                self.lockstep.store(false, Relaxed);
                match count {
                    Some(_) => self.timelines.lock().under_way.clear(),
                    // The script was loaded again, so it numbers its timelines from 1 again.
                    None => *self.timelines.lock() = OwnTimelines::default(),
                }
                self.fetcher.discontinue(Beginning::State);
                self.events.send(frame, EventKind::Missed { count });
            }
            Notice::Stalled => self.events.send(frame, EventKind::Stalled),
            Notice::Running => self.events.send(frame, EventKind::Running),
            Notice::Events(events) => self.handle_events(events),
        }
    }

    fn handle_events(&self, EventFrame { frame, items }: EventFrame) {
        for item in items {
            match item {
                EventItem::Changed { watch, ticks, values } => {
                    self.watches.changed(watch, frame, ticks, values)
                }
                EventItem::Reset => {
                    self.fetcher.discontinue(Beginning::Reset);
                    self.events.send(frame, EventKind::Reset);
                }
                EventItem::State => {
                    self.fetcher.note_state(frame);
                    self.events.send(frame, EventKind::State);
                }
                EventItem::TimelineOver { id, cancelled } => {
                    self.timelines.lock().ended(id);
                    self.events.send(frame, EventKind::TimelineOver { id, cancelled });
                }
                EventItem::LockstepOver => {
                    self.lockstep.store(false, Relaxed);
                    self.events.send(frame, EventKind::LockstepOver);
                }
                EventItem::Game => {
                    // The states of the previous game do not fit this one.
                    self.fetcher.clear();
                    self.game_changed.notify_one();
                }
            }
        }
    }

    /// Records which game is loaded. Sends an event if the game has changed.
    pub fn set_game(&self, frame: u32, game: Game) {
        let before = std::mem::replace(&mut *self.game.lock(), game.clone());
        let other_checksum = before.checksum.zip(game.checksum).is_some_and(|(before, now)| before != now);
        if other_checksum {
            self.watches.note_other_game();
        }
        self.game_known.store(true, Relaxed);
        if before != game {
            self.fetcher.clear();
            let Game { title, code, checksum } = game;
            self.events.send(frame, EventKind::Game { title, code, checksum });
        }
    }
}

/// The number of a timeline in the result of `play_keys` or `append_keys`.
fn timeline_id(value: &Value) -> Option<u32> {
    match value {
        Value::Int(id) => u32::try_from(*id).ok(),
        Value::Text(id) => id.parse().ok(),
        Value::List(list) => timeline_id(list.first()?),
        _ => None,
    }
}

/// The unfinished `advance` operations: frames that clients have requested in lockstep. They run at the speed that is
/// set in mGBA. Until all of them have run, the script answers no request of this link. So the deadlines of requests
/// that are sent in the meantime are extended.
#[derive(Debug, Default)]
pub(super) struct Advances(Mutex<OpenAdvances>);

#[derive(Debug, Default)]
struct OpenAdvances {
    count: usize,
    /// The latest deadline of the unfinished advances; `None` if all have ended.
    until: Option<Instant>,
}

/// A guard of one unfinished advance. When it is dropped, the advance counts as ended.
pub(super) struct Advance(Arc<AttachedState>);

impl Advances {
    /// Records an unfinished advance with this deadline.
    pub fn begin(shared: &Arc<AttachedState>, deadline: Instant) -> Advance {
        let open = &mut *shared.advances.0.lock();
        open.count += 1;
        open.until = open.until.max(Some(deadline));
        Advance(shared.clone())
    }

    /// The deadline of a request that is sent now: `deadline`, plus the time that the unfinished advances may still
    /// take.
    pub fn after(&self, deadline: Instant) -> Instant {
        let until = self.0.lock().until;
        until.map_or(deadline, |until| deadline + until.saturating_duration_since(Instant::now()))
    }
}

impl Drop for Advance {
    fn drop(&mut self) {
        let open = &mut *self.0.advances.0.lock();
        open.count -= 1;
        if open.count == 0 {
            open.until = None;
        }
    }
}
