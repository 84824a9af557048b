//! Accepts connections.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep_until;
use tracing::warn;

use super::closing::{Refusal, last_reply};
use super::connection::{Handler, Peer, Transport, run};
use super::tls::ClientStream;
use crate::limits::Limits;
use crate::metrics::{LIMIT_ON_ADDRESS, LIMIT_ON_ALL, Meter};

/// The pause after an `accept` that failed, for example because there were no file descriptors. It doubles with each
/// further failure.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// After this time without a failure, the failures are considered to be over. A single success does not show that: at
/// the limit of file descriptors, some calls of `accept` fail and others succeed.
const CALM: Duration = Duration::from_secs(10);

/// The largest number of refused clients to which a reply can be sent at the same time. The connections of further
/// refused clients are closed without a reply.
const TURNED_AWAY: usize = 64;

/// Accepts connections and counts them.
pub(crate) struct Listener<H> {
    socket: TcpListener,
    transport: Arc<Transport>,
    handler: H,
    /// Counts the connections that are open, and those that were refused.
    meter: Arc<Meter>,
    /// The tasks of the connections. Each returns the [origin](Peer::origin) of its client; `None` for a loopback
    /// address, to which the limit per address does not apply.
    connections: JoinSet<Option<IpAddr>>,
    /// How many connections each origin has.
    by_origin: HashMap<IpAddr, usize>,
    turned_away: JoinSet<()>,
    failures: AcceptFailures,
}

/// Failures of `accept`. Only the first failure and the end of the failures are logged.
#[derive(Debug, Default)]
struct AcceptFailures {
    /// The number of failures. The count restarts when a connection is accepted after [`CALM`] without a failure.
    count: u32,
    /// The number of failures since a connection was last accepted.
    in_a_row: u32,
    last: Option<Instant>,
    /// When to try again.
    resume: Option<Instant>,
}

impl AcceptFailures {
    /// Counts a failure, and sets the time to try again.
    fn note(&mut self, error: &std::io::Error, now: Instant) {
        if self.count == 0 {
            warn!("cannot accept connections: {error}; trying again until it works");
        }
        let pause = ACCEPT_PAUSE.saturating_mul(1 << self.in_a_row.min(8)).min(LONGEST_PAUSE);
        self.count = self.count.saturating_add(1);
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.last = Some(now);
        self.resume = Some(now + pause);
    }

    fn accepted(&mut self, now: Instant) {
        self.in_a_row = 0;
        self.resume = None;
        if self.last.is_some_and(|last| now.duration_since(last) >= CALM) {
            warn!("connections are accepted again, after {} failures", self.count);
            *self = AcceptFailures::default();
        }
    }
}

/// Accepts a connection, but not before `resume`.
async fn accept(listener: &TcpListener, resume: Option<Instant>) -> std::io::Result<(TcpStream, SocketAddr)> {
    if let Some(resume) = resume {
        sleep_until(resume.into()).await;
    }
    listener.accept().await
}

impl<H: Handler> Listener<H> {
    /// Accepts connections at `socket`.
    pub(crate) fn new(
        socket: TcpListener,
        transport: Arc<Transport>,
        handler: H,
        meter: Arc<Meter>,
    ) -> Listener<H> {
        Listener {
            socket,
            transport,
            handler,
            meter,
            connections: JoinSet::new(),
            by_origin: HashMap::new(),
            turned_away: JoinSet::new(),
            failures: AcceptFailures::default(),
        }
    }

    /// Stops accepting connections. Returns the tasks of the open connections, and the tasks that send replies to
    /// refused clients.
    pub(crate) fn close(self) -> (JoinSet<Option<IpAddr>>, JoinSet<()>) {
        (self.connections, self.turned_away)
    }

    pub(crate) async fn accept_until(&mut self, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return,
                accepted = accept(&self.socket, self.failures.resume) => match accepted {
                    Ok((stream, address)) => {
                        self.failures.accepted(Instant::now());
                        self.admit(stream, address.ip());
                    }
                    Err(error) => self.failures.note(&error, Instant::now()),
                },
                Some(ended) = self.connections.join_next() => self.forget(ended.ok().flatten()),
                Some(_) = self.turned_away.join_next() => {}
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, address: IpAddr) {
        // Connections that have ended no longer count towards the limits.
        while let Some(ended) = self.connections.try_join_next() {
            self.forget(ended.ok().flatten());
        }
        let Limits { max_connections, max_connections_per_address, .. } = self.transport.limits;
        let peer = Peer::new(address, self.transport.tls.is_some());
        let origin = if peer.is_local() { None } else { Some(peer.origin()) };
        let from_there = origin.and_then(|origin| self.by_origin.get(&origin)).copied().unwrap_or(0);
        let full = self.connections.len() >= max_connections;
        if full || from_there >= max_connections_per_address {
            self.meter.turn_away(if full { LIMIT_ON_ALL } else { LIMIT_ON_ADDRESS });
            // A client that expects TLS would not understand the reply.
            if !peer.tls && self.turned_away.len() < TURNED_AWAY {
                self.turned_away.spawn(turn_away(stream, self.transport.clone()));
            }
            return;
        }
        if let Some(origin) = origin {
            self.by_origin.insert(origin, from_there + 1);
        }
        let life = run(stream, peer, self.transport.clone(), self.handler.clone());
        // The task may answer a request for the metrics before this function continues.
        self.meter.connections.set(self.connections.len() as i64 + 1);
        self.connections.spawn(async move {
            life.await;
            origin
        });
    }

    fn forget(&mut self, origin: Option<IpAddr>) {
        self.meter.connections.set(self.connections.len() as i64);
        let Some(origin) = origin else { return };
        match self.by_origin.get_mut(&origin) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.by_origin.remove(&origin)),
        }
    }
}

async fn turn_away(stream: TcpStream, transport: Arc<Transport>) {
    last_reply(&mut ClientStream::Plain(stream), Refusal::TOO_MANY, false, &transport).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(failures: &mut AcceptFailures, now: Instant) -> Duration {
        failures.note(&std::io::Error::other("no descriptors"), now);
        failures.resume.unwrap() - now
    }

    #[test]
    fn pauses_after_failures_to_accept_grow() {
        let (mut failures, now) = (AcceptFailures::default(), Instant::now());
        let pauses: Vec<u128> = (0..7).map(|_| note(&mut failures, now).as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        failures.in_a_row = u32::MAX;
        assert_eq!(note(&mut failures, now), LONGEST_PAUSE);
        failures.accepted(now);
        assert_eq!((failures.resume, note(&mut failures, now)), (None, ACCEPT_PAUSE));
    }

    #[test]
    fn failures_that_come_and_go_are_logged_once() {
        let (mut failures, begin) = (AcceptFailures::default(), Instant::now());
        for second in 0..30 {
            let now = begin + Duration::from_secs(second);
            note(&mut failures, now);
            failures.accepted(now + ACCEPT_PAUSE);
            assert_eq!(u64::from(failures.count), second + 1, "the count must not restart");
        }
        failures.accepted(begin + Duration::from_secs(29) + CALM);
        assert_eq!(failures.count, 0);
    }
}
