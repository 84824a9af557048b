//! Watched memory of an embedded core.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use framewire_libmgba::Core;
use framewire_protocol::watch::{self, MAX_WATCHED};
use framewire_protocol::{Access, MemoryRange, OpError, Status};
use parking_lot::Mutex;

use super::bounds;
use crate::feed::Feed;
use crate::{Change, Discontinuity, Watch, WatchEvent, WatchRequest, WorkRam, work_ram};

/// Most watches at once.
const MAX_WATCHES: usize = 1024;
/// Most bytes that all of them watch. As many are read behind each frame, which takes about a millisecond.
const MAX_BYTES: usize = 4 * MAX_WATCHED;

/// Where the events of each watch go, from before its operation is done until it is dropped.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    last_id: AtomicU32,
    open: Mutex<HashMap<u32, Weak<Feed>>>,
}

impl Feeds {
    /// A watch with a number of its own.
    pub fn watch(self: &Arc<Self>, request: &WatchRequest) -> Watch {
        let id = self.last_id.fetch_add(1, Relaxed).wrapping_add(1);
        let feed = Feed::new();
        self.open.lock().insert(id, Arc::downgrade(&feed));
        let feeds = Arc::downgrade(self);
        let ended = move || {
            if let Some(feeds) = feeds.upgrade() {
                feeds.open.lock().remove(&id);
            }
        };
        Watch::new(id, request, feed, Box::new(ended))
    }

    fn get(&self, id: u32) -> Option<Weak<Feed>> {
        self.open.lock().get(&id).cloned()
    }

    /// The core is gone: no watch has anything to come.
    pub fn close(&self) {
        for feed in self.open.lock().drain().filter_map(|(_, feed)| feed.upgrade()) {
            feed.close();
        }
    }
}

/// The watches that have begun.
#[derive(Debug)]
pub(super) struct Watches {
    feeds: Arc<Feeds>,
    begun: Vec<Begun>,
}

#[derive(Debug)]
struct Begun {
    id: u32,
    feed: Weak<Feed>,
    ranges: Vec<Range>,
    every: u32,
    /// Whether keys are told, and hashes.
    flags: u8,
    /// The keys told last.
    keys: Option<u16>,
    /// Frames since it began.
    ticks: u64,
    /// Frames from its beginning to its last event.
    reported: u64,
}

#[derive(Debug)]
struct Range {
    place: MemoryRange,
    /// What it held last.
    bytes: Vec<u8>,
    /// Room for what it holds now.
    room: Vec<u8>,
}

impl Range {
    /// Reads the range; false if it is not there any more, because another console is.
    fn read(&mut self, core: &mut Core) -> bool {
        let (address, room) = (self.place.address, &mut self.room[..]);
        let Some(name) = &self.place.domain else {
            let is_there = bounds::bus(core).has(address, self.place.length.into());
            if is_there {
                core.read_into(address, room);
            }
            return is_there;
        };
        let Some(domain) = core.domain_index(name) else { return false };
        let past = u64::from(address) + u64::from(self.place.length);
        past <= u64::from(core.domains()[domain].size) && core.domain_read_into(domain, address, room).is_ok()
    }

    /// What changed since it was read last.
    fn look(&mut self, core: &mut Core, number: usize) -> Option<Change> {
        if !self.read(core) || self.room == self.bytes {
            return None;
        }
        std::mem::swap(&mut self.bytes, &mut self.room);
        Some(Change { range: number, old: self.room.clone(), new: self.bytes.clone() })
    }
}

impl Watches {
    pub fn new(feeds: Arc<Feeds>) -> Watches {
        Watches { feeds, begun: Vec::new() }
    }

    /// Begins a watch that was asked for before, in place of one with its number. Gives what its ranges hold.
    ///
    /// # Errors
    /// If nobody takes its events, a range is none, or there are too many.
    pub fn begin(
        &mut self,
        core: &mut Core,
        id: u32,
        every: u32,
        flags: u8,
        ranges: &[u8],
    ) -> Result<Vec<u8>, OpError> {
        let Some(feed) = self.feeds.get(id) else {
            let message = format!(
                "watch {id} has nowhere to tell its events; subscribe to watches where they are offered"
            );
            return Err(OpError::bad_argument(message));
        };
        if flags & !(watch::FLAG_KEYS | watch::FLAG_HASHES | watch::FLAG_CLOCK) != 0 {
            return Err(OpError::bad_argument(format!("flags: {flags}; 0 to 7 are accepted")));
        }
        if flags & watch::FLAG_HASHES != 0 && every == 0 {
            return Err(OpError::bad_argument(
                "every: hashes are told each so many frames; 1 or more are accepted",
            ));
        }
        let ranges = watch::decode(ranges)?;
        self.begun.retain(|begun| begun.feed.strong_count() > 0);
        let others = self.begun.iter().filter(|begun| begun.id != id);
        let (count, watched) = others.fold((0, 0), |(count, bytes), begun| (count + 1, bytes + begun.size()));
        let more = watch::total(&ranges);
        if count >= MAX_WATCHES || watched + more > MAX_BYTES {
            let message = match count >= MAX_WATCHES {
                true => format!("{count} watches run already, and no more are accepted"),
                false => format!(
                    "the watches that run already take {watched} bytes and this one {more}; {MAX_BYTES} bytes are accepted for \
                     all together"
                ),
            };
            return Err(OpError::new(Status::Busy, message));
        }
        for (number, range) in ranges.iter().enumerate() {
            bounds::check(core, &Access::of_range(range))
                .map_err(|error| OpError::new(error.status, format!("ranges[{number}]: {error}")))?;
        }
        let mut base = Vec::with_capacity(more);
        let mut begun =
            Begun { id, feed, ranges: Vec::new(), every, flags, keys: None, ticks: 0, reported: 0 };
        for place in ranges {
            let room = vec![0; place.length.into()];
            let mut range = Range { place, bytes: Vec::new(), room };
            if !range.read(core) {
                return Err(OpError::failed("the core gave no memory"));
            }
            range.bytes = range.room.clone();
            base.extend_from_slice(&range.bytes);
            begun.ranges.push(range);
        }
        self.end(id);
        self.begun.push(begun);
        Ok(base)
    }

    /// Ends a watch, if there is one of that number.
    pub fn end(&mut self, id: u32) {
        self.begun.retain(|begun| begun.id != id);
    }

    /// Whether one that runs needs a clock that advances with the frames.
    pub fn need_frame_clock(&self) -> bool {
        let need = |begun: &Begun| begun.flags & watch::FLAG_CLOCK != 0 && begun.feed.strong_count() > 0;
        self.begun.iter().any(need)
    }

    /// Tells what changed in the frame that was just run.
    pub fn look(&mut self, core: &mut Core) {
        if self.begun.is_empty() {
            return;
        }
        self.begun.retain_mut(|begun| match begun.feed.upgrade() {
            Some(feed) => {
                begun.look(core, &feed);
                true
            }
            None => false,
        });
    }

    /// Reports to watches with keys that the next frame does not follow from the last.
    pub fn discontinue(&self, frame: u32, discontinuity: Discontinuity) {
        for begun in self.begun.iter().filter(|begun| begun.flags & watch::FLAG_KEYS != 0) {
            if let Some(feed) = begun.feed.upgrade() {
                let discontinuity = Some(discontinuity);
                feed.put(WatchEvent { frame, ticks: begun.ticks, discontinuity, ..WatchEvent::default() });
            }
        }
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        self.feeds.close();
    }
}

impl Begun {
    /// Bytes that it watches.
    fn size(&self) -> usize {
        self.ranges.iter().map(|range| range.bytes.len()).sum()
    }

    fn look(&mut self, core: &mut Core, feed: &Feed) {
        self.ticks += 1;
        let ranges = self.ranges.iter_mut().enumerate();
        let changes: Vec<Change> = ranges.filter_map(|(number, range)| range.look(core, number)).collect();
        let has = |flag| self.flags & flag != 0;
        let keys = has(watch::FLAG_KEYS).then(|| core.keys());
        let beat = self.every > 0 && self.ticks.is_multiple_of(self.every.into());
        let quiet = self.ticks - self.reported >= watch::MAX_QUIET.into();
        let due = beat || (quiet && has(watch::FLAG_KEYS) && has(watch::FLAG_HASHES));
        if changes.is_empty() && keys == self.keys && !due {
            return;
        }
        let hash = beat && has(watch::FLAG_HASHES);
        self.keys = keys;
        self.reported = self.ticks;
        feed.put(WatchEvent {
            frame: core.frame_counter(),
            ticks: self.ticks,
            changes,
            keys,
            hash: hash.then(|| crc32fast::hash(&core.frame().to_rgb())),
            memory: hash.then(|| hash_of_memory(core)).flatten(),
            ..WatchEvent::default()
        });
    }
}

/// The CRC-32 of the console's work RAM.
fn hash_of_memory(core: &mut Core) -> Option<u32> {
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
