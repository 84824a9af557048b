use std::fmt;
use std::sync::Arc;

pub use framewire_protocol::MemoryRange;
use framewire_protocol::{Op, watch};

use crate::feed::Feed;

/// What to watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchRequest {
    /// The memory whose changes are told: at most 256 ranges of at most 4,096 bytes.
    pub ranges: Vec<MemoryRange>,
    /// Frames from one event to the next even if nothing changes; 0 for none of those.
    pub every: u32,
    /// Whether the keys held in each frame are told, and what breaks the order of frames: see [`Discontinuity`].
    pub keys: bool,
    /// Whether the events of `every` tell hashes of the picture and of the work RAM. Embedded cores only. With keys, there are
    /// events without a hash too, so that one comes at least every 30 frames.
    pub hashes: bool,
    /// Whether the console's clock advances with the frames as long as this runs. Embedded cores only.
    pub clock: bool,
}

/// Memory that is watched, from the batch that carries its operation until this is dropped.
pub struct Watch {
    op: Op,
    feed: Arc<Feed>,
    _end: End,
}

/// Called when the watch is dropped.
type Ended = Box<dyn Fn() + Send + Sync>;

struct End(Ended);

impl Drop for End {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Watch {
    /// A watch of this number, whose events come by `feed`.
    pub(crate) fn new(id: u32, request: &WatchRequest, feed: Arc<Feed>, ended: Ended) -> Watch {
        let mut flags = 0;
        if request.keys {
            flags |= watch::FLAG_KEYS;
        }
        if request.hashes {
            flags |= watch::FLAG_HASHES;
        }
        if request.clock {
            flags |= watch::FLAG_CLOCK;
        }
        let op = Op::Watch { id, every: request.every, flags, ranges: watch::encode(&request.ranges) };
        Watch { op, feed, _end: End(ended) }
    }

    /// The operation that begins it. Its result is what the ranges hold then, joined: the base of the first change.
    pub fn op(&self) -> Op {
        self.op.clone()
    }

    /// The next event; `None` when the emulator is gone for good. A call that is given up loses no event.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        self.feed.next().await
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("op", &self.op).finish_non_exhaustive()
    }
}

/// News of what is watched, as it was right behind a frame, before anything else changed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchEvent {
    /// The emulator's frame counter behind that frame.
    pub frame: u32,
    /// Frames since the watch began. Over a reconnection, as far as the frame counter tells.
    pub ticks: u64,
    /// What changed since the event before.
    pub changes: Vec<Change>,
    /// The keys held in that frame, if they are told.
    pub keys: Option<u16>,
    /// CRC32 of the picture's pixels, three bytes each, in events of `every`.
    pub hash: Option<u32>,
    /// CRC32 of the work RAM, as [`work_ram`](crate::work_ram) has it, in events of `every`.
    pub memory: Option<u32>,
    /// The next frame does not follow from those before. Such an event has nothing else; its `ticks` are the frames up to
    /// there. Comes with keys.
    pub discontinuity: Option<Discontinuity>,
    /// Not everything since the event before was seen: the connection was gone for a while.
    pub gap: bool,
    /// Events before this one that were dropped because nobody took them.
    pub missed: u64,
}

impl WatchEvent {
    /// Bytes of its changes.
    pub(crate) fn bytes(&self) -> usize {
        self.changes.iter().map(|change| change.old.len() + change.new.len()).sum()
    }
}

/// Why a frame does not follow from the frame before it and its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discontinuity {
    /// The console was reset.
    Reset,
    /// A state was loaded.
    State,
    /// Another game was loaded.
    Game,
}

/// A range that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Number of the range in its request.
    pub range: usize,
    /// What it held when it was last told, whole.
    pub old: Vec<u8>,
    /// What it holds now, whole.
    pub new: Vec<u8>,
}
