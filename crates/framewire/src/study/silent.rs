//! A network between a client and a script that can fall silent.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use socket2::{SockFilter, SockRef};

/// A packet filter that lets nothing pass: it returns 0 bytes of each packet.
const NOTHING: [SockFilter; 1] = [SockFilter::new(0x06, 0, 0, 0)];

/// Forwards connections. While it is silent, packets that reach it vanish before the system sees them: nothing is
/// acknowledged, refused or ended, as when a cable is pulled. What TCP still repeats when it is back gets through.
#[derive(Debug)]
pub struct Network {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    listener: TcpListener,
    over: AtomicBool,
    wires: Mutex<Wires>,
}

#[derive(Debug, Default)]
struct Wires {
    silent: bool,
    /// Both ends of the connections that are there.
    pairs: HashMap<u64, [TcpStream; 2]>,
}

impl Network {
    /// A network to `target`.
    ///
    /// # Errors
    /// If the system gives no port.
    pub fn start(target: SocketAddr) -> io::Result<Network> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Shared { listener, over: AtomicBool::new(false), wires: Mutex::default() };
        let shared = Arc::new(shared);
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for (number, client) in (0..).zip(of_thread.listener.incoming()) {
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
    ///
    /// # Errors
    /// If the system does not take the filter.
    pub fn fall_silent(&self) -> io::Result<()> {
        let mut wires = self.shared.wires();
        wires.silent = true;
        SockRef::from(&self.shared.listener).attach_filter(&NOTHING)?;
        wires.pairs.values().flatten().try_for_each(|end| SockRef::from(end).attach_filter(&NOTHING))
    }

    /// From now on everything gets through.
    ///
    /// # Errors
    /// If the system keeps the filter.
    pub fn come_back(&self) -> io::Result<()> {
        let mut wires = self.shared.wires();
        wires.silent = false;
        SockRef::from(&self.shared.listener).detach_filter()?;
        wires.pairs.values().flatten().try_for_each(|end| SockRef::from(end).detach_filter())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Wakes the threads. If it is silent still, that of the listener stays until the program's end.
        let _ = SockRef::from(&self.shared.listener).shutdown(Shutdown::Both);
        for end in self.shared.wires().pairs.values().flatten() {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn wires(&self) -> MutexGuard<'_, Wires> {
        self.wires.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(self: &Arc<Self>, number: u64, client: TcpStream, target: SocketAddr) -> io::Result<()> {
        let server = TcpStream::connect(target)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let mut wires = self.wires();
        if wires.silent {
            // It came in the last moment before the silence.
            SockRef::from(&client).attach_filter(&NOTHING)?;
            SockRef::from(&server).attach_filter(&NOTHING)?;
        }
        wires.pairs.insert(number, [client.try_clone()?, server.try_clone()?]);
        drop(wires);
        for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
            let shared = Arc::clone(self);
            thread::spawn(move || shared.forward(number, from, to));
        }
        Ok(())
    }

    fn forward(&self, number: u64, mut from: TcpStream, mut to: TcpStream) {
        let mut piece = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            if to.write_all(&piece[..count]).is_err() {
                break;
            }
        }
        for end in self.wires().pairs.remove(&number).into_iter().flatten() {
            let _ = end.shutdown(Shutdown::Both);
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
    fn in_silence_nothing_arrives_or_ends_and_afterwards_everything_does() {
        let network = Network::start(echoing()).unwrap();
        let mut client = client(&network);
        echo(&mut client).unwrap();
        network.fall_silent().unwrap();
        assert_eq!(echo(&mut client).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let newcomer = TcpStream::connect_timeout(&network.address(), Duration::from_millis(300));
        assert_eq!(newcomer.unwrap_err().kind(), io::ErrorKind::TimedOut);

        network.come_back().unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // What was sent in the silence, repeated by the system.
        client.read_exact(&mut [0]).unwrap();
        echo(&mut client).unwrap();
        echo(&mut TcpStream::connect(network.address()).unwrap()).unwrap();
    }
}
