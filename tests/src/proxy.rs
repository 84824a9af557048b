//! A TCP proxy that behaves like a bad network: it delays, cuts and silences connections.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

/// Forwards connections to an address until they are cut or silenced.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    silent: AtomicBool,
    /// The longest delay in milliseconds.
    delay: AtomicU64,
    open: Mutex<Vec<Pair>>,
    connections: AtomicU64,
    /// Bytes forwarded to the target, and from it.
    to_target: AtomicU64,
    to_clients: AtomicU64,
}

/// A connection. A forgotten one forwards nothing and keeps both sockets open.
#[derive(Debug)]
struct Pair {
    ends: Vec<TcpStream>,
    forgotten: Arc<AtomicBool>,
}

impl Proxy {
    /// Forwards connections from a free port of this machine to `target`, which need not listen yet.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    pub fn start(target: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // Without a target, the client's connection ends.
                let _ = of_thread.join(client, target);
            }
        });
        Ok(Proxy { address, shared })
    }

    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of connections so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// The bytes to the target and from it so far.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let Shared { to_target, to_clients, .. } = &*self.shared;
        (to_target.load(Ordering::Relaxed), to_clients.load(Ordering::Relaxed))
    }

    /// Cuts every connection in both directions. Bytes in transit are lost.
    pub fn cut(&self) {
        for pair in self.shared.open.lock().drain(..) {
            for end in pair.ends {
                let _ = end.shutdown(Shutdown::Both);
            }
        }
    }

    /// Delays everything from now on by random times up to `longest`, in order.
    pub fn delay(&self, longest: Duration) {
        self.shared.delay.store(longest.as_millis() as u64, Ordering::Relaxed);
    }

    /// Silences the network from now on, without an error. Existing and new connections forward nothing, forever.
    pub fn fall_silent(&self) {
        self.shared.silent.store(true, Ordering::SeqCst);
        for pair in self.shared.open.lock().iter() {
            pair.forgotten.store(true, Ordering::SeqCst);
        }
    }

    /// Forwards new connections again.
    pub fn come_back(&self) {
        self.shared.silent.store(false, Ordering::SeqCst);
    }
}

impl Shared {
    fn join(self: &Arc<Self>, client: TcpStream, target: SocketAddr) -> io::Result<()> {
        // Under the lock: a new connection is either forgotten from the start, or `fall_silent` finds it.
        let mut open = self.open.lock();
        if self.silent.load(Ordering::SeqCst) {
            open.push(Pair { ends: vec![client], forgotten: Arc::new(AtomicBool::new(true)) });
            return Ok(());
        }
        let server = TcpStream::connect(target)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let forgotten = Arc::<AtomicBool>::default();
        let ends = vec![client.try_clone()?, server.try_clone()?];
        open.push(Pair { ends, forgotten: Arc::clone(&forgotten) });
        drop(open);
        self.connections.fetch_add(1, Ordering::Relaxed);
        for inbound in [true, false] {
            let (shared, forgotten) = (Arc::clone(self), Arc::clone(&forgotten));
            let ends = (client.try_clone()?, server.try_clone()?);
            thread::spawn(move || {
                let ((from, to), count) =
                    if inbound { (ends, &shared.to_target) } else { ((ends.1, ends.0), &shared.to_clients) };
                forward(from, to, &forgotten, &shared.delay, count);
            });
        }
        Ok(())
    }
}

fn forward(
    mut from: TcpStream,
    mut to: TcpStream,
    forgotten: &AtomicBool,
    delay: &AtomicU64,
    count: &AtomicU64,
) {
    let mut buffer = [0; 4096];
    loop {
        let read = from.read(&mut buffer);
        thread::sleep(Duration::from_millis(fastrand::u64(..=delay.load(Ordering::Relaxed))));
        if forgotten.load(Ordering::SeqCst) {
            // Everything is lost, the end of the connection too.
            return;
        }
        match read {
            Ok(size @ 1..) if to.write_all(&buffer[..size]).is_ok() => {
                count.fetch_add(size as u64, Ordering::Relaxed);
            }
            _ => break,
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
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

    fn client(proxy: &Proxy) -> TcpStream {
        let stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        stream
    }

    fn echo(stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(b"x")?;
        stream.read_exact(&mut [0])
    }

    #[test]
    fn silenced_connections_stay_open_and_silent_and_new_ones_work_again() {
        let proxy = Proxy::start(echoing()).unwrap();
        let mut before = client(&proxy);
        echo(&mut before).unwrap();
        proxy.fall_silent();
        let mut during = client(&proxy);
        for stream in [&mut before, &mut during] {
            assert_eq!(echo(stream).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
        proxy.come_back();
        echo(&mut client(&proxy)).unwrap();
        for stream in [&mut before, &mut during] {
            assert_eq!(echo(stream).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
        assert_eq!((proxy.connections(), proxy.bytes()), (2, (2, 2)));
    }

    #[test]
    fn a_cut_connection_ends_on_both_sides() {
        let proxy = Proxy::start(echoing()).unwrap();
        let mut stream = client(&proxy);
        echo(&mut stream).unwrap();
        proxy.cut();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
}
