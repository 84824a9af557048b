use tokio::sync::broadcast;

/// The largest number of events that are kept for a slow receiver. Beyond that, the oldest are dropped.
const KEPT: usize = 1024;

/// Something that happened in an emulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The last known frame counter of the emulator.
    pub frame: u32,
    /// What happened.
    pub kind: EventKind,
}

/// What happened in an emulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// The console was reset, by an operation or in another way, such as mGBA's menu.
    Reset,
    /// A state was loaded, by an operation or in another way. Other ways are noticed only if the frame counter changes.
    State,
    /// Another game is loaded: the title, code or checksum has changed.
    Game {
        /// The game's title, if it has one.
        title: Option<String>,
        /// The game's code, if it has one.
        code: Option<String>,
        /// The CRC-32 of the ROM, if it is known.
        checksum: Option<u32>,
    },
    /// The emulator is connected.
    Connected,
    /// Events were lost while there was no connection.
    Missed {
        /// The number of lost events; `None` if the script was loaded again, because then the number is not known.
        count: Option<u32>,
    },
    /// The connection broke. Framewire connects again.
    Disconnected {
        /// Why the connection broke.
        problem: String,
    },
    /// The emulator does not answer: it is paused in its own window, has no ROM, or hangs.
    Stalled,
    /// Frames run again.
    Running,
    /// Frames were stopped by request.
    Paused,
    /// A timeline (a plan of key presses) has ended.
    TimelineOver {
        /// The timeline's number.
        id: u32,
        /// Whether the timeline was cancelled before its last step.
        cancelled: bool,
    },
    /// The game's save cannot be written to its file, or can be written again.
    Save {
        /// Why the save cannot be written; `None` if it can be written again.
        problem: Option<String>,
    },
    /// The cartridge's motor has begun to rumble, or has stopped. Embedded cores only.
    Rumble {
        /// Whether the motor rumbled in this frame.
        on: bool,
    },
    /// Lockstep ended by itself, for example because no request came before its time-out.
    LockstepOver,
}

/// Sends the events of an emulator to all receivers.
#[derive(Debug, Clone)]
pub(crate) struct EventSender(broadcast::Sender<Event>);

impl EventSender {
    pub fn new() -> EventSender {
        EventSender(broadcast::Sender::new(KEPT))
    }

    /// Sends an event; never blocks.
    pub fn send(&self, frame: u32, kind: EventKind) {
        let _ = self.0.send(Event { frame, kind });
    }

    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}
