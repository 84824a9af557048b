use std::time::Duration;

use framewire_protocol::DEFAULT_PORT;

/// How a link behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the script listens, as `HOST:PORT`.
    pub address: String,
    /// Most requests that are open at once; the next one is refused.
    pub capacity: usize,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// First delay before another try to connect; each failure doubles it.
    pub first_retry: Duration,
    /// Longest delay before another try to connect.
    pub last_retry: Duration,
    /// How long requests wait for a connection that broke to stand again, before they are told that it is gone.
    pub grace: Duration,
    /// Time between two pings.
    pub heartbeat: Duration,
    /// An emulator that answers nothing for so long counts as stalled.
    pub stalled_after: Duration,
    /// A machine at the other end that answers no keepalive probe for so long counts as gone. A paused mGBA's answers.
    /// Probes are sent while nothing is under way; what is under way the system repeats for as long as it is set up to,
    /// while the emulator counts as stalled.
    pub gone_after: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            address: format!("127.0.0.1:{DEFAULT_PORT}"),
            capacity: 4096,
            connect_timeout: Duration::from_secs(2),
            first_retry: Duration::from_millis(50),
            last_retry: Duration::from_millis(500),
            grace: Duration::from_secs(1),
            heartbeat: Duration::from_millis(250),
            stalled_after: Duration::from_secs(1),
            gone_after: Duration::from_secs(10),
        }
    }
}
