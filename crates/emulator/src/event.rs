use tokio::sync::broadcast;

/// Events kept for a receiver that is slow to take them; the oldest are lost first.
const KEPT: usize = 1024;

/// Something that happened in an emulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The emulator's frame counter then, as far as it is known.
    pub frame: u32,
    /// What it was.
    pub what: Happening,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// The console was reset by an operation, or by anyone in an attached mGBA.
    Reset,
    /// A state was loaded: by an operation, or by anyone if the frame counter shows it.
    State,
    /// There is another game now, by its title, code or checksum.
    Game {
        /// Its title, if it has one.
        title: Option<String>,
        /// Its code, if it has one.
        code: Option<String>,
        /// The CRC-32 of its ROM, if it is known.
        checksum: Option<u32>,
    },
    /// The emulator can be reached from now on.
    Connected,
    /// Events were lost while the connection was gone.
    Missed {
        /// How many; `None` where that cannot be known, as the script was loaded again.
        count: Option<u32>,
    },
    /// The connection is gone; it is being made again.
    Disconnected {
        /// Why.
        problem: String,
    },
    /// The emulator does not answer: paused in its own window, without a ROM, or hung.
    Stalled,
    /// Frames go by again.
    Running,
    /// Frames were stopped by request.
    Paused,
    /// A timeline of keys is over.
    TimelineOver {
        /// Its number.
        id: u32,
        /// Whether it was cancelled before its last step.
        cancelled: bool,
    },
    /// What the game saves cannot be written to its save file, or can again.
    Save {
        /// Why it cannot.
        problem: Option<String>,
    },
    /// Lockstep ended by itself, because nobody had asked anything for its time-out.
    LockstepOver,
}

/// Where an emulator tells its events.
#[derive(Debug, Clone)]
pub(crate) struct Teller(broadcast::Sender<Event>);

impl Teller {
    pub fn new() -> Teller {
        Teller(broadcast::Sender::new(KEPT))
    }

    /// Tells whoever listens; never waits.
    pub fn tell(&self, frame: u32, what: Happening) {
        let _ = self.0.send(Event { frame, what });
    }

    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}
