//! Free ports for servers that cannot choose a port themselves, such as a script in mGBA.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, process};

use procfs::net::{TcpState, tcp};

use crate::{Error, Result};

/// The first port of the range. The range lies below the ports that Linux uses for outgoing connections, so no outgoing
/// connection takes one of its ports.
const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// Returns a port on which nothing listens at 127.0.0.1. Within one process, it never returns the same port twice.
///
/// # Panics
/// If every port of the range is in use.
#[must_use]
pub fn free() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes that run at the same time begin their search at different ports.
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

/// Whether something listens on this port at 127.0.0.1 or at 0.0.0.0. Makes no connection.
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
        // If another test starts a child process at this moment, the child inherits the socket and keeps it open until
        // `exec`.
        until("nothing listened", Duration::from_secs(5), || Ok(!is_listened_on(port)?)).unwrap();
    }
}
