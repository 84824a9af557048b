//! The watches of an attached emulator, which continue after a reconnection. The script keeps a watch only until its
//! connection ends. So after a reconnection, the watches are started again, and an event marks the gap.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use framewire_link::{Link, LinkError};
use framewire_protocol::event::{self, NewValue};
use framewire_protocol::{MemoryRange, Op};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::event_queue::EventQueue;
use crate::{Change, Discontinuity, Watch, WatchEnd, WatchEvent, WatchRequest};

/// The deadline of the request that ends a watch.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// All watches of an emulator.
#[derive(Default)]
pub(super) struct AttachedWatches {
    last_id: AtomicU32,
    open: Mutex<HashMap<u32, WatchEntry>>,
    /// The watches that the script still has, because the link had no room for the requests that end them.
    unended: Mutex<Vec<u32>>,
    /// Notified when watches may have to be started again, or to be ended in the script.
    pub unfinished: Notify,
    /// The link to the script.
    link: OnceLock<Weak<Link>>,
}

/// A watch, from its creation to its end.
struct WatchEntry {
    queue: Weak<EventQueue>,
    /// The operation that starts the watch.
    op: Op,
    /// Whether the watch reports keys and discontinuities, and therefore continues in another game.
    keys: bool,
    ranges: Vec<MemoryRange>,
    /// The last reported state; `None` until the watch has started.
    known: Option<WatchState>,
    /// Whether the watch has to be started again, because it was started over an earlier connection.
    forgotten: bool,
}

/// The state of a watch at its last report.
struct WatchState {
    /// The last known bytes of each range.
    bytes: Vec<Vec<u8>>,
    /// The last reported keys, if the watch reports keys.
    keys: Option<u16>,
    /// The frame of the last report.
    frame: u32,
    /// The number of frames from the start of the watch to the last report.
    ticks: u64,
    /// The value of `ticks` when the watch was last started in the script. The script counts frames from there.
    since: u64,
}

impl AttachedWatches {
    /// Sets the link over which the operations that end watches are sent.
    pub fn connect(&self, link: &Arc<Link>) {
        let _ = self.link.set(Arc::downgrade(link));
    }

    /// Creates a watch with a new number.
    pub fn watch(self: &Arc<Self>, request: WatchRequest) -> Watch {
        let id = self.last_id.fetch_add(1, Relaxed).wrapping_add(1);
        let queue = EventQueue::new();
        let watches = Arc::downgrade(self);
        let ended = move || {
            if let Some(watches) = watches.upgrade() {
                watches.end(id);
            }
        };
        let watch = Watch::new(id, &request, queue.clone(), Box::new(ended));
        let queue = Arc::downgrade(&queue);
        let WatchRequest { ranges, keys, .. } = request;
        let entry = WatchEntry { queue, op: watch.op(), keys, ranges, known: None, forgotten: false };
        self.open.lock().insert(id, entry);
        watch
    }

    /// Called when the script has started a watch. `frame` is the current frame, and `base` the bytes of all ranges. If
    /// the watch had already run before a reconnection, an event reports what has changed since its last report.
    pub fn begun(self: &Arc<Self>, id: u32, frame: u32, base: &[u8]) {
        let open = &mut *self.open.lock();
        let Some(entry) = open.get_mut(&id) else { return self.send_end(id) };
        let Some(bytes) = split(base, &entry.ranges) else { return };
        let mut known = WatchState { bytes, keys: None, frame, ticks: 0, since: 0 };
        if let Some(before) = entry.known.take()
            && entry.forgotten
        {
            known.ticks = before.ticks + u64::from(frame.saturating_sub(before.frame));
            known.since = known.ticks;
            let pairs = before.bytes.into_iter().zip(&known.bytes).enumerate();
            let changes = pairs
                .filter(|(_, (old, new))| old != *new)
                .map(|(range, (old, new))| Change { range, old, new: new.clone() })
                .collect();
            let event = WatchEvent { frame, ticks: known.ticks, changes, gap: true, ..WatchEvent::default() };
            entry.put(event);
        }
        entry.forgotten = false;
        entry.known = Some(known);
    }

    /// Called when the script reports changes of a watch, `ticks` frames after it started the watch.
    pub fn changed(self: &Arc<Self>, id: u32, frame: u32, ticks: u32, values: Vec<NewValue>) {
        let open = &mut *self.open.lock();
        let Some(entry) = open.get_mut(&id) else { return };
        if entry.forgotten {
            return;
        }
        let Some(known) = &mut entry.known else { return };
        known.frame = frame;
        known.ticks = known.since + u64::from(ticks);
        let mut changes = Vec::with_capacity(values.len());
        let mut discontinuity = None;
        for NewValue { range, bytes } in values {
            if range == event::KEYS {
                known.keys = bytes.try_into().ok().map(u16::from_le_bytes);
            } else if range == event::DISCONTINUITY {
                discontinuity = bytes.first().and_then(|why| discontinuity_of(*why));
            } else if let Some(held) = known.bytes.get_mut(usize::from(range))
                && held.len() == bytes.len()
            {
                let old = std::mem::replace(held, bytes.clone());
                changes.push(Change { range: range.into(), old, new: bytes });
            }
        }
        let (ticks, keys) = (known.ticks, known.keys);
        if discontinuity == Some(Discontinuity::Game) && !entry.keys {
            close(open, id, WatchEnd::OtherGame);
            return self.send_end(id);
        }
        if discontinuity.is_some() {
            // The script reports the discontinuity together with the first frame after it. Here, the discontinuity is
            // an event before that frame.
            let ticks = ticks.saturating_sub(1);
            entry.put(WatchEvent { frame, ticks, discontinuity, ..WatchEvent::default() });
        }
        entry.put(WatchEvent { frame, ticks, changes, keys, ..WatchEvent::default() });
    }

    /// Marks all watches that have started as forgotten. Called after a reconnection.
    pub fn forget(&self) {
        for entry in self.open.lock().values_mut() {
            entry.forgotten = entry.known.is_some();
        }
        self.unfinished.notify_one();
    }

    /// A watch that has to be started again, and the operation that starts it.
    pub fn next_forgotten(&self) -> Option<(u32, Op)> {
        let open = self.open.lock();
        open.iter().find(|(_, entry)| entry.forgotten).map(|(id, entry)| (*id, entry.op.clone()))
    }

    /// Closes a watch if it could not be started again, for example because the loaded game does not have its memory.
    pub fn give_up(&self, id: u32) {
        let open = &mut *self.open.lock();
        if open.get(&id).is_some_and(|entry| entry.forgotten) {
            close(open, id, WatchEnd::OtherGame);
        }
    }

    /// Called when another game is loaded. Closes the watches that still have to be started again after a reconnection,
    /// except those that report keys.
    pub fn note_other_game(&self) {
        let open = &mut *self.open.lock();
        let of_other_game = open.iter().filter(|(_, entry)| entry.forgotten && !entry.keys);
        for id in of_other_game.map(|(id, _)| *id).collect::<Vec<_>>() {
            close(open, id, WatchEnd::OtherGame);
        }
    }

    /// Whether a watch that reports keys is open. Only recordings and replays have such watches.
    pub fn has_recording_or_replay(&self) -> bool {
        self.open.lock().values().any(|entry| entry.keys && entry.queue.strong_count() > 0)
    }

    /// Ends a watch whose handle was dropped. The script may have the watch even if `known` is still `None`: the
    /// script's reply to the operation that starts the watch may have come too late.
    fn end(self: &Arc<Self>, id: u32) {
        let entry = self.open.lock().remove(&id);
        if entry.is_some() {
            self.send_end(id);
        }
    }

    /// Ends a watch in the script, which would otherwise keep the watch until the connection ends. Tries again as long
    /// as the emulator does not answer, for example because it is paused. If the link has no room for the request,
    /// tries again later.
    pub fn send_end(self: &Arc<Self>, id: u32) {
        let Some(link) = self.link.get().and_then(Weak::upgrade) else { return };
        let watches = Arc::downgrade(self);
        let respond = move |result| {
            let Some(watches) = watches.upgrade() else { return };
            match result {
                Err(LinkError::Stalled { .. } | LinkError::Late { .. }) => watches.send_end(id),
                Err(LinkError::Busy(_)) => {
                    watches.unended.lock().push(id);
                    watches.unfinished.notify_one();
                }
                _ => {}
            }
        };
        link.submit(Op::Unwatch { id }.into(), Instant::now() + END_TIMEOUT, Box::new(respond));
    }

    /// Takes the watches that still have to be ended in the script.
    pub fn take_unended(&self) -> Vec<u32> {
        std::mem::take(&mut *self.unended.lock())
    }

    /// Closes all watches, because the emulator is gone.
    pub fn close(&self) {
        for queue in self.open.lock().drain().filter_map(|(_, entry)| entry.queue.upgrade()) {
            queue.close(WatchEnd::EmulatorGone);
        }
    }
}

impl WatchEntry {
    fn put(&self, event: WatchEvent) {
        if let Some(queue) = self.queue.upgrade() {
            queue.put(event);
        }
    }
}

fn close(open: &mut HashMap<u32, WatchEntry>, id: u32, end: WatchEnd) {
    if let Some(queue) = open.remove(&id).and_then(|entry| entry.queue.upgrade()) {
        queue.close(end);
    }
}

fn discontinuity_of(why: u8) -> Option<Discontinuity> {
    match why {
        event::discontinuity::RESET => Some(Discontinuity::Reset),
        event::discontinuity::STATE => Some(Discontinuity::State),
        event::discontinuity::GAME => Some(Discontinuity::Game),
        _ => None,
    }
}

/// Splits the bytes of all ranges into the bytes of each range. Returns `None` if the length does not match.
fn split(mut bytes: &[u8], ranges: &[MemoryRange]) -> Option<Vec<Vec<u8>>> {
    let parts = ranges.iter().map(|range| Some(bytes.split_off(..usize::from(range.length))?.to_vec()));
    let parts = parts.collect::<Option<_>>()?;
    if bytes.is_empty() { Some(parts) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Framewire's script never reports a discontinuity with 0 ticks, but another program might.
    #[tokio::test]
    async fn a_reset_before_the_first_frame_of_a_watch_does_not_overflow() {
        let watches = Arc::<AttachedWatches>::default();
        let mut watch = watches.watch(WatchRequest { keys: true, ..WatchRequest::default() });
        let Op::Watch { id, .. } = watch.op() else { panic!("another operation") };
        watches.begun(id, 5, &[]);
        let value = NewValue { range: event::DISCONTINUITY, bytes: vec![event::discontinuity::RESET] };
        watches.changed(id, 5, 0, vec![value]);
        let event = watch.next().await.expect("an event");
        assert_eq!((event.ticks, event.discontinuity), (0, Some(Discontinuity::Reset)));
    }
}
