//! The watches of an embedded core.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use framewire_expression::Code;
use framewire_libmgba::Core;
use framewire_protocol::run;
use framewire_protocol::watch::{self, MAX_WATCHED};
use framewire_protocol::{Access, MemoryRange, OpError, Status};
use parking_lot::Mutex;

use super::bounds;
use super::expressions::{self, CoreMemory};
use crate::event_queue::EventQueue;
use crate::{Change, Discontinuity, Watch, WatchEnd, WatchEvent, WatchRequest, WorkRam, work_ram};

/// The largest number of watches at the same time.
const MAX_WATCHES: usize = 1024;
/// The largest number of watched bytes in all watches together. Reading this many bytes takes about a millisecond per
/// frame.
const MAX_BYTES: usize = 4 * MAX_WATCHED;

/// Only the watches of recordings and replays have any of these flags.
pub(super) const OF_RECORDINGS: u8 = watch::FLAG_KEYS | watch::FLAG_HASHES | watch::FLAG_CLOCK;

/// The event queues of all watches. A watch has a queue from its creation until its handle is dropped.
#[derive(Debug, Default)]
pub(super) struct WatchQueues {
    last_id: AtomicU32,
    open: Mutex<HashMap<u32, Weak<EventQueue>>>,
}

impl WatchQueues {
    /// Creates a watch with a new number.
    pub fn watch(self: &Arc<Self>, request: &WatchRequest) -> Watch {
        let id = self.last_id.fetch_add(1, Relaxed).wrapping_add(1);
        let queue = EventQueue::new();
        self.open.lock().insert(id, Arc::downgrade(&queue));
        let queues = Arc::downgrade(self);
        let on_drop = move || {
            if let Some(queues) = queues.upgrade() {
                queues.open.lock().remove(&id);
            }
        };
        Watch::new(id, request, queue, Box::new(on_drop))
    }

    /// Closes all watches, because the core is gone.
    pub fn close(&self) {
        for queue in self.open.lock().drain().filter_map(|(_, queue)| queue.upgrade()) {
            queue.close(WatchEnd::EmulatorGone);
        }
    }
}

/// The watches that have started.
#[derive(Debug)]
pub(super) struct Watches {
    queues: Arc<WatchQueues>,
    active: Vec<ActiveWatch>,
}

#[derive(Debug)]
struct ActiveWatch {
    id: u32,
    queue: Weak<EventQueue>,
    /// The checksum of the game whose memory is watched.
    game: u32,
    ranges: Vec<Range>,
    /// The interval of regular events in frames; 0 for none.
    every: u32,
    /// What to report in addition to memory: a combination of the flags in `framewire_protocol::watch`.
    flags: u8,
    /// The last reported keys.
    keys: Option<u16>,
    /// The number of frames since the watch started.
    ticks: u64,
    /// The value of `ticks` at the last event.
    reported: u64,
}

#[derive(Debug)]
struct Range {
    place: MemoryRange,
    /// The expression whose value is watched; `None` if the range is memory at a fixed address.
    code: Option<Code>,
    /// The bytes of the range when they were last compared.
    known: Vec<u8>,
    /// A buffer of the same size, into which `read` puts the current bytes.
    buffer: Vec<u8>,
}

impl Range {
    /// Reads the range into the buffer. Returns false if the core does not have this memory, for example after a game
    /// for another console was loaded.
    fn read(&mut self, core: &mut Core) -> bool {
        if let Some(code) = &self.code {
            self.buffer = run::encode_values(&[code.value(&mut CoreMemory(core))]);
            return true;
        }
        bounds::read(core, self.place.domain.as_deref(), self.place.address, &mut self.buffer)
    }

    /// Reads the range. Returns the change since the range was last compared, or `None` if there is no change.
    fn compare(&mut self, core: &mut Core, number: usize) -> Option<Change> {
        if !self.read(core) || self.buffer == self.known {
            return None;
        }
        std::mem::swap(&mut self.known, &mut self.buffer);
        Some(Change { range: number, old: self.buffer.clone(), new: self.known.clone() })
    }
}

impl Watches {
    pub fn new(queues: Arc<WatchQueues>) -> Watches {
        Watches { queues, active: Vec::new() }
    }

    /// Starts a watch, and ends an earlier watch with the same number. Returns the bytes of all ranges.
    ///
    /// # Errors
    /// If the watch has no queue for its events, if an argument is not valid, or if there are too many watches or
    /// watched bytes.
    pub fn begin(
        &mut self,
        core: &mut Core,
        id: u32,
        every: u32,
        flags: u8,
        ranges: &[u8],
    ) -> Result<Vec<u8>, OpError> {
        let Some(queue) = self.queues.open.lock().get(&id).cloned() else {
            let message = format!(
                "watch {id} has no receiver for its events; use the routes for watches instead of this operation"
            );
            return Err(OpError::bad_argument(message));
        };
        if flags & !(watch::FLAG_KEYS | watch::FLAG_HASHES | watch::FLAG_CLOCK) != 0 {
            return Err(OpError::bad_argument(format!("flags is {flags}; use 0 to 7")));
        }
        if flags & watch::FLAG_HASHES != 0 && every == 0 {
            return Err(OpError::bad_argument(
                "every is 0, but hashes need a number of frames; use 1 or more",
            ));
        }
        let ranges = watch::decode(ranges)?;
        self.active.retain(|active| active.queue.strong_count() > 0);
        let others = self.active.iter().filter(|active| active.id != id);
        let (count, watched) =
            others.fold((0, 0), |(count, bytes), active| (count + 1, bytes + active.size()));
        let more = watch::total(&ranges);
        if count >= MAX_WATCHES || watched + more > MAX_BYTES {
            let message = if count >= MAX_WATCHES {
                format!("{count} watches are running, which is the limit; end one first")
            } else {
                format!(
                    "the running watches have {watched} bytes and this one {more}; use at most {MAX_BYTES} bytes in total"
                )
            };
            return Err(OpError::new(Status::Busy, message));
        }
        let mut codes = Vec::with_capacity(ranges.len());
        for (number, range) in ranges.iter().enumerate() {
            let place = format!("ranges[{number}]");
            codes.push(match &range.expression {
                Some(expression) => Some(expressions::decode(core, expression, &place)?),
                None => {
                    bounds::check(core, &Access::of_range(range))
                        .map_err(|error| OpError::new(error.status, format!("{place}: {error}")))?;
                    None
                }
            });
        }
        let mut base = Vec::with_capacity(more);
        let mut active = ActiveWatch {
            id,
            queue,
            game: core.crc32(),
            ranges: Vec::new(),
            every,
            flags,
            keys: None,
            ticks: 0,
            reported: 0,
        };
        for (place, code) in ranges.into_iter().zip(codes) {
            let buffer = vec![0; place.length.into()];
            let mut range = Range { place, code, known: Vec::new(), buffer };
            if !range.read(core) {
                return Err(OpError::failed("the core returned no memory"));
            }
            range.known = range.buffer.clone();
            base.extend_from_slice(&range.known);
            active.ranges.push(range);
        }
        self.end(id);
        self.active.push(active);
        Ok(base)
    }

    /// Ends the watch with this number, if there is one.
    pub fn end(&mut self, id: u32) {
        self.active.retain(|active| active.id != id);
    }

    /// Whether a running watch needs a clock that advances with the frames.
    pub fn need_frame_clock(&self) -> bool {
        self.active.iter().any(|active| active.has(watch::FLAG_CLOCK) && active.queue.strong_count() > 0)
    }

    /// Whether a watch of a recording or a replay is running.
    pub fn has_recording_or_replay(&self) -> bool {
        self.active.iter().any(|active| active.has(OF_RECORDINGS) && active.queue.strong_count() > 0)
    }

    /// Whether a watch reports a hash of the next frame's picture.
    pub fn need_picture(&self) -> bool {
        self.active.iter().any(|active| {
            active.has(watch::FLAG_HASHES) && (active.ticks + 1).is_multiple_of(active.every.into())
        })
    }

    /// Reports the changes of the last frame. Ends the watches that were started for another game, except those that
    /// report keys.
    pub fn after_frame(&mut self, core: &mut Core) {
        if self.active.is_empty() {
            return;
        }
        let game = core.crc32();
        self.active.retain_mut(|active| {
            let Some(queue) = active.queue.upgrade() else { return false };
            if active.game != game && !active.has(watch::FLAG_KEYS) {
                queue.close(WatchEnd::OtherGame);
                return false;
            }
            active.report(core, &queue);
            true
        });
    }

    /// Reports a discontinuity to the watches that report keys: the next frame does not follow from the last one.
    pub fn discontinue(&self, frame: u32, discontinuity: Discontinuity) {
        for active in &self.active {
            if active.has(watch::FLAG_KEYS)
                && let Some(queue) = active.queue.upgrade()
            {
                let discontinuity = Some(discontinuity);
                queue.put(WatchEvent { frame, ticks: active.ticks, discontinuity, ..WatchEvent::default() });
            }
        }
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        self.queues.close();
    }
}

impl ActiveWatch {
    /// The number of watched bytes.
    fn size(&self) -> usize {
        self.ranges.iter().map(|range| range.known.len()).sum()
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Sends an event if the last frame changed a range or the keys, or if an event is due. Regular events are due
    /// every `every` frames. For a recording, an event is also due after [`watch::MAX_QUIET`] frames without one.
    fn report(&mut self, core: &mut Core, queue: &EventQueue) {
        self.ticks += 1;
        let ranges = self.ranges.iter_mut().enumerate();
        let changes: Vec<Change> = ranges.filter_map(|(number, range)| range.compare(core, number)).collect();
        let keys = if self.has(watch::FLAG_KEYS) { Some(core.keys()) } else { None };
        let is_regular = self.every > 0 && self.ticks.is_multiple_of(self.every.into());
        let quiet = self.ticks - self.reported >= watch::MAX_QUIET.into();
        let due = is_regular || (quiet && self.has(watch::FLAG_KEYS) && self.has(watch::FLAG_HASHES));
        if changes.is_empty() && keys == self.keys && !due {
            return;
        }
        let (hash, memory) = if is_regular && self.has(watch::FLAG_HASHES) {
            (Some(crc32fast::hash(&core.frame().to_rgb())), hash_of_memory(core))
        } else {
            (None, None)
        };
        self.keys = keys;
        self.reported = self.ticks;
        queue.put(WatchEvent {
            frame: core.frame_counter(),
            ticks: self.ticks,
            changes,
            keys,
            hash,
            memory,
            ..WatchEvent::default()
        });
    }
}

/// The CRC-32 of the console's work RAM; `None` if it cannot be read.
pub fn hash_of_memory(core: &mut Core) -> Option<u32> {
    let mut hash = crc32fast::Hasher::new();
    for WorkRam { domain, address, length } in work_ram(core.platform().number() as u8) {
        if let Some(domain) = domain {
            hash.update(core.domain_bytes(core.domain_index(domain)?)?);
        } else {
            hash.update(&core.read_range(address, length as usize).ok()?);
        }
    }
    Some(hash.finalize())
}
