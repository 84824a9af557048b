//! A TCP proxy that simulates network failures: it delays data, cuts connections, stops forwarding, and loses packets.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use socket2::{SockFilter, SockRef};

/// A packet filter that accepts 0 bytes of each packet, so it drops all of them.
const DROP_ALL: [SockFilter; 1] = [SockFilter::new(0x06, 0, 0, 0)];

/// Forwards connections to an address. Dropping it ends them.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    listener: TcpListener,
    closed: AtomicBool,
    silent: AtomicBool,
    /// The longest delay of a piece of data, in milliseconds.
    delay: AtomicU64,
    open: Mutex<Open>,
    connections: AtomicU64,
    /// Bytes forwarded from clients to the target.
    to_target: AtomicU64,
    /// Bytes forwarded from the target to clients.
    to_clients: AtomicU64,
}

/// The connections, and whether their packets are dropped.
#[derive(Debug, Default)]
struct Open {
    pairs: Vec<Pair>,
    unplugged: bool,
}

/// A connection. A forgotten connection forwards no more data, but both of its sockets stay open.
#[derive(Debug)]
struct Pair {
    ends: Vec<TcpStream>,
    forgotten: Arc<AtomicBool>,
}

impl Proxy {
    /// Forwards connections from a free port of this machine to `target`, which does not have to listen yet.
    pub fn start(target: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            listener,
            closed: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            delay: AtomicU64::new(0),
            open: Mutex::default(),
            connections: AtomicU64::new(0),
            to_target: AtomicU64::new(0),
            to_clients: AtomicU64::new(0),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in accepting.listener.incoming().map_while(Result::ok) {
                if accepting.closed.load(Ordering::Relaxed) {
                    return;
                }
                // If nothing listens at the target's address, the client's connection ends at once.
                let _ = accepting.join(client, target);
            }
        });
        Ok(Proxy { address, shared })
    }

    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of connections that it has made to the target so far. Clients that connect while it is silent do not
    /// count.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// The numbers of bytes sent to the target and received from it so far.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let Shared { to_target, to_clients, .. } = &*self.shared;
        (to_target.load(Ordering::Relaxed), to_clients.load(Ordering::Relaxed))
    }

    /// Closes every connection, in both directions. Data that is still on its way is lost.
    pub fn cut(&self) {
        for pair in self.shared.open.lock().pairs.drain(..) {
            for end in pair.ends {
                let _ = end.shutdown(Shutdown::Both);
            }
        }
    }

    /// From now on, delays each piece of data by a random time of at most `longest`. The data stays in order.
    pub fn delay(&self, longest: Duration) {
        self.shared.delay.store(longest.as_millis() as u64, Ordering::Relaxed);
    }

    /// From now on, forwards no data, and neither side notices. Connections that exist now never forward data again,
    /// nor do connections that are made before [`Proxy::come_back`].
    pub fn fall_silent(&self) {
        self.shared.silent.store(true, Ordering::SeqCst);
        for pair in &self.shared.open.lock().pairs {
            pair.forgotten.store(true, Ordering::SeqCst);
        }
    }

    /// From now on, new connections forward data again.
    pub fn come_back(&self) {
        self.shared.silent.store(false, Ordering::SeqCst);
    }

    /// Drops all incoming packets before the system's TCP handles them, as if a cable were unplugged. So nothing is
    /// acknowledged, and no connection is refused or closed.
    pub fn unplug(&self) -> io::Result<()> {
        self.set_unplugged(true, |socket| socket.attach_filter(&DROP_ALL))
    }

    /// Lets packets pass again. TCP retransmits lost packets, so no connection loses data.
    pub fn plug_in(&self) -> io::Result<()> {
        self.set_unplugged(false, |socket| socket.detach_filter())
    }

    fn set_unplugged(&self, unplugged: bool, set: impl Fn(SockRef<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut open = self.shared.open.lock();
        open.unplugged = unplugged;
        set(SockRef::from(&self.shared.listener))?;
        open.pairs.iter().flat_map(|pair| &pair.ends).try_for_each(|end| set(SockRef::from(end)))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        // This wakes the thread that accepts connections, even if the proxy is unplugged.
        let _ = SockRef::from(&self.shared.listener).shutdown(Shutdown::Both);
        self.cut();
    }
}

impl Shared {
    fn join(self: &Arc<Self>, client: TcpStream, target: SocketAddr) -> io::Result<()> {
        // The connection is made while the lock is held, so that `fall_silent` and `unplug` cannot miss it.
        let mut open = self.open.lock();
        if self.silent.load(Ordering::SeqCst) {
            open.pairs.push(Pair { ends: vec![client], forgotten: Arc::new(AtomicBool::new(true)) });
            return Ok(());
        }
        let server = TcpStream::connect(target)?;
        for end in [&client, &server] {
            end.set_nodelay(true)?;
            if open.unplugged {
                SockRef::from(end).attach_filter(&DROP_ALL)?;
            }
        }
        let forgotten = Arc::<AtomicBool>::default();
        let ends = vec![client.try_clone()?, server.try_clone()?];
        open.pairs.push(Pair { ends, forgotten: Arc::clone(&forgotten) });
        drop(open);
        self.connections.fetch_add(1, Ordering::Relaxed);
        for inbound in [true, false] {
            let (shared, forgotten) = (Arc::clone(self), Arc::clone(&forgotten));
            let ends = (client.try_clone()?, server.try_clone()?);
            thread::spawn(move || {
                if inbound {
                    forward(ends.0, ends.1, &forgotten, &shared.delay, &shared.to_target);
                } else {
                    forward(ends.1, ends.0, &forgotten, &shared.delay, &shared.to_clients);
                }
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
            // The data is dropped, and `to` stays open, so the other side does not notice the end of the connection.
            return;
        }
        match read {
            Ok(size @ 1..) => {
                // Counted before it is sent, so that the receiver of the data sees a count that includes it.
                count.fetch_add(size as u64, Ordering::Relaxed);
                if to.write_all(&buffer[..size]).is_err() {
                    break;
                }
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
        // This only ends a test that hangs.
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn echo(stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(b"x")?;
        stream.read_exact(&mut [0])
    }

    /// Checks that no echo comes.
    #[track_caller]
    fn no_echo(stream: &mut TcpStream) {
        let limit = stream.read_timeout().unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        assert_eq!(echo(stream).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        stream.set_read_timeout(limit).unwrap();
    }

    #[test]
    fn silenced_connections_never_forward_data_again_but_new_connections_do() {
        let proxy = Proxy::start(echoing()).unwrap();
        let mut before = client(&proxy);
        echo(&mut before).unwrap();
        proxy.fall_silent();
        let mut during = client(&proxy);
        for stream in [&mut before, &mut during] {
            no_echo(stream);
        }
        proxy.come_back();
        echo(&mut client(&proxy)).unwrap();
        for stream in [&mut before, &mut during] {
            no_echo(stream);
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

    #[test]
    fn an_unplugged_proxy_delivers_nothing_and_a_plugged_in_one_delivers_everything() {
        let proxy = Proxy::start(echoing()).unwrap();
        let mut client = client(&proxy);
        echo(&mut client).unwrap();
        proxy.unplug().unwrap();
        no_echo(&mut client);
        let newcomer = TcpStream::connect_timeout(&proxy.address(), Duration::from_millis(300));
        assert_eq!(newcomer.unwrap_err().kind(), io::ErrorKind::TimedOut);

        proxy.plug_in().unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // The system retransmits the byte that was sent while the proxy was unplugged.
        client.read_exact(&mut [0]).unwrap();
        echo(&mut client).unwrap();
        echo(&mut TcpStream::connect(proxy.address()).unwrap()).unwrap();
    }
}
