//! Pictures and sound.

mod audio;
mod multipart;
mod screen;
mod slow;
mod sockets;
mod video;
mod viewer;

use crate::support::{KEY, Reply, Server};

/// Sends a request that opens a WebSocket, and returns the reply.
fn handshake(server: &Server, target: &str) -> Reply {
    server.upgrade(target, KEY).1
}
