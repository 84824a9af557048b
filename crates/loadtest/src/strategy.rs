//! The strategies for using connections.

use std::fmt;
use std::str::FromStr;

/// When connections are opened, shared and closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// One connection for all clients, one message at a time.
    Single,
    /// A new connection for each message, closed after it.
    PerRequest,
    /// Idle connections are kept and used again. There are as many connections as are needed at the same time.
    Pool,
    /// A pool that also retries failed messages, with a wait before each retry. Only for messages that may be repeated.
    PoolRetry,
    /// A pool that keeps a connection even after it has broken, and then tries to connect the same socket again.
    PoolKeepBroken,
    /// One connection, many messages in flight.
    Mux,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Strategy; 6] = [
        Strategy::Single,
        Strategy::PerRequest,
        Strategy::Pool,
        Strategy::PoolRetry,
        Strategy::PoolKeepBroken,
        Strategy::Mux,
    ];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Single => "single",
            Strategy::PerRequest => "per-request",
            Strategy::Pool => "pool",
            Strategy::PoolRetry => "pool-retry",
            Strategy::PoolKeepBroken => "pool-keep-broken",
            Strategy::Mux => "mux",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a text that is not the name of a strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a strategy; use single, per-request, pool, pool-retry, pool-keep-broken or mux")]
pub struct StrategyError(String);

impl FromStr for Strategy {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        let found = Strategy::ALL.into_iter().find(|strategy| strategy.name() == text);
        found.ok_or_else(|| StrategyError(text.to_owned()))
    }
}
