use tokio::sync::broadcast;

/// Events kept for a slow receiver. The oldest are lost first.
const KEPT: usize = 1024;

/// Something that happened in an emulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The last known frame counter of the emulator.
    pub frame: u32,
    /// What happened.
    pub what: Happening,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// The console was reset by an operation, or by anyone in an attached mGBA.
    Reset,
    /// A state was loaded: by an operation, or by anyone if the frame counter shows it.
    State,
    /// The game changed: its title, code or checksum is another one.
    Game {
        /// Its title, if it has one.
        title: Option<String>,
        /// Its code, if it has one.
        code: Option<String>,
        /// The CRC-32 of its ROM, if it is known.
        checksum: Option<u32>,
    },
    /// The emulator is connected.
    Connected,
    /// Events were lost while there was no connection.
    Missed {
        /// How many; `None` if the script was loaded again, so that the number is not known.
        count: Option<u32>,
    },
    /// The connection broke. Framewire connects again.
    Disconnected {
        /// Why.
        problem: String,
    },
    /// The emulator does not answer: paused in its own window, without a ROM, or hung.
    Stalled,
    /// Frames run again.
    Running,
    /// Frames were stopped by request.
    Paused,
    /// A timeline of keys has ended.
    TimelineOver {
        /// Its number.
        id: u32,
        /// Whether it was cancelled before its last step.
        cancelled: bool,
    },
    /// The game's save cannot be written to its file, or can be written again.
    Save {
        /// Why it cannot be written.
        problem: Option<String>,
    },
    /// The cartridge's motor has begun to rumble, or has stopped. Embedded cores only.
    Rumble {
        /// Whether it rumbled in this frame.
        on: bool,
    },
    /// Lockstep ended because there was no request during its time-out.
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
    pub fn send(&self, frame: u32, what: Happening) {
        let _ = self.0.send(Event { frame, what });
    }

    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}
