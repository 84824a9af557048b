//! What belongs to one connection: the requests under way, the subscriptions, and the way out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use super::message;
use crate::access::Caller;
use crate::app::Site;
use crate::budget::Share;
use crate::emulators::Served;
use crate::failure::Failure;
use crate::v1::Problem;
use crate::v1::live::feed::Reader;

/// Requests under way at once on one connection.
const MAX_REQUESTS: usize = 1024;
/// Subscriptions of one connection.
const MAX_SUBSCRIPTIONS: usize = 64;

/// What belongs to one connection.
pub(super) struct Session {
    pub(super) site: Arc<Site>,
    /// Who opened the connection.
    pub(super) caller: Caller,
    /// The emulator that is meant where a request names none, as the caller may use it.
    pub(super) served: Arc<Served>,
    /// To the client. Who finds it full waits: the client reads slowly.
    out: mpsc::Sender<Outgoing>,
    requests: Arc<Semaphore>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// All that goes on for this connection; it ends with it.
    tasks: JoinSet<()>,
    subscriptions: HashMap<u64, AbortHandle>,
    /// Number of the subscription made last.
    last: u64,
}

/// A text on its way to the client.
pub(super) struct Outgoing {
    pub(super) text: String,
    /// The memory that it takes, where it is large.
    pub(super) shares: Vec<Share>,
}

impl From<String> for Outgoing {
    fn from(text: String) -> Outgoing {
        Outgoing { text, shares: Vec::new() }
    }
}

/// What a request came to.
pub(super) struct Reply {
    pub(super) result: Json,
    /// Told when the reply is on its way: what may only come behind it begins.
    pub(super) sent: Option<oneshot::Sender<()>>,
    /// The memory that it takes until it is written.
    pub(super) share: Option<Share>,
}

impl From<Json> for Reply {
    fn from(result: Json) -> Reply {
        Reply { result, sent: None, share: None }
    }
}

impl Session {
    pub(super) fn new(
        site: Arc<Site>,
        caller: Caller,
        served: Arc<Served>,
        out: mpsc::Sender<Outgoing>,
    ) -> Session {
        let requests = Arc::new(Semaphore::new(MAX_REQUESTS));
        Session { site, caller, served, out, requests, inner: Mutex::default() }
    }

    /// Room for so many more requests.
    pub(super) fn room(&self, requests: usize) -> Result<OwnedSemaphorePermit, Problem> {
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        self.requests.clone().try_acquire_many_owned(requests).map_err(|_| {
            let message =
                format!("{MAX_REQUESTS} requests may be under way on one connection; wait for replies");
            Failure::busy(message).into()
        })
    }

    /// Goes on with `work` until it is over or the connection is.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut inner = self.inner();
        while inner.tasks.try_join_next().is_some() {}
        inner.tasks.spawn(work);
    }

    /// Sends to the client; waits while that reads slowly.
    pub(super) async fn send(&self, text: Outgoing) {
        // It fails when the connection is over, and this task with it.
        let _ = self.out.send(text).await;
    }

    /// Sends what `reader` reads, once the reply with the number of the subscription is on its way.
    pub(super) fn subscribe(
        self: &Arc<Session>,
        reader: Reader,
    ) -> Result<(u64, oneshot::Sender<()>), Problem> {
        let mut inner = self.inner();
        if inner.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            let message = format!(
                "this connection has {MAX_SUBSCRIPTIONS} subscriptions, and more are not accepted; one can hold up to 64 \
                 expressions"
            );
            return Err(Failure::busy(message).into());
        }
        inner.last += 1;
        let number = inner.last;
        let (sent, begin) = oneshot::channel();
        let session = self.clone();
        let task = inner.tasks.spawn(async move {
            if begin.await.is_ok() {
                session.forward(number, reader).await;
            }
            session.inner().subscriptions.remove(&number);
        });
        inner.subscriptions.insert(number, task);
        Ok((number, sent))
    }

    /// Ends a subscription; false if there is none of this number.
    pub(super) fn unsubscribe(&self, number: u64) -> bool {
        match self.inner().subscriptions.remove(&number) {
            Some(task) => {
                task.abort();
                true
            }
            None => false,
        }
    }

    /// Ends all that goes on.
    pub(super) fn end(&self) {
        self.inner().tasks.abort_all();
    }

    async fn forward(&self, number: u64, mut reader: Reader) {
        while let Some(told) = reader.next().await {
            self.send(message::event(number, &told.id, told.name, &told.data).into()).await;
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
