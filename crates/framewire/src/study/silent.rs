//! A network between a client and a script that can fall silent.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Forwards connections until it falls silent. A connection that saw silence stays silent for ever, with both its ends
/// open, as when a cable is pulled or a router forgets; those made after the network's return work.
#[derive(Debug)]
pub struct Network {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    silent: AtomicBool,
    over: AtomicBool,
    /// Both ends of the connections that are there, and whether they still work.
    pairs: Mutex<HashMap<u64, Pair>>,
}

#[derive(Debug)]
struct Pair {
    ends: [TcpStream; 2],
    dead: Arc<AtomicBool>,
}

impl Network {
    /// A network to `target`.
    ///
    /// # Errors
    /// If the system gives no port.
    pub fn start(target: SocketAddr) -> io::Result<Network> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for (number, client) in (0..).zip(listener.incoming()) {
                if of_thread.over.load(Ordering::Relaxed) {
                    return;
                }
                // A connection that cannot be made ends at once.
                let _ = client.and_then(|client| of_thread.join(number, client, target));
            }
        });
        Ok(Network { address, shared })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on nothing gets through.
    pub fn fall_silent(&self) {
        self.shared.silent.store(true, Ordering::Relaxed);
        for pair in self.shared.pairs().values() {
            pair.dead.store(true, Ordering::Relaxed);
        }
    }

    /// From now on new connections get through.
    pub fn come_back(&self) {
        self.shared.silent.store(false, Ordering::Relaxed);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Wakes the threads.
        let _ = TcpStream::connect(self.address);
        for pair in self.shared.pairs().values() {
            for end in &pair.ends {
                let _ = end.shutdown(Shutdown::Both);
            }
        }
    }
}

impl Shared {
    fn pairs(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Pair>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(self: &Arc<Self>, number: u64, client: TcpStream, target: SocketAddr) -> io::Result<()> {
        // Under the lock, so that it is either found dead here or made dead by who falls silent.
        let mut pairs = self.pairs();
        let silent = self.silent.load(Ordering::Relaxed);
        // In silence nothing reaches the other side; the client's end stays open towards nobody.
        let server = if silent { client.try_clone()? } else { TcpStream::connect(target)? };
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let dead = Arc::new(AtomicBool::new(silent));
        let ends = [client.try_clone()?, server.try_clone()?];
        pairs.insert(number, Pair { ends, dead: Arc::clone(&dead) });
        drop(pairs);
        if silent {
            return Ok(());
        }
        for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
            let (shared, dead) = (Arc::clone(self), Arc::clone(&dead));
            thread::spawn(move || shared.forward(number, from, to, &dead));
        }
        Ok(())
    }

    fn forward(&self, number: u64, mut from: TcpStream, mut to: TcpStream, dead: &AtomicBool) {
        let mut piece = [0; 16 * 1024];
        loop {
            let read = from.read(&mut piece);
            if dead.load(Ordering::Relaxed) {
                // What came is lost, an end too.
                return;
            }
            match read {
                Ok(count @ 1..) if to.write_all(&piece[..count]).is_ok() => {}
                _ => break,
            }
        }
        if let Some(pair) = self.pairs().remove(&number) {
            for end in pair.ends {
                let _ = end.shutdown(Shutdown::Both);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn echoing() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || io::copy(&mut stream.try_clone().unwrap(), &mut stream));
            }
        });
        address
    }

    fn client(network: &Network) -> TcpStream {
        let stream = TcpStream::connect(network.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        stream
    }

    fn echo(stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(b"x")?;
        stream.read_exact(&mut [0])
    }

    #[test]
    fn what_saw_silence_stays_silent_and_open_and_newcomers_get_through_again() {
        let network = Network::start(echoing()).unwrap();
        let mut before = client(&network);
        echo(&mut before).unwrap();
        network.fall_silent();
        let mut during = client(&network);
        for stream in [&mut before, &mut during] {
            assert_eq!(echo(stream).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
        network.come_back();
        echo(&mut client(&network)).unwrap();
        for stream in [&mut before, &mut during] {
            assert_eq!(echo(stream).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
    }
}
