//! What stays open: event streams, WebSockets, long waits. Counted, so that one client cannot have them all, and so that
//! the server's end can wait for theirs.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::sync::watch;

use crate::failure::Failure;
use crate::limits::Limits;

/// The address that a request came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client(pub(crate) IpAddr);

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Client, Infallible> {
        // Whose address cannot be told, because it is gone already, is counted with all such.
        Ok(parts.extensions.get().copied().unwrap_or(Client(IpAddr::from([0, 0, 0, 0]))))
    }
}

/// What a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Server-sent events.
    Events,
    /// A WebSocket that speaks JSON-RPC.
    Rpc,
    /// A subscription over such a one.
    Subscription,
    /// A request that waits for a condition or a frame.
    Wait,
    /// Pictures over a WebSocket.
    Video,
    /// Pictures in one reply.
    Mjpeg,
    /// Sound.
    Audio,
}

impl Kind {
    /// All of them, with what counters call them, in order.
    const ALL: [(Kind, &str); 7] = [
        (Kind::Events, "events"),
        (Kind::Rpc, "rpc"),
        (Kind::Subscription, "subscription"),
        (Kind::Wait, "wait"),
        (Kind::Video, "video"),
        (Kind::Mjpeg, "mjpeg"),
        (Kind::Audio, "audio"),
    ];
}

/// The streams that are open.
#[derive(Debug, Clone)]
pub(crate) struct Streams(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    by_client: Mutex<HashMap<IpAddr, usize>>,
    /// In the order of [`Kind::ALL`].
    by_kind: [AtomicUsize; Kind::ALL.len()],
    open: watch::Sender<usize>,
    most: usize,
    most_each: usize,
}

/// A stream that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct Stream {
    shared: Arc<Shared>,
    client: IpAddr,
    kind: Kind,
}

impl Streams {
    pub(crate) fn new(limits: &Limits) -> Streams {
        Streams(Arc::new(Shared {
            by_client: Mutex::default(),
            by_kind: Default::default(),
            open: watch::Sender::new(0),
            most: limits.max_streams,
            most_each: limits.max_streams_per_address,
        }))
    }

    /// Opens one for `client`, unless it or all clients together have too many.
    pub(crate) fn open(&self, client: IpAddr, kind: Kind) -> Result<Stream, Failure> {
        let shared = &self.0;
        let mut by_client = shared.by_client();
        let all: usize = by_client.values().sum();
        let own = by_client.get(&client).copied().unwrap_or_default();
        if own >= shared.most_each {
            return Err(Failure::busy(format!(
                "you have {own} streams open, and more are not accepted; close some: one watch or subscription can \
                 hold up to 64 expressions"
            )));
        }
        if all >= shared.most {
            return Err(Failure::busy(format!("{all} streams are open, and more are not accepted")));
        }
        by_client.insert(client, own + 1);
        shared.open.send_replace(all + 1);
        shared.by_kind[kind as usize].fetch_add(1, Relaxed);
        Ok(Stream { shared: shared.clone(), client, kind })
    }

    /// How many of each kind are open.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let counts = self.0.by_kind.iter().map(|count| count.load(Relaxed));
        Kind::ALL.iter().map(|(_, name)| *name).zip(counts)
    }

    /// Waits until none is open.
    pub(crate) async fn all_closed(&self) {
        // The sender lives as long as this.
        let _ = self.0.open.subscribe().wait_for(|open| *open == 0).await;
    }
}

impl Shared {
    fn by_client(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.by_kind[self.kind as usize].fetch_sub(1, Relaxed);
        let mut by_client = self.shared.by_client();
        if let Some(own) = by_client.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                by_client.remove(&self.client);
            }
        }
        self.shared.open.send_replace(by_client.values().sum());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn streams_are_counted_by_client_and_in_all() {
        let limits = Limits { max_streams: 3, max_streams_per_address: 2, ..Limits::default() };
        let streams = Streams::new(&limits);
        let [one, other, third] = [1, 2, 3].map(|last| IpAddr::from([10, 0, 0, last]));
        let open: Vec<Stream> =
            [one, one, other].map(|client| streams.open(client, Kind::Wait).unwrap()).into();
        assert!(format!("{:?}", streams.open(one, Kind::Rpc)).contains("you have 2"));
        assert!(format!("{:?}", streams.open(third, Kind::Rpc)).contains("3 streams are open"));
        assert_eq!(streams.counts().find(|(name, _)| *name == "wait"), Some(("wait", 3)));
        drop(open);
        streams.all_closed().await;
        assert!(streams.open(one, Kind::Audio).is_ok());
        assert!(streams.counts().all(|(_, count)| count == 0), "each was given back");
        assert!(Kind::ALL.iter().enumerate().all(|(place, (kind, _))| *kind as usize == place));
    }
}
