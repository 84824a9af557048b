//! This process: the signals that stop it, and the system's limit on open files, which also limits connections.

use anyhow::Context;

/// Waits for SIGINT (Ctrl+C), SIGTERM or SIGHUP, and returns the signal's name.
#[cfg(unix)]
pub fn stop_signal() -> anyhow::Result<impl Future<Output = &'static str>> {
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

/// Waits for Ctrl+C, Ctrl+Break or the closing of the console window, and returns the name of the event.
#[cfg(windows)]
pub fn stop_signal() -> anyhow::Result<impl Future<Output = &'static str>> {
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};
    let failed = "cannot listen for Ctrl+C";
    let mut interrupt = ctrl_c().context(failed)?;
    let mut pause = ctrl_break().context(failed)?;
    let mut close = ctrl_close().context(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => "Ctrl+C",
            _ = pause.recv() => "Ctrl+Break",
            _ = close.recv() => "the closing of the console window",
        }
    })
}

/// The exit code of a program that was stopped with Ctrl+C or, in `framewire bench`, with any signal.
pub const INTERRUPTED: u8 = 130;

/// Waits for Ctrl+C, or forever if the system cannot report it. Listens from this call on, even before the first poll.
pub fn interrupt() -> impl Future<Output = ()> {
    #[cfg(unix)]
    let listener = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
    #[cfg(windows)]
    let listener = tokio::signal::windows::ctrl_c();
    async {
        match listener {
            Ok(mut listener) => drop(listener.recv().await),
            Err(_) => std::future::pending().await,
        }
    }
}

/// The lowest file descriptor that select(2) cannot handle. libmgba's script sockets call select(2); a socket with
/// this descriptor or a higher one would end the whole process.
#[cfg(unix)]
const SELECT: u64 = 1024;

/// The number of descriptors that HTTP connections may not use: 400 for the clients of a script that an embedded core
/// runs, 64 for clients that are being refused, and 48 for files, the runtime and listening sockets.
#[cfg(unix)]
const RESERVED: u64 = 512;

/// Raises the soft limit on open files to the hard limit: the usual 1,024 is less than the server's own limit on
/// connections. With `scripts`, sets the soft limit so that libmgba's script sockets can handle every descriptor.
/// Returns the number of HTTP connections that the new limit allows.
#[cfg(unix)]
pub fn set_limit(scripts: bool) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = if scripts { SELECT } else { u64::MAX };
    let limit = getrlimit(Resource::Nofile);
    let target = limit.maximum.unwrap_or(u64::MAX).min(most);
    let target = if target == u64::MAX { None } else { Some(target) };
    let current = match setrlimit(Resource::Nofile, Rlimit { current: target, ..limit }) {
        Ok(()) => target,
        Err(error) => {
            tracing::debug!("the limit on open files stays at {:?}: {error}", limit.current);
            limit.current
        }
    };
    let current = current.unwrap_or(u64::MAX);
    // Even with a low limit, half of the descriptors are for HTTP.
    current.saturating_sub(RESERVED).max(current / 2).try_into().unwrap_or(usize::MAX)
}

/// Other systems do not limit open files, and their script sockets accept any descriptor.
#[cfg(not(unix))]
pub fn set_limit(_scripts: bool) -> usize {
    usize::MAX
}
