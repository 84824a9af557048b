//! Ports that no other program gets. This file is not a module of this crate: the tests of other crates include it by
//! its path.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

/// Reserves a port on which nothing listens. No other program gets it while the socket exists. On Linux, the program
/// for which it is reserved can bind it again with the option `SO_REUSEADDR`, because this socket does not listen.
pub fn reserved_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("an option");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let address = socket.local_addr().expect("an address");
    (socket, address)
}
