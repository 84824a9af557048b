use std::io;
use std::pin::Pin;
use std::task::{Context, Waker};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};

use super::connector::{Connector, Stream};
use super::response::{Head, Parser, Step};
use crate::target::{Call, Failure};

/// The size of the buffer for a read, in bytes.
const PIECE: usize = 16 * 1024;

/// One connection to a server, for one HTTP/1.1 request at a time.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    /// Bytes that were read and not used yet.
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(connector: &Connector) -> io::Result<Connection> {
        Ok(Connection { stream: connector.connect().await?, buffer: Vec::with_capacity(PIECE) })
    }

    /// Returns the connection, unless the server has closed it or sent data without a request.
    pub(super) fn if_open(mut self) -> Option<Connection> {
        let mut byte = [0];
        let mut context = Context::from_waker(Waker::noop());
        let quiet =
            Pin::new(&mut self.stream).poll_read(&mut context, &mut ReadBuf::new(&mut byte)).is_pending();
        if quiet { Some(self) } else { None }
    }

    pub(super) async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await?;
        // With TLS, the stream keeps data that did not fit into the socket's buffer.
        self.stream.flush().await
    }

    /// Reads a response, and puts its body into the call's reply. `bodiless` is true if the request was a HEAD.
    pub(super) async fn receive(&mut self, call: &mut Call<'_>, bodiless: bool) -> Result<Head, Failure> {
        self.buffer.clear();
        let mut parser = Parser::new(bodiless);
        loop {
            let count = self.stream.read_buf(&mut self.buffer).await?;
            if count == 0 {
                return parser.closed();
            }
            call.mark_received(count);
            if let Step::Done(head) = parser.step(&mut self.buffer, call.reply)? {
                return Ok(head);
            }
            self.buffer.reserve(PIECE);
        }
    }
}
