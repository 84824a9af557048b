//! A script that sends messages back, and ways to use sockets for that.
//!
//! - [`ScriptTarget`]: the address of the script, the [`Dialect`], and the strategy;
//! - [`ScriptSession`]: the connections of one run;
//! - `connection`: one connection, one message at a time; `pipeline`: one connection, many messages in flight.
//!
//! `mux` in binary frames is [`framewire_link::Link`] itself, so a measurement shows what users get. The other strategies
//! are what people write first.

mod connection;
mod dialect;
mod pipeline;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use framewire_loadtest::{Check, Failure, Retries, Strategy, Target};

pub use dialect::Dialect;
pub use session::ScriptSession;

/// How a strategy waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one try may take, connecting included.
    pub timeout: Duration,
    /// When [`Strategy::PoolRetry`] tries a message again.
    pub retries: Retries,
    /// Whether the system may hold back small packets.
    pub nagle: bool,
    /// Which answers are right.
    pub check: Check,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(10),
            retries: Retries::default(),
            nagle: false,
            check: Check::Echo,
        }
    }
}

/// A script that sends messages back.
#[derive(Debug, Clone)]
pub struct ScriptTarget {
    address: String,
    strategy: Strategy,
    dialect: Dialect,
    options: Options,
}

impl ScriptTarget {
    /// At `address`, as `HOST:PORT`.
    pub fn new(address: String, strategy: Strategy, dialect: Dialect, options: Options) -> Self {
        ScriptTarget { address, strategy, dialect, options }
    }

    /// When connections are opened, shared and closed.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Whether it must be Framewire's script.
    pub fn is_ours(&self) -> bool {
        self.dialect == Dialect::Binary || self.dialect == Dialect::marker()
    }

    /// The time that a message may take with all its tries, when each may take `timeout`.
    pub fn longest(&self, timeout: Duration) -> Duration {
        match self.strategy {
            Strategy::PoolRetry => self.options.retries.longest(timeout),
            _ => timeout,
        }
    }

    /// Which answers are right.
    pub fn check(&self) -> &Check {
        &self.options.check
    }

    /// Where it is.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Target for ScriptTarget {
    type Session = ScriptSession;

    fn session(&self) -> ScriptSession {
        ScriptSession::new(self.clone())
    }
}

/// The script closed the connection before it answered.
fn closed() -> Failure {
    Failure::Reset
}

/// The script answered with an error.
fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Other(format!("the script answered with an error: {error}"))
}

/// An answer that cannot be understood.
fn malformed(answer: impl std::fmt::Display) -> Failure {
    Failure::Other(format!("the script answered with something else: {answer}"))
}
