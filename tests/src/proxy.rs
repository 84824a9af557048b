//! A TCP proxy that cuts connections, as networks do.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Forwards connections to an address until they are cut.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
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
        let open = Arc::new(Mutex::new(Vec::new()));
        let pairs = open.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A client whose target is absent sees its connection end.
                if let Ok(server) = TcpStream::connect(target) {
                    let _ = forward(&client, &server, &pairs);
                }
            }
        });
        Ok(Proxy { address, open })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts every connection that stands, in both directions; bytes under way are lost.
    ///
    /// # Panics
    ///
    /// Never: nothing panics while it holds the lock.
    pub fn cut(&self) {
        for stream in self.open.lock().expect("not poisoned").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn forward(client: &TcpStream, server: &TcpStream, open: &Mutex<Vec<TcpStream>>) -> io::Result<()> {
    for stream in [client, server] {
        stream.set_nodelay(true)?;
        open.lock().expect("not poisoned").push(stream.try_clone()?);
    }
    for (mut from, mut to) in
        [(client.try_clone()?, server.try_clone()?), (server.try_clone()?, client.try_clone()?)]
    {
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                if to.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}
