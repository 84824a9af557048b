//! A TCP proxy that does what networks do: it delays, it cuts connections, and it forgets them.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

/// Forwards connections to an address until they are cut, or it falls silent.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    silent: AtomicBool,
    /// Milliseconds by which anything may be delayed.
    delay: AtomicU64,
    open: Mutex<Vec<Pair>>,
    connections: AtomicU64,
    /// Bytes forwarded to the target, and from it.
    to_target: AtomicU64,
    to_clients: AtomicU64,
}

/// A connection. A forgotten one forwards nothing any more and keeps its ends open.
#[derive(Debug)]
struct Pair {
    ends: Vec<TcpStream>,
    forgotten: Arc<AtomicBool>,
}

impl Proxy {
    /// Forwards what connects to a free port of this machine to `target`, which need not listen yet.
    ///
    /// # Errors
    ///
    /// If the system gives no port.
    pub fn start(target: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A client whose target is absent sees its connection end.
                let _ = of_thread.join(client, target);
            }
        });
        Ok(Proxy { address, shared })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections that were made through it so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Bytes that went to the target so far, and that came from it.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let Shared { to_target, to_clients, .. } = &*self.shared;
        (to_target.load(Ordering::Relaxed), to_clients.load(Ordering::Relaxed))
    }

    /// Cuts every connection that stands, in both directions; bytes under way are lost.
    pub fn cut(&self) {
        for pair in self.shared.open.lock().drain(..) {
            for end in pair.ends {
                let _ = end.shutdown(Shutdown::Both);
            }
        }
    }

    /// From now on whatever comes is delayed, each time by another time up to `longest`; nothing overtakes.
    pub fn delay(&self, longest: Duration) {
        self.shared.delay.store(longest.as_millis() as u64, Ordering::Relaxed);
    }

    /// From now on nothing gets through, and neither side notices. The connections that stand, and those that are made now,
    /// lead nowhere for ever.
    pub fn fall_silent(&self) {
        self.shared.silent.store(true, Ordering::SeqCst);
        for pair in self.shared.open.lock().iter() {
            pair.forgotten.store(true, Ordering::SeqCst);
        }
    }

    /// From now on new connections get through.
    pub fn come_back(&self) {
        self.shared.silent.store(false, Ordering::SeqCst);
    }
}

impl Shared {
    fn join(self: &Arc<Self>, client: TcpStream, target: SocketAddr) -> io::Result<()> {
        // Under the lock, so that it is either forgotten from the beginning or found by who falls silent.
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
            // What came is lost, an end too.
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
    fn what_saw_silence_stays_silent_and_open_and_newcomers_get_through_again() {
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
    fn what_is_cut_ends_on_both_sides() {
        let proxy = Proxy::start(echoing()).unwrap();
        let mut stream = client(&proxy);
        echo(&mut stream).unwrap();
        proxy.cut();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
}
