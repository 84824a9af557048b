use std::sync::Arc;
use std::time::Instant;

use framewire_link::{Config, Link, LinkError};
use framewire_loadtest::{Call, Client, Failure, Strategy};
use framewire_protocol::Op;
use parking_lot::Mutex as SyncMutex;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{sleep, timeout};

use super::connection::Connection;
use super::dialect::{self, Answer};
use super::pipeline::Pipeline;
use super::{Dialect, ScriptTarget};

/// The connections of one run; all clients share them.
#[derive(Clone)]
pub struct ScriptSession(Arc<Inner>);

struct Inner {
    target: ScriptTarget,
    kept: Kept,
}

/// The connections that each strategy keeps from one message to the next. Nothing connects before the first message.
enum Kept {
    Single(Mutex<Option<Connection>>),
    PerRequest,
    Pool(SyncMutex<Vec<Connection>>),
    /// A pool that also keeps broken connections. It does not keep a connection whose message timed out.
    PoolKeepBroken(SyncMutex<Vec<Connection>>),
    Pipeline(Mutex<Option<Arc<Pipeline>>>),
    Link(SyncMutex<Option<Arc<Link>>>),
}

impl Client for ScriptSession {
    async fn exchange(&mut self, call: &mut Call<'_>) -> Result<(), Failure> {
        *call.reply = self.0.exchange(call).await?;
        self.0.target.options.check.reply(call.payload, call.reply)
    }
}

impl ScriptSession {
    /// A session with a script.
    pub fn new(target: ScriptTarget) -> Self {
        let kept = match target.strategy {
            Strategy::Single => Kept::Single(Mutex::default()),
            Strategy::PerRequest => Kept::PerRequest,
            Strategy::Pool | Strategy::PoolRetry => Kept::Pool(SyncMutex::default()),
            Strategy::PoolKeepBroken => Kept::PoolKeepBroken(SyncMutex::default()),
            Strategy::Mux if target.dialect == Dialect::Binary => Kept::Link(SyncMutex::default()),
            Strategy::Mux => Kept::Pipeline(Mutex::default()),
        };
        ScriptSession(Arc::new(Inner { target, kept }))
    }
}

impl Inner {
    /// Sends a message and waits for its reply, with retries if the strategy has them. Does not check the reply. Does
    /// not count bytes, because a link does not report them.
    async fn exchange(&self, call: &mut Call<'_>) -> Answer {
        let mut waits = self.target.options.retries.waits().iter();
        let limit = self.target.options.timeout;
        loop {
            let result = timeout(limit, self.attempt(call)).await.unwrap_or(Err(Failure::TimedOut));
            let wait = waits.next().filter(|_| result.is_err());
            let Some(wait) = wait else { return result };
            sleep(*wait).await;
            call.mark_retry();
        }
    }

    async fn attempt(&self, call: &mut Call<'_>) -> Answer {
        match &self.kept {
            Kept::Single(shared) => {
                // The connection is taken out of the mutex. If this message times out, its connection is dropped too,
                // so that no other client gets the late answer.
                let mut shared = shared.lock().await;
                let mut connection = self.reuse_or_open(shared.take(), call).await?;
                let reply = connection.exchange(call).await?;
                *shared = Some(connection);
                Ok(reply)
            }
            Kept::PerRequest => {
                let mut connection = self.reuse_or_open(None, call).await?;
                let reply = connection.exchange(call).await;
                connection.close().await;
                reply
            }
            Kept::Pool(idle) => {
                let last = idle.lock().pop();
                let mut connection = self.reuse_or_open(last, call).await?;
                let reply = connection.exchange(call).await?;
                idle.lock().push(connection);
                Ok(reply)
            }
            Kept::PoolKeepBroken(idle) => {
                let last = idle.lock().pop();
                let mut connection = match last {
                    Some(connection) => connection,
                    None => {
                        let connection = self.reuse_or_open(None, call).await?;
                        // If the connection breaks, `exchange_again` connects the same socket again, which then fails.
                        connection.settle()?;
                        connection
                    }
                };
                let reply = connection.exchange_again(call).await;
                idle.lock().push(connection);
                reply
            }
            Kept::Pipeline(shared) => {
                let pipeline = {
                    let mut shared = shared.lock().await;
                    match shared.take().filter(|pipeline| pipeline.is_open()) {
                        Some(pipeline) => Arc::clone(shared.insert(pipeline)),
                        None => {
                            let connection = self.reuse_or_open(None, call).await?;
                            Arc::clone(shared.insert(Arc::new(Pipeline::start(connection))))
                        }
                    }
                };
                call.mark_sent(0);
                pipeline.send(call.payload).await.unwrap_or(Err(Failure::Reset))
            }
            Kept::Link(link) => self.through_link(link, call).await,
        }
    }

    /// Returns `last`, the connection that was used last, if it is still open. Otherwise opens a new connection.
    async fn reuse_or_open(
        &self,
        last: Option<Connection>,
        call: &mut Call<'_>,
    ) -> Result<Connection, Failure> {
        if let Some(connection) = last.filter(Connection::is_open) {
            return Ok(connection);
        }
        let ScriptTarget { address, dialect, options, .. } = &self.target;
        let start = Instant::now();
        let connection = Connection::open(address, dialect, options).await?;
        call.mark_connected(Some(start.elapsed()));
        Ok(connection)
    }

    async fn through_link(&self, link: &SyncMutex<Option<Arc<Link>>>, call: &mut Call<'_>) -> Answer {
        let link = Arc::clone(link.lock().get_or_insert_with(|| {
            call.mark_connected(None);
            let config = Config { address: self.target.address.clone(), ..Config::default() };
            Arc::new(Link::start(config, &Handle::current()))
        }));
        let (sender, receiver) = oneshot::channel();
        let respond = Box::new(move |result| {
            // The receiver is gone if the message was given up.
            let _ = sender.send(result);
        });
        let op = Op::Echo { data: call.payload.to_vec() };
        call.mark_sent(0);
        link.submit(op.into(), Instant::now() + self.target.options.timeout, respond);
        match receiver.await {
            Ok(Ok(outcome)) => dialect::answer(outcome),
            Ok(Err(error)) => Err(link_failure(error)),
            Err(_) => Err(Failure::Reset),
        }
    }
}

pub(super) fn link_failure(error: LinkError) -> Failure {
    match error {
        LinkError::Absent { .. } => Failure::Refused,
        LinkError::Lost { .. }
        | LinkError::Broken { .. }
        | LinkError::Interrupted { .. }
        | LinkError::Stopped => Failure::Reset,
        LinkError::Stalled { .. } | LinkError::Late { .. } | LinkError::Overdue { .. } => Failure::TimedOut,
        LinkError::Busy(_) => Failure::Other(error.to_string()),
    }
}
