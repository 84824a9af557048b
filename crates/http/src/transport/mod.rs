//! Bytes and connections. Nothing here depends on routes, access rules or emulators, except that the code checks
//! whether a path is under `/v1`, because errors there have another format.
//!
//! - `listener`: accepts connections and counts them;
//! - `connection`: serves one connection; `closing`: ends it, and has the replies to requests that reach no route;
//! - `activity`: what a connection is doing; `guard` uses this to find clients that are slow or idle, or send too much;
//! - `tls`: connections with or without TLS, and the certificate;
//! - `framing`: finds request heads that a proxy might understand differently (request smuggling);
//! - `incoming`: reads bodies, and limits the memory for what arrives;
//! - `streams`: limits how many streams are open.

use std::future::pending;

use tokio::sync::watch;

pub(crate) mod activity;
pub(crate) mod closing;
pub(crate) mod connection;
pub(crate) mod framing;
pub(crate) mod guard;
pub(crate) mod incoming;
pub(crate) mod listener;
pub(crate) mod streams;
pub(crate) mod tls;

/// The output of `work`. Without work, this never returns.
pub(crate) async fn or_never<T>(work: Option<impl Future<Output = T>>) -> T {
    match work {
        Some(work) => work.await,
        None => pending().await,
    }
}

/// The signal that the server stops. Endless replies and long waits then end.
#[derive(Debug, Clone)]
pub(crate) struct Stopping(watch::Receiver<bool>);

impl Stopping {
    /// A signal that is given when `stop` becomes true.
    pub(crate) fn new(stop: watch::Receiver<bool>) -> Stopping {
        Stopping(stop)
    }

    pub(crate) async fn wait(&self) {
        // An error means that the server itself is gone.
        let _ = self.0.clone().wait_for(|stopping| *stopping).await;
    }
}
