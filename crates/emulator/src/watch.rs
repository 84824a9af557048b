use std::fmt;
use std::sync::Arc;

pub use framewire_protocol::MemoryRange;
use framewire_protocol::{Op, watch};

use crate::event_queue::EventQueue;

/// What to watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchRequest {
    /// The memory whose changes are reported: at most 256 ranges of at most 4,096 bytes each, and 65,536 bytes in
    /// total.
    pub ranges: Vec<MemoryRange>,
    /// The interval, in frames, of the *regular events*, which are sent even if nothing has changed; 0 for none.
    pub every: u32,
    /// Whether to report the keys held in each frame, and each [`Discontinuity`].
    pub keys: bool,
    /// Whether the regular events contain hashes of the picture and of the work RAM. If so, `every` must not be 0.
    /// Embedded cores only. If `keys` is set too, events without hashes are added, so that there is an event at least
    /// every 30 frames.
    pub hashes: bool,
    /// Whether the console's clock advances with the frames while the watch runs. Embedded cores only.
    pub clock: bool,
}

/// A watch of memory. It starts when its operation ([`op`](Self::op)) is performed, and ends when this handle is
/// dropped.
pub struct Watch {
    op: Op,
    queue: Arc<EventQueue>,
    on_drop: OnDrop,
}

/// Called when the watch is dropped.
type OnDrop = Box<dyn Fn() + Send + Sync>;

impl Drop for Watch {
    fn drop(&mut self) {
        (self.on_drop)();
    }
}

impl Watch {
    /// A watch with this number, whose events arrive in `queue`.
    pub(crate) fn new(id: u32, request: &WatchRequest, queue: Arc<EventQueue>, on_drop: OnDrop) -> Watch {
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
        Watch { op, queue, on_drop }
    }

    /// The operation that starts the watch. Its result is the bytes of all ranges, one after another. The first event
    /// reports what has changed since then.
    pub fn op(&self) -> Op {
        self.op.clone()
    }

    /// Waits for the next event. Returns `None` after the last one. If this future is cancelled, no event is lost.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        self.queue.next().await
    }

    /// Why the watch has ended; `None` while it runs. After the end, [`next`](Self::next) still returns the remaining
    /// events.
    pub fn end(&self) -> Option<WatchEnd> {
        self.queue.end()
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
    /// The emulator has ended.
    EmulatorGone,
    /// Another game was loaded, in which the same addresses have another meaning. A watch that reports keys does not
    /// end, but reports a [`Discontinuity`].
    OtherGame,
}

/// What a watch reports: the state directly after a frame, before a request, a script or a timeline changes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchEvent {
    /// The emulator's frame counter after that frame.
    pub frame: u32,
    /// The number of frames since the watch started. Frames that ran without a connection are counted with the
    /// emulator's frame counter.
    pub ticks: u64,
    /// The ranges that have changed since the previous event.
    pub changes: Vec<Change>,
    /// The keys held in that frame, if the watch reports keys.
    pub keys: Option<u16>,
    /// The CRC-32 of the picture's pixels (three bytes per pixel), in regular events with hashes.
    pub hash: Option<u32>,
    /// The CRC-32 of the work RAM as [`work_ram`](crate::work_ram) defines it, in regular events with hashes.
    pub memory: Option<u32>,
    /// Set if the next frame does not follow from the earlier ones, for example after a reset. Such an event reports
    /// nothing else; its `ticks` count the frames before the discontinuity. Only watches that report keys have such
    /// events.
    pub discontinuity: Option<Discontinuity>,
    /// Whether changes since the previous event may be missing, because there was no connection for a while.
    pub gap: bool,
    /// The number of events before this one that were dropped because the reader did not take them in time.
    pub missed: u64,
}

impl WatchEvent {
    /// The size of the changes in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.changes.iter().map(|change| change.old.len() + change.new.len()).sum()
    }

    /// Adds the changes of the event before this one, which the reader will not get.
    pub(crate) fn add_earlier(&mut self, changes: Vec<Change>) {
        for change in changes {
            match self.changes.iter_mut().find(|later| later.range == change.range) {
                Some(later) => later.old = change.old,
                None => self.changes.push(change),
            }
        }
        self.changes.sort_by_key(|change| change.range);
    }
}

/// Why a frame does not follow from the frame before it and the keys held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discontinuity {
    /// The console was reset.
    Reset,
    /// A state was loaded.
    State,
    /// Another game was loaded, or the same game again.
    Game,
}

/// A range that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The index of the range in the request, from 0.
    pub range: usize,
    /// All bytes of the range before the change.
    pub old: Vec<u8>,
    /// All bytes of the range now.
    pub new: Vec<u8>,
}

/// A part of a console's work RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkRam {
    /// The memory domain of this part; `None` for the bus.
    pub domain: Option<&'static str>,
    /// The address of the first byte in the domain or on the bus.
    pub address: u32,
    /// The number of bytes.
    pub length: u32,
}

/// The parts of a console's work RAM that hashes cover. `console` is mGBA's number for the console. For the Game Boy
/// Advance (0), the parts are its two work RAMs. For the Game Boy (1), they are the work RAM and the high RAM, as the
/// bus shows them.
pub fn work_ram(console: u8) -> [WorkRam; 2] {
    let domain = |name, length| WorkRam { domain: Some(name), address: 0, length };
    let bus = |address, length| WorkRam { domain: None, address, length };
    match console {
        0 => [domain("wram", 0x40000), domain("iwram", 0x8000)],
        _ => [bus(0xC000, 0x2000), bus(0xFF80, 0x7F)],
    }
}
