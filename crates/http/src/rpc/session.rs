//! The state of one connection: the requests under way, the subscriptions, and the queue to the client.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::FromRef;
use parking_lot::Mutex;
use serde_json::Value as Json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use super::message;
use super::routes::RouteMethods;
use crate::access::caller::Caller;
use crate::failure::Failure;
use crate::feeds::feed::Reader;
use crate::feeds::registry::Feeds;
use crate::idempotency::Idempotency;
use crate::limits::Limits;
use crate::operations::Operations;
use crate::operations::emulators::{Served, connection_number};
use crate::problem::Problem;
use crate::routing::state::AppState;
use crate::transport::Stopping;
use crate::transport::streams::{OpenStream, StreamKind, StreamLimit};

/// The largest number of requests under way on one connection.
const MAX_REQUESTS: usize = 1024;
/// The largest number of waits and subscriptions of one connection together. Each may need a watch, and an emulator has
/// only a limited number of watches.
const MAX_LASTING: usize = 64;

/// The services that connections use.
pub(super) struct RpcServices {
    pub(super) operations: Arc<Operations>,
    pub(super) feeds: Arc<Feeds>,
    pub(super) streams: StreamLimit,
    pub(super) idempotency: Arc<Idempotency>,
    pub(super) limits: Arc<Limits>,
    pub(super) stopping: Stopping,
}

impl FromRef<AppState> for RpcServices {
    fn from_ref(state: &AppState) -> RpcServices {
        RpcServices {
            operations: FromRef::from_ref(state),
            feeds: FromRef::from_ref(state),
            streams: FromRef::from_ref(state),
            idempotency: FromRef::from_ref(state),
            limits: FromRef::from_ref(state),
            stopping: FromRef::from_ref(state),
        }
    }
}

pub(super) struct RpcSession {
    /// Distinguishes the connection from all others of the server.
    pub(super) number: u64,
    pub(super) services: RpcServices,
    /// The routes of `/v1` that clients can call as methods.
    pub(super) routes: Arc<RouteMethods>,
    /// The caller that opened the connection.
    pub(super) caller: Caller,
    /// The emulator for requests that name no emulator, with the rights of the caller.
    pub(super) served: Arc<Served>,
    /// The queue to the client. If the client reads slowly, the queue is full and senders wait.
    out: mpsc::Sender<Outgoing>,
    requests: Arc<Semaphore>,
    /// Limits waits and subscriptions.
    lasting: Arc<Semaphore>,
    state: Mutex<SessionState>,
}

/// The place of a wait or a subscription within the limits of its connection and of its address.
pub(super) struct LastingPlace {
    _own: OwnedSemaphorePermit,
    _open: OpenStream,
}

#[derive(Default)]
struct SessionState {
    /// The work that is under way for this connection. It ends with the connection.
    tasks: JoinSet<()>,
    subscriptions: HashMap<u64, Subscription>,
    /// The number of the last subscription.
    last: u64,
}

struct Subscription {
    /// Ends the subscription.
    end: oneshot::Sender<()>,
    /// Closes when no further events will come.
    over: oneshot::Receiver<()>,
}

/// A text for the client.
pub(super) struct Outgoing {
    pub(super) text: String,
    /// Counts the memory of the text, if it is large.
    pub(super) held: Vec<Held>,
}

impl From<String> for Outgoing {
    fn from(text: String) -> Outgoing {
        Outgoing { text, held: Vec::new() }
    }
}

/// A value that counts memory until it is dropped: a share of the memory for replies, or the body of a route's reply,
/// which may contain such a share.
pub(super) type Held = Box<dyn Send>;

/// The outcome of a request.
pub(super) struct RpcReply {
    pub(super) result: Json,
    /// Gets a message when the reply is in the queue to the client. A subscription sends its events only after that.
    pub(super) sent: Option<oneshot::Sender<()>>,
    /// Counts the memory of the result until the reply has been written.
    pub(super) held: Option<Held>,
}

impl From<Json> for RpcReply {
    fn from(result: Json) -> RpcReply {
        RpcReply { result, sent: None, held: None }
    }
}

impl RpcSession {
    pub(super) fn new(
        services: RpcServices,
        routes: Arc<RouteMethods>,
        caller: Caller,
        served: Arc<Served>,
        out: mpsc::Sender<Outgoing>,
    ) -> RpcSession {
        let [requests, lasting] = [MAX_REQUESTS, MAX_LASTING].map(|most| Arc::new(Semaphore::new(most)));
        let number = connection_number();
        let state = Mutex::default();
        RpcSession { number, services, routes, caller, served, out, requests, lasting, state }
    }

    /// Reserves room for this number of further requests.
    pub(super) fn room(&self, requests: usize) -> Result<OwnedSemaphorePermit, Problem> {
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        self.requests.clone().try_acquire_many_owned(requests).map_err(|_| {
            let message =
                format!("{MAX_REQUESTS} requests may be under way on one connection; wait for replies");
            Failure::busy(message).into()
        })
    }

    pub(super) fn place(&self, kind: StreamKind) -> Result<LastingPlace, Problem> {
        let own = self.lasting.clone().try_acquire_owned().map_err(|_| {
            Failure::busy(format!(
                "this connection has {MAX_LASTING} waits and subscriptions, and more are not accepted; one subscription can \
                 hold up to 64 expressions"
            ))
        })?;
        Ok(LastingPlace { _own: own, _open: self.services.streams.open(self.caller.origin, kind)? })
    }

    /// Runs `work` until it ends or the connection does.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.state.lock();
        while state.tasks.try_join_next().is_some() {}
        state.tasks.spawn(work);
    }

    /// Puts a text into the queue to the client. Waits if the queue is full because the client reads slowly. Drops
    /// `taken` just before it puts the text into the queue. So the places that the requests took are free again when
    /// the client gets the reply.
    pub(super) async fn reply(&self, text: Outgoing, taken: impl Send) {
        // This fails only after the connection has ended. Then this task ends, too.
        let Ok(place) = self.out.reserve().await else { return };
        drop(taken);
        place.send(text);
    }

    /// Begins a subscription: sends the events of `reader` after the reply with the subscription's number. Returns the
    /// number, and the sender for [`RpcReply::sent`].
    pub(super) fn subscribe(
        self: &Arc<RpcSession>,
        mut reader: Reader,
        place: LastingPlace,
    ) -> (u64, oneshot::Sender<()>) {
        let mut state = self.state.lock();
        state.last += 1;
        let number = state.last;
        let (sent, begin) = oneshot::channel();
        let (end, unsubscribed) = oneshot::channel();
        let (over_sender, over) = oneshot::channel::<()>();
        let session = self.clone();
        state.tasks.spawn(async move {
            tokio::select! {
                () = session.forward(number, begin, &mut reader) => {}
                _ = unsubscribed => reader.give_up(),
            }
            session.state.lock().subscriptions.remove(&number);
            drop(place);
            drop(over_sender);
        });
        state.subscriptions.insert(number, Subscription { end, over });
        (number, sent)
    }

    /// Ends a subscription. The returned receiver closes when no further events will come. `None` if no subscription
    /// has this number.
    pub(super) fn unsubscribe(&self, number: u64) -> Option<oneshot::Receiver<()>> {
        let Subscription { end, over } = self.state.lock().subscriptions.remove(&number)?;
        // This fails if the subscription is ending by itself at this moment.
        let _ = end.send(());
        Some(over)
    }

    /// Ends all work that is under way.
    pub(super) fn end(&self) {
        self.state.lock().tasks.abort_all();
    }

    /// Sends the events of `reader`, after the message on `begin`.
    async fn forward(&self, number: u64, begin: oneshot::Receiver<()>, reader: &mut Reader) {
        if begin.await.is_err() {
            return;
        }
        // `end` does not abort a subscription that begins while the connection ends. Such a subscription stops here,
        // because the queue to the client is closed.
        while let Some(event) = tokio::select! {
            event = reader.next() => event,
            () = self.out.closed() => None,
        } {
            let text = message::event(number, &event.id, event.name, &event.data);
            // This fails only after the connection has ended. Then this task ends, too.
            let _ = self.out.send(text.into()).await;
        }
    }
}
