use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::access::Peer;
use crate::app::{App, Limits, Site};
use crate::connection::{Shared, last_reply, run};
use crate::guard::Refusal;
use crate::routes::router;

/// Pause after an `accept` that failed, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

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
}

impl Door {
    async fn accept_until(&mut self, listener: &TcpListener, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, address)) => self.admit(stream, address.ip()),
                    Err(error) => {
                        warn!("cannot accept a connection: {error}");
                        sleep(ACCEPT_PAUSE).await;
                    }
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
