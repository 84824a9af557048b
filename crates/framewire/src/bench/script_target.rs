use std::sync::Arc;

use framewire_link::strategy::{Dialect, Echoes, ExchangeError, Options, Strategy, Trace};
use framewire_loadtest::{Call, Client, Failure, Session, Target};

/// A script that sends messages back, reached by one of the link's strategies.
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

    /// Where it is.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Target for ScriptTarget {
    type Session = ScriptSession;

    fn session(&self) -> ScriptSession {
        let (address, options) = (self.address.clone(), self.options.clone());
        ScriptSession(Arc::new(Echoes::new(address, self.strategy, self.dialect.clone(), options)))
    }
}

/// The connections of one run; all clients share them.
#[derive(Clone)]
pub struct ScriptSession(Arc<Echoes>);

impl Session for ScriptSession {
    type Client = ScriptSession;

    fn client(&self) -> ScriptSession {
        self.clone()
    }
}

impl Client for ScriptSession {
    async fn exchange(&mut self, call: &mut Call<'_>) -> Result<(), Failure> {
        let mut trace = Trace::default();
        let result = self.0.exchange(call.payload, &mut trace).await;
        if let Some(sent) = trace.sent {
            call.mark_sent_at(sent);
        }
        for _ in 0..trace.connected {
            call.mark_connected();
        }
        *call.reply = result.map_err(|error| match error {
            ExchangeError::Io(error) => error.into(),
            ExchangeError::TimedOut(_) => Failure::TimedOut,
            error @ (ExchangeError::Refused(_) | ExchangeError::Malformed(_)) => {
                Failure::Other(error.to_string())
            }
        })?;
        Ok(())
    }
}
