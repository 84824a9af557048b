use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::response::{Head, Parser, Step};
use crate::target::Failure;

/// Read at a time, in bytes.
const PIECE: usize = 16 * 1024;

/// One connection to a server.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    /// What was read and not used yet.
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: Vec::with_capacity(PIECE) })
    }

    /// Whether the server has neither closed the connection nor sent what nobody asked for.
    pub(super) fn is_open(&self) -> bool {
        let quiet = self.stream.try_read(&mut [0]);
        quiet.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    pub(super) async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await
    }

    /// Reads a response, its body into `body`.
    pub(super) async fn receive(&mut self, body: &mut Vec<u8>) -> Result<Head, Failure> {
        self.buffer.clear();
        let mut parser = Parser::default();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return parser.closed();
            }
            if let Step::Done(head) = parser.step(&mut self.buffer, body)? {
                return Ok(head);
            }
            self.buffer.reserve(PIECE);
        }
    }
}
