//! The signals that stop the program.

use anyhow::Context;

/// Waits for Ctrl+C, SIGTERM or SIGHUP; gives its name.
#[cfg(unix)]
pub fn stop() -> anyhow::Result<impl Future<Output = &'static str>> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
            _ = hangup.recv() => "SIGHUP",
        }
    })
}

/// Waits for Ctrl+C.
#[cfg(not(unix))]
pub fn stop() -> anyhow::Result<impl Future<Output = &'static str>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
        "Ctrl+C"
    })
}

/// Exit code of a program that Ctrl+C ended.
pub const INTERRUPTED: i32 = 130;

/// Waits for Ctrl+C.
pub async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
