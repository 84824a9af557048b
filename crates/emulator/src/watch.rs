use std::fmt;
use std::sync::Arc;

pub use framewire_protocol::MemoryRange;
use framewire_protocol::{Op, watch};

use crate::feed::Feed;

/// What to watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchRequest {
    /// The memory whose changes are reported: at most 256 ranges of at most 4,096 bytes.
    pub ranges: Vec<MemoryRange>,
    /// Frames from one event to the next even if nothing changes; 0 for no such events.
    pub every: u32,
    /// Whether to report the keys held in each frame, and each [`Discontinuity`].
    pub keys: bool,
    /// Whether the events of `every` have hashes of the picture and of the work RAM. Embedded cores only. With keys, there
    /// are also events without hashes, so that there is an event at least every 30 frames.
    pub hashes: bool,
    /// Whether the console's clock advances with the frames while the watch runs. Embedded cores only.
    pub clock: bool,
}

/// A watch of memory, from the batch that carries its operation until this handle is dropped.
pub struct Watch {
    op: Op,
    feed: Arc<Feed>,
    _guard: DropGuard,
}

/// Called when the watch is dropped.
type OnDrop = Box<dyn Fn() + Send + Sync>;

struct DropGuard(OnDrop);

impl Drop for DropGuard {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Watch {
    /// A watch with this number, whose events arrive in `feed`.
    pub(crate) fn new(id: u32, request: &WatchRequest, feed: Arc<Feed>, on_drop: OnDrop) -> Watch {
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
        Watch { op, feed, _guard: DropGuard(on_drop) }
    }

    /// The operation that starts the watch. Its result is the joined bytes of the ranges, to which the first change refers.
    pub fn op(&self) -> Op {
        self.op.clone()
    }

    /// The next event; `None` after the last one. Cancelling this future loses no event.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        self.feed.next().await
    }

    /// Why the watch has ended; `None` while it runs. Events that were not taken yet can still be taken.
    pub fn end(&self) -> Option<WatchEnd> {
        self.feed.end()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("op", &self.op).finish_non_exhaustive()
    }
}

/// Why a watch has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEnd {
    /// There is no emulator any more.
    EmulatorGone,
    /// Another game was loaded, where the same addresses mean something else. A watch with keys continues: it reports a
    /// [`Discontinuity`].
    OtherGame,
}

/// What a watch reports: the state right after a frame, before anything else changed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchEvent {
    /// The emulator's frame counter after that frame.
    pub frame: u32,
    /// Frames since the watch started. Frames without a connection are counted by the emulator's frame counter.
    pub ticks: u64,
    /// What changed since the previous event.
    pub changes: Vec<Change>,
    /// The keys held in that frame, if the watch reports keys.
    pub keys: Option<u16>,
    /// CRC32 of the picture's pixels, three bytes each, in events of `every`.
    pub hash: Option<u32>,
    /// CRC32 of the work RAM as [`work_ram`](crate::work_ram) defines it, in events of `every`.
    pub memory: Option<u32>,
    /// Set if the next frame does not follow from the earlier ones. Such an event has nothing else; its `ticks` are the
    /// frames up to there. Only watches with keys have such events.
    pub discontinuity: Option<Discontinuity>,
    /// Whether changes since the previous event may be missing, because there was no connection for a while.
    pub gap: bool,
    /// How many events before this one were dropped because they were not taken in time.
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
    /// All its bytes in the previous report.
    pub old: Vec<u8>,
    /// All its bytes now.
    pub new: Vec<u8>,
}

/// A part of a console's work RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkRam {
    /// The memory domain that it fills; `None` for the bus.
    pub domain: Option<&'static str>,
    /// Its address there.
    pub address: u32,
    /// In bytes.
    pub length: u32,
}

/// The parts of a console's work RAM that hashes cover. For 0, the Game Boy Advance, these are its two work RAMs. For 1, the Game
/// Boy, these are the work RAM and the high RAM that its bus shows.
pub fn work_ram(console: u8) -> [WorkRam; 2] {
    let domain = |name, length| WorkRam { domain: Some(name), address: 0, length };
    let bus = |address, length| WorkRam { domain: None, address, length };
    match console {
        0 => [domain("wram", 0x40000), domain("iwram", 0x8000)],
        _ => [bus(0xC000, 0x2000), bus(0xFF80, 0x7F)],
    }
}
