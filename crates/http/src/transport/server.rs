use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};
use tracing::warn;

use super::connection::{Shared, last_reply, run};
use super::guard::Refusal;
use crate::access::caller::Peer;
use crate::app::router::router;
use crate::app::{App, Site};
use crate::limits::Limits;

/// Pause after an `accept` that failed, such as for want of file descriptors. It doubles with each further failure.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// And no longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Failures are over when there was none for this long. At the limit of file descriptors they come and go.
const CALM: Duration = Duration::from_secs(10);

/// Clients turned away at once that are still told so; further ones are just closed.
const TURNED_AWAY: usize = 64;

/// Serves `app` on `listener` until `shutdown` ends. Then requests under way are answered, for at most
/// [`Limits::grace`](crate::Limits::grace), and connections closed.
/// What goes wrong with one connection does not concern the others.
pub async fn serve(listener: TcpListener, app: App, shutdown: impl Future<Output = ()>) {
    let Limits { last_call, grace, .. } = app.limits;
    let (stop, stopped) = watch::channel(false);
    let port = listener.local_addr().map_or(0, |address| address.port());
    let site = Arc::new(Site::new(app, port, stopped.clone()));
    let router = router(site.clone());
    let shared = Arc::new(Shared { router, site: site.clone(), last_call: AtomicBool::new(false) });
    let mut door = Door {
        shared,
        stopped,
        connections: JoinSet::new(),
        by_origin: HashMap::new(),
        turned_away: JoinSet::new(),
        failures: AcceptFailures::default(),
    };

    door.accept_until(&listener, shutdown).await;
    door.accept_until(&listener, sleep(last_call)).await;
    door.shared.last_call.store(true, Relaxed);
    door.accept_until(&listener, sleep(last_call)).await;
    drop(listener);
    let _ = stop.send(true);
    let mut connections = door.connections;
    let ended = async {
        while connections.join_next().await.is_some() {}
        // A WebSocket is a connection no more.
        site.streams.all_closed().await;
    };
    if timeout(grace, ended).await.is_err() {
        warn!(
            "{} connections were cut off: their requests took longer than {} s",
            connections.len(),
            grace.as_secs()
        );
    }
    if timeout(grace, site.kept.close()).await.is_err() {
        warn!("recordings or replays under way were cut off");
    }
}

/// Lets clients in.
struct Door {
    shared: Arc<Shared>,
    /// Turns true when connections that lie idle are to end.
    stopped: watch::Receiver<bool>,
    /// Each says at its end where it came from, unless that was this machine.
    connections: JoinSet<Option<IpAddr>>,
    /// How many of them come from where.
    by_origin: HashMap<IpAddr, usize>,
    turned_away: JoinSet<()>,
    failures: AcceptFailures,
}

/// Failures of `accept`. The first is logged, and the end of them.
#[derive(Debug, Default)]
struct AcceptFailures {
    /// Since there was none for [`CALM`].
    count: u32,
    /// Since a connection was accepted.
    in_a_row: u32,
    last: Option<Instant>,
    /// When to try again.
    resume: Option<Instant>,
}

impl AcceptFailures {
    /// Notes one, and when to try again.
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

    /// Notes that a connection was accepted.
    fn accepted(&mut self, now: Instant) {
        self.in_a_row = 0;
        self.resume = None;
        if self.last.is_some_and(|last| now.duration_since(last) >= CALM) {
            warn!("connections are accepted again, after {} failures", self.count);
            *self = AcceptFailures::default();
        }
    }
}

/// Accepts a connection, not before `resume`.
async fn accept(listener: &TcpListener, resume: Option<Instant>) -> std::io::Result<(TcpStream, SocketAddr)> {
    if let Some(resume) = resume {
        sleep_until(resume.into()).await;
    }
    listener.accept().await
}

impl Door {
    async fn accept_until(&mut self, listener: &TcpListener, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return,
                accepted = accept(listener, self.failures.resume) => match accepted {
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
        let Limits { max_connections, max_connections_per_address, .. } = self.shared.site.app.limits;
        let peer = Peer::new(address, self.shared.site.app.tls.is_some());
        let origin = (!peer.is_local()).then(|| peer.origin());
        let from_there = origin.and_then(|origin| self.by_origin.get(&origin)).copied().unwrap_or(0);
        let meter = &self.shared.site.meter;
        let full = self.connections.len() >= max_connections;
        if full || from_there >= max_connections_per_address {
            meter.turn_away(if full { "all" } else { "address" });
            // A client that expects TLS would not understand.
            if !peer.tls && self.turned_away.len() < TURNED_AWAY {
                self.turned_away.spawn(turn_away(stream, self.shared.clone()));
            }
            return;
        }
        if let Some(origin) = origin {
            self.by_origin.insert(origin, from_there + 1);
        }
        let life = run(stream, peer, self.shared.clone(), self.stopped.clone());
        self.connections.spawn(async move {
            life.await;
            origin
        });
        meter.connections.set(self.connections.len() as i64);
    }

    fn forget(&mut self, origin: Option<IpAddr>) {
        self.shared.site.meter.connections.set(self.connections.len() as i64);
        let Some(origin) = origin else { return };
        match self.by_origin.get_mut(&origin) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.by_origin.remove(&origin)),
        }
    }
}

async fn turn_away(mut stream: TcpStream, shared: Arc<Shared>) {
    last_reply(&mut stream, Refusal::TOO_MANY, false, &shared.site).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(failures: &mut AcceptFailures, now: Instant) -> Duration {
        failures.note(&std::io::Error::other("no descriptors"), now);
        failures.resume.unwrap() - now
    }

    #[test]
    fn failures_to_accept_pause_longer_each_time() {
        let (mut failures, now) = (AcceptFailures::default(), Instant::now());
        let pauses: Vec<u128> = (0..7).map(|_| note(&mut failures, now).as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        failures.in_a_row = u32::MAX;
        assert_eq!(note(&mut failures, now), LONGEST_PAUSE);
        failures.accepted(now);
        assert_eq!((failures.resume, note(&mut failures, now)), (None, ACCEPT_PAUSE));
    }

    #[test]
    fn failures_that_come_and_go_are_one_until_there_was_none_for_a_while() {
        let (mut failures, begin) = (AcceptFailures::default(), Instant::now());
        for second in 0..30 {
            let now = begin + Duration::from_secs(second);
            note(&mut failures, now);
            failures.accepted(now + ACCEPT_PAUSE);
            assert_eq!(u64::from(failures.count), second + 1, "what makes count 0 is logged");
        }
        failures.accepted(begin + Duration::from_secs(29) + CALM);
        assert_eq!(failures.count, 0);
    }
}
