/// Where a link stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// The first try to connect is under way.
    #[default]
    Connecting,
    /// The last try to connect failed; more follow.
    Absent,
    /// Connected; the script did not welcome us yet.
    Greeting,
    /// Requests are answered.
    Ready,
}

/// The script at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// Framewire's, of this version.
    Framewire(String),
    /// mGBA-http's: text only, one request at a time.
    MgbaHttp,
}

/// How a link is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    /// Where it stands.
    pub phase: Phase,
    /// Connected, but nothing was heard for a while.
    pub stalled: bool,
    /// The script, once it has answered.
    pub script: Option<Script>,
    /// The emulator's frame counter when it was last heard.
    pub frame: u32,
    /// Frames a second between the last answers.
    pub frames_per_second: f64,
    /// Why there is no connection.
    pub problem: Option<String>,
}
