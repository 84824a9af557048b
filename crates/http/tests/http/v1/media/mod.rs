//! Pictures and sound.

mod audio;
mod multipart;
mod screen;
mod slow;
mod sockets;
mod video;
mod viewer;

use std::io::Write;

use crate::support::{Reply, Server};

/// Sends a request that opens a WebSocket, and returns the reply.
fn handshake(server: &Server, target: &str) -> Reply {
    let mut stream = server.connect();
    write!(
        stream,
        "GET {target} HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .unwrap();
    Reply::read(&mut stream)
}
