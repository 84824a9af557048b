use std::io;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::dialect::Codec;
use super::{Dialect, ExchangeError, Options};
use crate::socket;

/// Read at a time, in bytes.
const PIECE: usize = 16 * 1024;

/// One connection, one message at a time.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    codec: Codec,
    out: Vec<u8>,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects and, where the dialect has one, exchanges the greeting.
    pub(super) async fn open(
        address: &str,
        dialect: &Dialect,
        options: &Options,
    ) -> Result<Self, ExchangeError> {
        let stream = socket::connect(address, options.connect_timeout).await?;
        let mut connection =
            Connection { stream, codec: dialect.codec(), out: Vec::new(), buffer: Vec::with_capacity(PIECE) };
        if let Some(greeting) = connection.codec.greeting() {
            connection.stream.write_all(&greeting).await?;
            while !connection.codec.greeted() {
                connection.read().await?;
            }
        }
        Ok(connection)
    }

    /// Whether the peer has neither closed it nor sent what nobody asked for.
    pub(super) fn is_open(&self) -> bool {
        let quiet = self.stream.try_read(&mut [0]);
        quiet.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends a message and waits for its answer; `sent` is told when it is about to go out.
    pub(super) async fn exchange(
        &mut self,
        payload: &[u8],
        sent: &mut Option<Instant>,
    ) -> Result<Vec<u8>, ExchangeError> {
        self.out.clear();
        let ticket = self.codec.encode(payload, &mut self.out);
        sent.get_or_insert_with(Instant::now);
        self.stream.write_all(&self.out).await?;
        loop {
            self.read().await?;
            while let Some((answered, answer)) = self.codec.next()? {
                if answered == ticket {
                    return answer;
                }
            }
        }
    }

    /// Closes it in good order.
    pub(super) async fn close(mut self) {
        // The peer may be gone already.
        let _ = self.stream.shutdown().await;
    }

    /// Takes it apart for whoever has many messages in flight.
    pub(super) fn into_parts(self) -> (TcpStream, Codec) {
        (self.stream, self.codec)
    }

    async fn read(&mut self) -> Result<(), ExchangeError> {
        self.buffer.clear();
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err(ExchangeError::closed());
        }
        self.codec.receive(&self.buffer)
    }
}
