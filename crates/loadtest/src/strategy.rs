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
    /// A pool that keeps a connection after it broke, and then tries to connect the same socket again.
    PoolKeepBroken,
    /// One connection, many messages in flight.
    Mux,
}

impl Strategy {
    /// All strategies, with their names on a command line.
    pub const NAMES: [(&str, Strategy); 6] = [
        ("single", Strategy::Single),
        ("per-request", Strategy::PerRequest),
        ("pool", Strategy::Pool),
        ("pool-retry", Strategy::PoolRetry),
        ("pool-keep-broken", Strategy::PoolKeepBroken),
        ("mux", Strategy::Mux),
    ];
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Strategy::NAMES.into_iter().find(|(_, strategy)| strategy == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

/// The error for a text that is not the name of a strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a strategy; use single, per-request, pool, pool-retry, pool-keep-broken or mux")]
pub struct StrategyError(String);

impl FromStr for Strategy {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        let found = Strategy::NAMES.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, strategy)| strategy).ok_or_else(|| StrategyError(text.to_owned()))
    }
}
