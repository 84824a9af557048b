//! Keeps states of an attached emulator, and goes back to them.
//!
//! The script saves a state within its frame callback, which delays mGBA's next frame. So states are saved rarely. The
//! keys of the frames between two states are not known. So an attached emulator can go back only to frames whose state
//! was saved. A *line* of the history (`crate::history`) is a series of frames without a gap.

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

/// Time between two states. A test in `tests/tests/e2e/history.rs` measures how much they slow mGBA down.
const SPACING: Duration = Duration::from_secs(1);
/// States are fetched for this long after a client last asked for the history. Otherwise, every attached emulator would
/// send a state each second, even if no client uses its history.
const FETCH_TIME: Duration = Duration::from_secs(10 * 60);
/// The longest time to wait for a state.
const STATE_TIMEOUT: Duration = Duration::from_secs(2);
/// mGBA's state flags: the screenshot, the battery save and the cartridge's clock. With a screenshot, mGBA compresses
/// the state, so a few KiB cross the link instead of about 390.
const FLAGS: u8 = 1 | 2 | 8;
/// The script reports a loaded state within this many frames.
const EVENT_FRAMES: u32 = 3;

/// Adds states of an attached emulator to its history.
#[derive(Debug)]
pub(super) struct StateFetcher {
    pub history: Arc<History>,
    progress: Mutex<FetchProgress>,
}

#[derive(Debug, Default)]
struct FetchProgress {
    /// Why the next state does not follow from the last one that was kept; `None` if it does.
    beginning: Option<Beginning>,
    /// The frame of the last state.
    kept: Option<u32>,
    /// The last keys that were added to the current line.
    keys: Option<u16>,
    /// The frame to which the last `rewind` goes back. It is set before the script performs the `rewind`. `None` after
    /// the `rewind` failed, after a later state was kept, or after the order of frames was broken.
    went_to: Option<u32>,
    /// The number of times that the order of frames was broken, for example by a reset.
    breaks: u64,
    /// When a client last asked for the history.
    asked: Option<Instant>,
}

/// A state as the script sent it.
struct Saved {
    frame: u32,
    state: Vec<u8>,
    keys: Option<u16>,
    /// The value of [`FetchProgress::breaks`] when the state arrived.
    breaks: u64,
}

/// A `rewind` that was replaced with other operations: its index in its batch, and where it goes back to.
#[derive(Debug, Clone, Copy)]
pub(super) struct PreparedRewind {
    pub index: usize,
    line: u32,
    frame: u32,
}

/// The number of operations that replace a `rewind`.
const OPS: usize = 3;

impl FetchProgress {
    /// Whether the history already has the state of this frame: it was kept last, or the emulator has just gone back to
    /// it. In lockstep, the emulator can stay at such a frame for a long time.
    fn has(&self, frame: u32) -> bool {
        match self.beginning {
            None => self.kept == Some(frame),
            Some(Beginning::Rewind { frame: reached, .. }) => reached == frame,
            Some(_) => false,
        }
    }
}

impl StateFetcher {
    /// Creates an empty history that takes at most `budget` bytes of memory. With 0, no states are kept.
    pub fn new(budget: usize) -> StateFetcher {
        let progress = FetchProgress { beginning: Some(Beginning::Game), ..FetchProgress::default() };
        StateFetcher { history: Arc::new(History::new(budget)), progress: Mutex::new(progress) }
    }

    /// Returns the history. From then on, states are fetched until no client has asked for the history for ten minutes.
    pub fn ask(&self) -> Arc<History> {
        self.progress.lock().asked = Some(Instant::now());
        self.history.clone()
    }

    fn is_asked(&self) -> bool {
        self.progress.lock().asked.is_some_and(|asked| asked.elapsed() < FETCH_TIME)
    }

    /// Records that the next frame does not follow from the earlier ones.
    pub fn discontinue(&self, beginning: Beginning) {
        let progress = &mut *self.progress.lock();
        if progress.beginning != Some(Beginning::Game) {
            progress.beginning = Some(beginning);
        }
        progress.went_to = None;
        progress.breaks += 1;
    }

    /// Called when a `rewind` was not performed, or when it is not known whether it was.
    pub fn forget_rewind(&self) {
        self.progress.lock().went_to = None;
    }

    /// Called when the script reports that a state was loaded. If a `rewind` operation loaded the state, this changes
    /// nothing. `frame` is the frame counter in the report. It can be up to [`EVENT_FRAMES`] higher than the state's.
    pub fn note_state(&self, frame: u32) {
        let own = |went_to: u32| (went_to..=went_to.saturating_add(EVENT_FRAMES)).contains(&frame);
        if !self.progress.lock().went_to.is_some_and(own) {
            self.discontinue(Beginning::State);
        }
    }

    /// Removes everything from the history. Called when another game is loaded.
    pub fn clear(&self) {
        let progress = &mut *self.progress.lock();
        self.history.clear();
        (progress.beginning, progress.kept) = (Some(Beginning::Game), None);
        progress.breaks += 1;
    }

    fn breaks(&self) -> u64 {
        self.progress.lock().breaks
    }

    /// Whether the history already has the state of this frame.
    fn has(&self, frame: u32) -> bool {
        self.progress.lock().has(frame)
    }

    fn add(&self, Saved { frame, state, keys, breaks }: Saved) {
        // Decoding the picture takes a while, so this comes before the lock.
        let thumbnail = thumbnail(&state);
        let progress = &mut *self.progress.lock();
        // If the order of frames was broken since the state arrived, it does not belong to the current line.
        if progress.breaks != breaks || progress.has(frame) {
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

    /// Replaces the operation `rewind` of a batch with operations that the script has: they save the current state and
    /// load an earlier one. `index`, `frame` and `line` are those of the first `rewind`; `now` is the emulator's frame
    /// counter.
    ///
    /// # Errors
    /// If the history may take no memory, if the batch contains another `rewind`, or if the frame is not kept.
    pub fn prepare(
        &self,
        batch: &mut Batch,
        (index, frame, line): (usize, u32, u32),
        now: u32,
    ) -> Result<PreparedRewind, OpError> {
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
        Ok(PreparedRewind { index, line: found.line, frame: found.frame })
    }

    /// Replaces the results of the operations that `prepare` put into a batch with the result of `rewind`.
    pub fn finish(&self, to: PreparedRewind, outcome: &mut Outcome) {
        let PreparedRewind { index, line, frame } = to;
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
            // The last error is the reason: if an operation is refused before the batch starts, the operations before
            // it have an error too, which says only that they were not performed.
            (first, second, third) => [third, second, first].into_iter().flatten().find(Result::is_err),
        };
        if !matches!(result, Some(Ok(_))) {
            self.forget_rewind();
        }
        if let Some(result) = result {
            outcome.results.insert(index.min(outcome.results.len()), result);
        }
    }

    /// Called after the emulator went back to a frame. `end` is the state from before it went back.
    fn went_back(&self, line: u32, frame: u32, end: Saved) {
        let beginning = self.progress.lock().beginning;
        // A user who searches for a frame may go back many times in a row. The states in between do not become lines.
        if !matches!(beginning, Some(Beginning::Rewind { .. })) {
            self.add(end);
        }
        let progress = &mut *self.progress.lock();
        // Set this again: `add` clears it, here and when a state arrives after `prepare`.
        progress.went_to = Some(frame);
        progress.breaks += 1;
        if self.history.go_back(line, frame) {
            // The emulator is at the end of the last line again, so the next frames continue that line.
            (progress.beginning, progress.kept, progress.keys) = (None, Some(frame), None);
        } else {
            progress.beginning = Some(Beginning::Rewind { line, frame });
        }
    }
}

/// Fetches a state each second while a client is interested in the history.
pub(super) async fn fetch_states(link: Arc<Link>, shared: Arc<AttachedState>) {
    if !shared.fetcher.history.is_on() {
        return;
    }
    loop {
        sleep(SPACING).await;
        if !shared.fetcher.is_asked() {
            continue;
        }
        let status = link.status();
        // mGBA-http's script sends no events, so it does not report that a state was loaded.
        let has_events = matches!(status.script, Some(Script::Framewire(_)));
        if !has_events || !is_ready(&link) || !shared.knows_game() || shared.fetcher.has(status.frame) {
            continue;
        }
        if let Some(saved) = ask_for_state(&link, &shared).await {
            shared.fetcher.add(saved);
        }
    }
}

async fn ask_for_state(link: &Link, shared: &Arc<AttachedState>) -> Option<Saved> {
    let (done, result) = oneshot::channel();
    let batch = Batch::new(vec![Op::SaveState { flags: FLAGS }, Op::GetKeys {}]);
    let fetcher = shared.fetcher.clone();
    // Read the number of breaks as soon as the reply arrives: replies and events arrive in order, so the number
    // includes every break before the state was saved, and no later one.
    let respond = move |result: Result<Outcome, LinkError>| {
        let _ = done.send(result.map(|outcome| (outcome, fetcher.breaks())));
    };
    link.submit(batch, Instant::now() + STATE_TIMEOUT, Box::new(respond));
    let (outcome, breaks) = result.await.ok()?.ok()?;
    let mut results = outcome.results.into_iter();
    let Some(Ok(Value::Bytes(state))) = results.next() else { return None };
    let keys = match results.next() {
        Some(Ok(Value::Int(keys))) => Some(keys as u16),
        _ => None,
    };
    Some(Saved { frame: outcome.frame, state, keys, breaks })
}

/// A small version of the picture of a state.
fn thumbnail(state: &[u8]) -> Option<Thumbnail> {
    let picture = png::decode(state).ok()?;
    let rows: Vec<&[u8]> = picture.rgb.chunks_exact(picture.width as usize * 3).collect();
    Some(Thumbnail::of(picture.width as usize, &rows, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewind_to_the_highest_frame_is_not_taken_for_the_load_of_another_state() {
        let fetcher = StateFetcher::new(0);
        fetcher.progress.lock().went_to = Some(u32::MAX);
        let breaks = fetcher.breaks();
        fetcher.note_state(u32::MAX);
        assert_eq!(fetcher.breaks(), breaks);
    }
}
