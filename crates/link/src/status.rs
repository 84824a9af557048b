use framewire_protocol::EventFrame;

/// The phase of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// The first attempt to connect has not ended, or the connection broke less than [`Config::grace`](crate::Config)
    /// ago.
    #[default]
    Connecting,
    /// The last attempt to connect failed; more follow.
    Absent,
    /// Connected, but the script has not answered the hello yet.
    Greeting,
    /// Requests are answered.
    Ready,
}

/// The script at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// Framewire's script, with its version.
    Framewire(String),
    /// mGBA-http's script. It takes only text, one request at a time.
    MgbaHttp,
}

/// The status of a link.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    /// The phase.
    pub phase: Phase,
    /// Whether the link is connected, but the emulator has not answered for a while.
    pub stalled: bool,
    /// The script that answered last, if one has answered. It stays after the connection has ended.
    pub script: Option<Script>,
    /// The emulator's frame counter when it last answered a heartbeat, or when the connection began; 0 without a
    /// connection.
    pub frame: u32,
    /// Frames per second, measured between recent heartbeats; 0 if this is not known, or the emulator is stalled.
    pub frames_per_second: f64,
    /// Why the last connection or the last attempt to connect ended; `None` in the phase [`Phase::Ready`], and
    /// before any connection or attempt has ended.
    pub problem: Option<String>,
}

/// What a link reports without a request: changes of the connection, and the emulator's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Requests are answered from now on. The script has forgotten all earlier watches.
    Connected,
    /// The connection broke, for this reason. The link connects again.
    Disconnected(String),
    /// Events of the script were lost with the previous connection: how many, or `None` if the number is unknown,
    /// because the script was loaded again or mGBA-http's script has replaced it.
    Missed(Option<u32>),
    /// Connected, but the emulator has not answered for a while.
    Stalled,
    /// The emulator answers again.
    Running,
    /// Events of the script.
    Events(EventFrame),
}

/// The link's task calls this function with the last known frame counter of the emulator and a notice. Events and
/// answers to requests are passed on in the order in which the script sent them. The function must not block.
pub type Listen = Box<dyn FnMut(u32, Notice) + Send>;

impl Notice {
    /// The notice about a change of the status, if there is one.
    pub(crate) fn of_change(before: (Phase, bool), now: &Status) -> Option<Notice> {
        let stalled = now.stalled;
        match (before, now.phase) {
            ((Phase::Ready, before), Phase::Ready) if before != stalled => {
                Some(if stalled { Notice::Stalled } else { Notice::Running })
            }
            ((Phase::Ready, _), Phase::Ready) => None,
            (_, Phase::Ready) => Some(Notice::Connected),
            ((Phase::Ready, _), _) => Some(Notice::Disconnected(now.problem.clone().unwrap_or_default())),
            _ => None,
        }
    }
}
