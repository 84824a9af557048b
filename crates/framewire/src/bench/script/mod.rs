//! A script as the target of a load test: it sends each message back. Also the strategies for using connections to it.
//!
//! - [`ScriptTarget`]: the address of the script, the [`Dialect`], and the strategy;
//! - [`ScriptSession`]: the connections of one run;
//! - `connection`: one connection, one message at a time; `pipeline`: one connection, many messages in flight.
//!
//! The strategy `mux` with binary frames is [`framewire_link::Link`] itself, so a measurement shows what Framewire's
//! users get. The other strategies are simpler. They show what users of other clients get.

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

/// Options for all strategies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The longest time for one attempt to send a message and get its reply. This includes the time for connecting and,
    /// with [`Strategy::Single`], the time until the connection is free.
    pub timeout: Duration,
    /// The waits before the retries. Only [`Strategy::PoolRetry`] has retries.
    pub retries: Retries,
    /// Whether the system may hold back small packets.
    pub nagle: bool,
    /// Which replies are correct.
    pub check: Check,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            timeout: Duration::from_secs(10),
            retries: Retries::default(),
            nagle: false,
            check: Check::Echo,
        }
    }
}

/// A script that sends messages back, as a target.
#[derive(Debug, Clone)]
pub struct ScriptTarget {
    /// The script's address.
    pub address: String,
    /// When connections are opened, shared and closed.
    pub strategy: Strategy,
    dialect: Dialect,
    /// The options of all strategies.
    pub options: Options,
}

impl ScriptTarget {
    /// A target at `address`, which has the form `HOST:PORT`.
    pub fn new(address: String, strategy: Strategy, dialect: Dialect, mut options: Options) -> Self {
        if strategy != Strategy::PoolRetry {
            options.retries = Retries::default();
        }
        ScriptTarget { address, strategy, dialect, options }
    }

    /// Whether the dialect works only with Framewire's script.
    pub fn is_ours(&self) -> bool {
        self.dialect == Dialect::Binary || self.dialect == Dialect::marker()
    }
}

impl Target for ScriptTarget {
    type Session = ScriptSession;

    fn session(&self) -> ScriptSession {
        ScriptSession::new(self.clone())
    }
}

/// The failure if the script answered with an error.
fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Other(format!("the script answered with an error: {error}"))
}

/// The failure if the script's answer is neither a valid reply nor an error.
fn malformed(answer: impl std::fmt::Display) -> Failure {
    Failure::Other(format!("the script's answer is neither a reply nor an error: {answer}"))
}
