use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_protocol::{Op, Value};
use parking_lot::Mutex as SyncMutex;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{sleep, timeout};

use super::connection::Connection;
use super::pipeline::Pipeline;
use super::{Dialect, ExchangeError, Strategy};
use crate::{Config, Link, LinkError};

/// How a strategy waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one try may take, connecting included.
    pub timeout: Duration,
    /// How often [`Strategy::PoolRetry`] tries.
    pub tries: u32,
    /// Its wait before the second try; doubled before each further one.
    pub delay: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(10),
            tries: 3,
            delay: Duration::from_millis(50),
        }
    }
}

/// What happened on the way of a message, whether it came back or not.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trace {
    /// When it was first about to be written; never, if no connection could be had.
    pub sent: Option<Instant>,
    /// Connections opened for it.
    pub connected: u32,
}

/// Sends messages by a strategy and waits for them to come back. To be shared by all who send.
pub struct Echoes {
    address: String,
    dialect: Dialect,
    options: Options,
    kind: Kind,
}

/// What each strategy keeps. Nothing connects before the first message.
enum Kind {
    Single(Mutex<Option<Connection>>),
    PerRequest,
    Pool { idle: SyncMutex<Vec<Connection>>, tries: u32 },
    Pipeline(Mutex<Option<Arc<Pipeline>>>),
    Link(SyncMutex<Option<Arc<Link>>>),
}

impl Echoes {
    /// To the script at `address` (`HOST:PORT`).
    pub fn new(address: String, strategy: Strategy, dialect: Dialect, options: Options) -> Self {
        let kind = match strategy {
            Strategy::Single => Kind::Single(Mutex::default()),
            Strategy::PerRequest => Kind::PerRequest,
            Strategy::Pool => Kind::Pool { idle: SyncMutex::default(), tries: 1 },
            Strategy::PoolRetry => Kind::Pool { idle: SyncMutex::default(), tries: options.tries.max(1) },
            Strategy::Mux if dialect == Dialect::Binary => Kind::Link(SyncMutex::default()),
            Strategy::Mux => Kind::Pipeline(Mutex::default()),
        };
        Echoes { address, dialect, options, kind }
    }

    /// Sends a message and waits for it to come back. Dropping the future gives up waiting.
    ///
    /// # Errors
    /// If it did not come back; what came back is not compared with what was sent.
    pub async fn exchange(&self, payload: &[u8], trace: &mut Trace) -> Result<Vec<u8>, ExchangeError> {
        let mut left = match self.kind {
            Kind::Pool { tries, .. } => tries,
            _ => 1,
        };
        let mut delay = self.options.delay;
        loop {
            left -= 1;
            let result = timeout(self.options.timeout, self.attempt(payload, trace))
                .await
                .unwrap_or(Err(ExchangeError::TimedOut(self.options.timeout)));
            if result.is_ok() || left == 0 {
                return result;
            }
            sleep(delay).await;
            delay *= 2;
        }
    }

    async fn attempt(&self, payload: &[u8], trace: &mut Trace) -> Result<Vec<u8>, ExchangeError> {
        match &self.kind {
            Kind::Single(shared) => {
                // Taken out, so that a message that is given up takes its connection with it: nobody else may get
                // its late answer.
                let mut shared = shared.lock().await;
                let mut connection = self.reuse_or_open(shared.take(), trace).await?;
                let reply = connection.exchange(payload, &mut trace.sent).await?;
                *shared = Some(connection);
                Ok(reply)
            }
            Kind::PerRequest => {
                let mut connection = self.reuse_or_open(None, trace).await?;
                let reply = connection.exchange(payload, &mut trace.sent).await;
                connection.close().await;
                reply
            }
            Kind::Pool { idle, .. } => {
                let kept = idle.lock().pop();
                let mut connection = self.reuse_or_open(kept, trace).await?;
                let reply = connection.exchange(payload, &mut trace.sent).await?;
                idle.lock().push(connection);
                Ok(reply)
            }
            Kind::Pipeline(shared) => {
                let pipeline = {
                    let mut shared = shared.lock().await;
                    match shared.take().filter(|pipeline| pipeline.is_open()) {
                        Some(pipeline) => Arc::clone(shared.insert(pipeline)),
                        None => {
                            let connection = self.reuse_or_open(None, trace).await?;
                            Arc::clone(shared.insert(Arc::new(Pipeline::start(connection))))
                        }
                    }
                };
                trace.sent.get_or_insert_with(Instant::now);
                pipeline.send(payload).await.unwrap_or(Err(ExchangeError::closed()))
            }
            Kind::Link(link) => self.through_link(link, payload, trace).await,
        }
    }

    /// Of a pool, the connection that was used last, unless the peer closed it meanwhile.
    async fn reuse_or_open(
        &self,
        kept: Option<Connection>,
        trace: &mut Trace,
    ) -> Result<Connection, ExchangeError> {
        if let Some(connection) = kept.filter(Connection::is_open) {
            return Ok(connection);
        }
        let connection = Connection::open(&self.address, &self.dialect, &self.options).await?;
        trace.connected += 1;
        Ok(connection)
    }

    async fn through_link(
        &self,
        link: &SyncMutex<Option<Arc<Link>>>,
        payload: &[u8],
        trace: &mut Trace,
    ) -> Result<Vec<u8>, ExchangeError> {
        let link = Arc::clone(link.lock().get_or_insert_with(|| {
            trace.connected += 1;
            let config = Config { address: self.address.clone(), ..Config::default() };
            Arc::new(Link::start(config, &Handle::current()))
        }));
        let (sender, receiver) = oneshot::channel();
        let respond = Box::new(move |result| {
            // Nobody waits any more if the message was given up.
            let _ = sender.send(result);
        });
        let sent = *trace.sent.get_or_insert_with(Instant::now);
        let op = Op::Echo { data: payload.to_vec() };
        link.submit(op.into(), sent + self.options.timeout, respond);
        let outcome = match receiver.await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => return Err(self.link_error(error)),
            Err(_) => return Err(ExchangeError::closed()),
        };
        match outcome.single() {
            Ok(Value::Bytes(bytes)) => Ok(bytes),
            Ok(other) => Err(ExchangeError::Malformed(format!("{other:?} to an echo"))),
            Err(error) => Err(ExchangeError::Refused(error.to_string())),
        }
    }

    fn link_error(&self, error: LinkError) -> ExchangeError {
        let kind = match error {
            LinkError::Absent { .. } => io::ErrorKind::ConnectionRefused,
            LinkError::Lost { .. } | LinkError::Interrupted { .. } | LinkError::Stopped => {
                io::ErrorKind::ConnectionReset
            }
            LinkError::Stalled { .. } | LinkError::Late { .. } | LinkError::Overdue { .. } => {
                return ExchangeError::TimedOut(self.options.timeout);
            }
            LinkError::Busy(_) => return ExchangeError::Refused(error.to_string()),
        };
        ExchangeError::Io(io::Error::new(kind, error.to_string()))
    }
}
