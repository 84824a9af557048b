//! Telling a paused mGBA from a connection that leads nowhere any more.
//!
//! Neither answers. A machine that is gone acknowledges nothing, and the system ends the connection by itself; but a
//! router, a proxy or a tunnel that has forgotten a connection may go on acknowledging for it. So while a connection is
//! silent, the script is asked on another one: if it answers there and still not here, this one is of no more use.

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until};

use crate::{Found, probe};

/// Shortest and longest time between two tries. Each leaves a connection in the queue of a paused mGBA, which holds 512.
const FIRST: Duration = Duration::from_millis(500);
const LAST: Duration = Duration::from_secs(120);
/// A try may take this share of the silence so far.
const SHARE: u32 = 8;
/// A script that goes on after a pause answers all its connections at about the same time; for so long it may be only
/// about.
const ABOUT: Duration = Duration::from_millis(250);

/// What became of a connection on which nothing is heard while others are answered.
pub(crate) const VERDICT: &str =
    "nothing comes through it any more, while the script answers on another connection";

/// Ends when the script at `address` has answered on another connection, and a moment has passed since. To be dropped
/// if anything is heard on this one.
pub(crate) async fn others_are_answered(address: String) {
    let begun = Instant::now();
    loop {
        let now = Instant::now();
        let limit = ((now - begun) / SHARE).clamp(FIRST, LAST);
        if let Found::Script(_) = probe(&address, limit).await {
            return sleep(ABOUT).await;
        }
        sleep_until((now + limit).into()).await;
    }
}

/// Whether a connection that was silent for a while leads nowhere.
#[derive(Default)]
pub(crate) struct Suspicion(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Suspicion {
    /// The connection to `address` is silent; may be said again and again.
    pub fn raise(&mut self, address: &str) {
        self.0.get_or_insert_with(|| Box::pin(others_are_answered(address.to_owned())));
    }

    /// Something was heard.
    pub fn dispel(&mut self) {
        self.0 = None;
    }

    /// Ends when it is found to be true: never, if there is none.
    pub async fn confirmed(&mut self) {
        match &mut self.0 {
            Some(suspicion) => suspicion.await,
            None => std::future::pending().await,
        }
    }
}
