//! Ports for servers that cannot be asked to choose one themselves, such as a script in mGBA.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the range from which Linux takes ports for outgoing connections, so that none of those gets in the way.
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
    // Processes that run side by side start far from each other.
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ports_are_different_and_can_be_bound() {
        let ports: HashSet<u16> = (0..50).map(|_| free()).collect();
        assert_eq!(ports.len(), 50);
        TcpListener::bind((Ipv4Addr::LOCALHOST, *ports.iter().next().unwrap())).unwrap();
    }
}
