use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::app::{App, Limits};
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
    let shared = Arc::new(Shared {
        router: router(app.clone(), stopped.clone()),
        app,
        last_call: AtomicBool::new(false),
    });
    let mut door = Door { shared, stopped, connections: JoinSet::new(), turned_away: JoinSet::new() };

    door.accept_until(&listener, shutdown).await;
    door.accept_until(&listener, sleep(last_call)).await;
    door.shared.last_call.store(true, Relaxed);
    door.accept_until(&listener, sleep(last_call)).await;
    drop(listener);
    let _ = stop.send(true);
    let mut connections = door.connections;
    let ended = async { while connections.join_next().await.is_some() {} };
    if timeout(grace, ended).await.is_err() {
        warn!(
            "{} connections were cut off: their requests took longer than {} s",
            connections.len(),
            grace.as_secs()
        );
    }
}

/// Lets clients in.
struct Door {
    shared: Arc<Shared>,
    /// Turns true when connections that lie idle are to end.
    stopped: watch::Receiver<bool>,
    connections: JoinSet<()>,
    turned_away: JoinSet<()>,
}

impl Door {
    async fn accept_until(&mut self, listener: &TcpListener, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.admit(stream),
                    Err(error) => {
                        warn!("cannot accept a connection: {error}");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = self.connections.join_next() => {}
                Some(_) = self.turned_away.join_next() => {}
            }
        }
    }

    fn admit(&mut self, stream: TcpStream) {
        if self.connections.len() < self.shared.app.limits.max_connections {
            self.connections.spawn(run(stream, self.shared.clone(), self.stopped.clone()));
        } else if self.turned_away.len() < TURNED_AWAY {
            self.turned_away.spawn(turn_away(stream, self.shared.clone()));
        }
    }
}

async fn turn_away(mut stream: TcpStream, shared: Arc<Shared>) {
    last_reply(&mut stream, Refusal::TOO_MANY, &shared.app).await;
}
