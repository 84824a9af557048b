//! Keeps states of an attached emulator, and goes back to them.
//!
//! The script saves a state within its frame callback, so a state costs the window time. The keys of the frames between two
//! states are not known. So an attached emulator goes back to frames whose states are kept, and to no others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_link::{Link, LinkError, Script};
use framewire_media::png;
use framewire_protocol::{Batch, Op, OpError, Outcome, Status, Value};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::refresh::is_ready;
use super::shared::AttachedState;
use crate::history::{Beginning, History, NewState, Thumbnail};

/// Time between two states. A test in `tests/tests/e2e/history.rs` measures what they cost a window.
const SPACING: Duration = Duration::from_secs(1);
/// How long states are kept after somebody last asked for the history. Without this limit, an emulator whose history nobody
/// uses would send a state each second.
const INTEREST: Duration = Duration::from_secs(10 * 60);
/// The longest time for a state to arrive.
const PATIENCE: Duration = Duration::from_secs(2);
/// mGBA's state flags: the screenshot, the battery save and the cartridge's clock. With a screenshot, mGBA compresses the
/// state, so a few KiB cross the link instead of 400.
const FLAGS: u8 = 1 | 2 | 8;
/// After a state was loaded, its event comes within this many frames.
const EVENT_FRAMES: u32 = 3;

/// Adds states of an attached emulator to its history.
#[derive(Debug)]
pub(super) struct StateFetcher {
    pub history: Arc<History>,
    progress: Mutex<FetchProgress>,
}

#[derive(Debug)]
struct FetchProgress {
    /// Why the next state does not follow from the last one that was kept; `None` if it does.
    beginning: Option<Beginning>,
    /// The frame of the last state.
    kept: Option<u32>,
    /// The keys of the last state.
    keys: Option<u16>,
    /// The frame to which the emulator last went back, until a later state is kept.
    went_to: Option<u32>,
    /// How many times the order of frames was broken.
    breaks: u64,
    /// When somebody last asked for the history.
    asked: Option<Instant>,
}

/// A state as the script sent it.
struct Saved {
    frame: u32,
    state: Vec<u8>,
    keys: Option<u16>,
    /// How many times the order of frames had been broken when it came.
    breaks: u64,
}

/// A `rewind` in a batch: the index of the operation, and where it goes back to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Return {
    pub index: usize,
    line: u32,
    frame: u32,
}

/// How many operations a `rewind` becomes.
const OPS: usize = 3;

impl StateFetcher {
    /// A history that takes at most `budget` bytes of memory; with 0 it keeps nothing.
    pub fn new(budget: usize) -> StateFetcher {
        let progress = FetchProgress {
            beginning: Some(Beginning::Game),
            kept: None,
            keys: None,
            went_to: None,
            breaks: 0,
            asked: None,
        };
        StateFetcher { history: Arc::new(History::new(budget)), progress: Mutex::new(progress) }
    }

    /// Returns the history. From then on, states are kept until nobody has asked for the history for ten minutes.
    pub fn ask(&self) -> Arc<History> {
        self.progress.lock().asked = Some(Instant::now());
        self.history.clone()
    }

    fn is_asked(&self) -> bool {
        self.progress.lock().asked.is_some_and(|asked| asked.elapsed() < INTEREST)
    }

    /// Notes that the frames after this do not follow from the earlier ones.
    pub fn discontinue(&self, beginning: Beginning) {
        let progress = &mut *self.progress.lock();
        if progress.beginning != Some(Beginning::Game) {
            progress.beginning = Some(beginning);
        }
        progress.went_to = None;
        progress.breaks += 1;
    }

    /// Notes that a state was loaded, and that the frame counter is at `frame` shortly after.
    pub fn note_state(&self, frame: u32) {
        let own = |went_to: u32| (went_to..=went_to + EVENT_FRAMES).contains(&frame);
        if !self.progress.lock().went_to.is_some_and(own) {
            self.discontinue(Beginning::State);
        }
    }

    /// Forgets everything, because of another game.
    pub fn clear(&self) {
        let progress = &mut *self.progress.lock();
        self.history.clear();
        (progress.beginning, progress.kept) = (Some(Beginning::Game), None);
        progress.breaks += 1;
    }

    fn breaks(&self) -> u64 {
        self.progress.lock().breaks
    }

    /// Whether the state of this frame is kept already.
    fn has(&self, frame: u32) -> bool {
        let progress = self.progress.lock();
        progress.beginning.is_none() && progress.kept == Some(frame)
    }

    fn add(&self, Saved { frame, state, keys, breaks }: Saved, thumbnail: Option<Thumbnail>) {
        let progress = &mut *self.progress.lock();
        // The state may be from before the last break.
        if progress.breaks != breaks || progress.beginning.is_none() && progress.kept == Some(frame) {
            return;
        }
        let follows = progress.kept.is_some_and(|kept| kept < frame);
        if progress.beginning.is_some() || !follows {
            self.history.begin(progress.beginning.unwrap_or(Beginning::State));
            progress.keys = None;
        }
        self.history.add(NewState { frame, bytes: &state, before: &[], surroundings: None, thumbnail });
        if keys.is_some() && progress.keys != keys {
            progress.keys = keys;
            self.history.note_keys(frame, keys.unwrap_or_default());
        }
        (progress.beginning, progress.kept, progress.went_to) = (None, Some(frame), None);
    }
}

impl StateFetcher {
    /// Replaces an operation `rewind` of a batch with operations that the script has. They save the current state and load
    /// the kept one. The first `rewind` is given by its index, frame and line; `now` is the emulator's frame counter.
    ///
    /// # Errors
    /// If it cannot go back.
    pub fn prepare(
        &self,
        batch: &mut Batch,
        (index, frame, line): (usize, u32, u32),
        now: u32,
    ) -> Result<Return, OpError> {
        if !self.history.is_on() {
            let message = "this emulator was attached without memory for a history; start the server without --history 0";
            return Err(OpError::new(Status::Unsupported, message));
        }
        if batch.ops[index + 1..].iter().any(|op| matches!(op, Op::Rewind { .. })) {
            let message = "a batch goes back only once; send each rewind in its own batch";
            return Err(OpError::bad_argument(message));
        }
        let history = self.ask();
        let found = history.find(line, history.until_end(line, frame, now), None)?;
        self.progress.lock().went_to = Some(found.frame);
        let load = Op::LoadState { data: found.state, flags: FLAGS };
        let ops = [Op::CurrentFrame {}, Op::SaveState { flags: FLAGS }, load];
        batch.ops.splice(index..=index, ops);
        Ok(Return { index, line: found.line, frame: found.frame })
    }

    /// Replaces the results of the operations that `prepare` put into a batch with the result of `rewind`.
    pub fn finish(&self, to: Return, outcome: &mut Outcome) {
        let Return { index, line, frame } = to;
        let end = outcome.results.len().min(index + OPS);
        let mut results = outcome.results.drain(index.min(end)..end).collect::<Vec<_>>().into_iter();
        let result = match (results.next(), results.next(), results.next()) {
            (Some(Ok(Value::Int(now))), Some(Ok(Value::Bytes(state))), Some(Ok(Value::Bool(true)))) => {
                let breaks = self.breaks();
                self.went_back(line, frame, Saved { frame: now as u32, state, keys: None, breaks });
                Some(Ok(Value::Int(frame.into())))
            }
            (_, _, Some(Ok(_))) => {
                Some(Err(OpError::failed(format!("mGBA could not load the state of frame {frame}"))))
            }
            (first, second, third) => [third, second, first].into_iter().flatten().find(Result::is_err),
        };
        if !matches!(result, Some(Ok(_))) {
            self.progress.lock().went_to = None;
        }
        if let Some(result) = result {
            outcome.results.insert(index.min(outcome.results.len()), result);
        }
    }

    /// The emulator went back to a frame. `end` is the state that it left.
    fn went_back(&self, line: u32, frame: u32, end: Saved) {
        let (beginning, went_to) = {
            let progress = self.progress.lock();
            (progress.beginning, progress.went_to)
        };
        // While a user looks for a frame, the frames that it leaves are not kept as a line.
        if !matches!(beginning, Some(Beginning::Rewind { .. })) {
            let thumbnail = thumbnail(&end.state);
            self.add(end, thumbnail);
        }
        let progress = &mut *self.progress.lock();
        progress.went_to = went_to;
        progress.breaks += 1;
        self.history.set_current(line);
        if self.history.is_end(line, frame) {
            // The emulator is back at the end of the line, which continues.
            (progress.beginning, progress.kept, progress.keys) = (None, Some(frame), None);
        } else {
            progress.beginning = Some(Beginning::Rewind { line, frame });
        }
    }
}

/// Keeps states of the emulator while it runs.
pub(super) async fn keep(link: Arc<Link>, shared: Arc<AttachedState>) {
    if !shared.keeper.history.is_on() {
        return;
    }
    loop {
        sleep(SPACING).await;
        if !shared.keeper.is_asked() {
            continue;
        }
        let status = link.status();
        // mGBA-http's script sends no events, so it does not report that a state was loaded.
        let has_events = matches!(status.script, Some(Script::Framewire(_)));
        if !has_events || !is_ready(&link) || !shared.knows_game() || shared.keeper.has(status.frame) {
            continue;
        }
        let Some(saved) = ask_for_state(&link, &shared).await else { continue };
        let thumbnail = thumbnail(&saved.state);
        shared.keeper.add(saved, thumbnail);
    }
}

async fn ask_for_state(link: &Link, shared: &Arc<AttachedState>) -> Option<Saved> {
    let (done, result) = oneshot::channel();
    let batch = Batch::new(vec![Op::SaveState { flags: FLAGS }, Op::GetKeys {}]);
    let keeper = shared.keeper.clone();
    // Replies and events come in order.
    let respond = move |result: Result<Outcome, LinkError>| {
        let _ = done.send(result.map(|outcome| (outcome, keeper.breaks())));
    };
    link.submit(batch, Instant::now() + PATIENCE, Box::new(respond));
    let (outcome, breaks) = result.await.ok()?.ok()?;
    let mut results = outcome.results.into_iter();
    let Some(Ok(Value::Bytes(state))) = results.next() else { return None };
    let keys = match results.next() {
        Some(Ok(Value::Int(keys))) => Some(keys as u16),
        _ => None,
    };
    Some(Saved { frame: outcome.frame, state, keys, breaks })
}

/// The picture of a state, made smaller.
fn thumbnail(state: &[u8]) -> Option<Thumbnail> {
    let picture = png::decode(state).ok()?;
    let rows: Vec<&[u8]> = picture.rgb.chunks_exact(picture.width as usize * 3).collect();
    Some(Thumbnail::of(picture.width as usize, &rows, 3))
}
