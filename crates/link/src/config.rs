use std::time::Duration;

use framewire_protocol::DEFAULT_PORT;

/// The settings of a link.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the script listens, as `HOST:PORT`.
    pub address: String,
    /// The largest number of open requests, at least 1. Further requests are refused.
    pub capacity: usize,
    /// Longest time for an attempt to connect.
    pub connect_timeout: Duration,
    /// First delay before another attempt to connect. Each failure, and each connection that was shorter than this,
    /// doubles the delay. After a longer connection, the link connects again at once.
    pub first_retry: Duration,
    /// Longest delay before another attempt to connect. In addition, each delay varies at random by up to a quarter.
    pub last_retry: Duration,
    /// How long requests that have not been sent yet wait for a broken connection to come back before they fail. The
    /// link checks this only when an attempt to connect fails, so they may wait longer.
    pub grace: Duration,
    /// Time between two pings to Framewire's script.
    pub heartbeat: Duration,
    /// An emulator that does not answer for this long counts as stalled.
    pub stalled_after: Duration,
    /// The connection ends if the other machine answers no TCP keepalive probe for this long. If only mGBA is paused,
    /// its machine still answers. The system sends probes only when all bytes that it sent have been acknowledged.
    /// Otherwise it repeats those bytes for as long as its own settings say; meanwhile the emulator counts as stalled.
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
