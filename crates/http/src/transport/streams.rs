//! Limits how many streams are open: event streams, WebSockets, subscriptions, long waits and runs. Each client also
//! has its own limit, so one client cannot use up all streams. When the server stops, it waits until all streams have
//! ended, for at most [`Limits::grace`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::failure::Failure;
use crate::limits::Limits;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// Server-sent events.
    Events,
    /// A WebSocket with JSON-RPC.
    Rpc,
    /// A subscription over such a WebSocket.
    Subscription,
    /// A request that waits for a condition or a frame, or that performs a run.
    Wait,
    /// Pictures over a WebSocket.
    Video,
    /// Pictures in one reply.
    Mjpeg,
    /// Sound.
    Audio,
}

impl StreamKind {
    /// All kinds in order, with their names in the metrics.
    const ALL: [(StreamKind, &str); 7] = [
        (StreamKind::Events, "events"),
        (StreamKind::Rpc, "rpc"),
        (StreamKind::Subscription, "subscription"),
        (StreamKind::Wait, "wait"),
        (StreamKind::Video, "video"),
        (StreamKind::Mjpeg, "mjpeg"),
        (StreamKind::Audio, "audio"),
    ];
}

/// Limits how many streams are open, for each client and for all together.
#[derive(Debug, Clone)]
pub(crate) struct StreamLimit(Arc<OpenStreams>);

#[derive(Debug)]
struct OpenStreams {
    by_client: Mutex<HashMap<IpAddr, usize>>,
    /// In the order of [`StreamKind::ALL`].
    by_kind: [AtomicUsize; StreamKind::ALL.len()],
    open: watch::Sender<usize>,
    most: usize,
    most_each: usize,
}

/// A stream that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream {
    shared: Arc<OpenStreams>,
    client: IpAddr,
    kind: StreamKind,
}

impl StreamLimit {
    pub(crate) fn new(limits: &Limits) -> StreamLimit {
        StreamLimit(Arc::new(OpenStreams {
            by_client: Mutex::default(),
            by_kind: Default::default(),
            open: watch::Sender::new(0),
            most: limits.max_streams,
            most_each: limits.max_streams_per_address,
        }))
    }

    /// Opens a stream for `client`, unless it or all clients together have too many.
    pub(crate) fn open(&self, client: IpAddr, kind: StreamKind) -> Result<OpenStream, Failure> {
        let shared = &self.0;
        let mut by_client = shared.by_client.lock();
        let all: usize = by_client.values().sum();
        let own = by_client.get(&client).copied().unwrap_or_default();
        if own >= shared.most_each {
            return Err(Failure::busy(format!(
                "you have {own} streams open, counting waits and runs, and more are not accepted; close some or wait \
                 until some end: one watch or subscription can hold up to 64 expressions"
            )));
        }
        if all >= shared.most {
            return Err(Failure::busy(format!(
                "{all} streams are open, counting waits and runs, and more are not accepted"
            )));
        }
        by_client.insert(client, own + 1);
        shared.open.send_replace(all + 1);
        shared.by_kind[kind as usize].fetch_add(1, Relaxed);
        Ok(OpenStream { shared: shared.clone(), client, kind })
    }

    pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let counts = self.0.by_kind.iter().map(|count| count.load(Relaxed));
        StreamKind::ALL.iter().map(|(_, name)| *name).zip(counts)
    }

    pub(crate) async fn all_closed(&self) {
        // This cannot fail, because `self` has the sender.
        let _ = self.0.open.subscribe().wait_for(|open| *open == 0).await;
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut by_client = self.shared.by_client.lock();
        if let Some(own) = by_client.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                by_client.remove(&self.client);
            }
        }
        self.shared.open.send_replace(by_client.values().sum());
        // Last, so that a client that sees the lower count in the metrics finds the place free.
        self.shared.by_kind[self.kind as usize].fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn streams_are_counted_by_client_and_in_all() {
        let limits = Limits { max_streams: 3, max_streams_per_address: 2, ..Limits::default() };
        let streams = StreamLimit::new(&limits);
        let [one, other, third] = [1, 2, 3].map(|last| IpAddr::from([10, 0, 0, last]));
        let open: Vec<OpenStream> =
            [one, one, other].map(|client| streams.open(client, StreamKind::Wait).unwrap()).into();
        assert!(format!("{:?}", streams.open(one, StreamKind::Rpc)).contains("you have 2"));
        assert!(format!("{:?}", streams.open(third, StreamKind::Rpc)).contains("3 streams are open"));
        assert_eq!(streams.counts().find(|(name, _)| *name == "wait"), Some(("wait", 3)));
        drop(open);
        streams.all_closed().await;
        assert!(streams.open(one, StreamKind::Audio).is_ok());
        assert!(streams.counts().all(|(_, count)| count == 0), "each was given back");
        assert!(StreamKind::ALL.iter().enumerate().all(|(place, (kind, _))| *kind as usize == place));
    }
}
