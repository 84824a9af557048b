//! Ports for servers that cannot be asked to choose one themselves, such as a script in mGBA.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, process};

use procfs::net::{TcpState, tcp};

use crate::{Error, Result};

/// The first port. All of the ports are below the range from which Linux takes ports for outgoing connections, so no
/// outgoing connection uses one of them.
const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// A port of 127.0.0.1 that nothing listens on, never the same twice in one process.
///
/// # Panics
///
/// If every port of the range is taken.
#[must_use]
pub fn free() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes that run at the same time start at different places in the range.
    let start = process::id().wrapping_mul(197);
    for _ in 0..COUNT {
        let offset = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = u16::try_from(FIRST + offset).expect("the range ends below 65,536");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port between {FIRST} and {}", FIRST + COUNT);
}

/// Whether something listens on this port of 127.0.0.1 or of every address, found without connecting to it.
///
/// # Errors
///
/// [`Error::Io`] if there is no `/proc/net/tcp`.
pub fn is_listened_on(port: u16) -> Result<bool> {
    let sockets = tcp().map_err(|error| Error::io("read /proc/net/tcp")(io::Error::other(error)))?;
    let addresses = [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED].map(|ip| SocketAddr::from((ip, port)));
    Ok(sockets
        .iter()
        .any(|socket| socket.state == TcpState::Listen && addresses.contains(&socket.local_address)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;
    use crate::until;

    #[test]
    fn ports_are_different() {
        let ports: HashSet<u16> = (0..50).map(|_| free()).collect();
        assert_eq!(ports.len(), 50);
    }

    #[test]
    fn a_listener_is_seen_while_it_listens() {
        let port = free();
        assert!(!is_listened_on(port).unwrap());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(is_listened_on(port).unwrap());
        drop(listener);
        // A child that another test starts at this moment may hold the port until it runs its program.
        until("nobody listened", Duration::from_secs(5), || Ok(!is_listened_on(port)?)).unwrap();
    }
}
