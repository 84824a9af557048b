//! Distinguishes a paused mGBA from a dead connection.
//!
//! In both cases, no answers arrive. If the other machine is gone, it acknowledges no bytes, and the system ends the
//! connection. But a router, a proxy or a tunnel that has lost the connection's state may still acknowledge bytes. So
//! while a connection is silent, the link asks the script on a second connection. If the script answers there, the
//! silent connection is dead.

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until};

use crate::{Found, probe};

/// Shortest and longest time between two attempts. While mGBA is paused, each attempt leaves a connection in its listen
/// queue, which can hold 512 connections.
const FIRST: Duration = Duration::from_millis(500);
const LAST: Duration = Duration::from_secs(120);
/// The time limit of an attempt is the time since the first attempt, divided by this, but at least `FIRST` and at most
/// `LAST`.
const SHARE: u32 = 8;
/// After a pause, the script answers on all of its connections within this time.
const SPREAD: Duration = Duration::from_millis(250);
/// In bytes per second. On a network that is at least this fast, the time to send requests does not count as silence.
const SLOWEST: f64 = 128.0 * 1024.0;

/// The error message for a dead connection.
pub(crate) const DEAD: &str = "it is dead: the script answers on another connection, but not on this one";

/// The longest time that this many bytes may take to reach the script, which answers only after it has received them.
pub(crate) fn upload_time(bytes: usize) -> Duration {
    Duration::from_secs_f64(bytes as f64 / SLOWEST)
}

/// Completes shortly after the script at `address` has answered on another connection. Drop the future if anything
/// arrives on the silent connection.
pub(crate) async fn script_answers_elsewhere(address: String) {
    let begun = Instant::now();
    loop {
        let now = Instant::now();
        let limit = ((now - begun) / SHARE).clamp(FIRST, LAST);
        if let Found::Script(_) = probe(&address, limit).await {
            return sleep(SPREAD).await;
        }
        sleep_until((now + limit).into()).await;
    }
}

/// Checks whether a silent connection is dead. Holds the running check, if there is one.
#[derive(Default)]
pub(crate) struct SilenceCheck(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl SilenceCheck {
    /// Starts the check of a connection to `address`, unless it is already running.
    pub fn start(&mut self, address: &str) {
        self.0.get_or_insert_with(|| Box::pin(script_answers_elsewhere(address.to_owned())));
    }

    /// Ends the check, because something has arrived on the connection.
    pub fn cancel(&mut self) {
        self.0 = None;
    }

    /// Completes when the check finds that the connection is dead. Never completes if no check is running.
    pub async fn confirmed_dead(&mut self) {
        match &mut self.0 {
            Some(check) => check.await,
            None => std::future::pending().await,
        }
    }
}
