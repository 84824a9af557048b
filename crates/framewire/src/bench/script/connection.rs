use std::io;
use std::time::Duration;

use framewire_loadtest::{Call, Failure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::dialect::{Answer, Codec};
use super::{Dialect, closed};

/// Size of a read, in bytes.
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
    /// Connects within `limit` and, where the dialect has one, exchanges the greeting.
    pub(super) async fn open(address: &str, dialect: &Dialect, limit: Duration) -> Result<Self, Failure> {
        let stream = timeout(limit, TcpStream::connect(address)).await.map_err(|_| Failure::TimedOut)??;
        stream.set_nodelay(true)?;
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

    /// Whether the peer has neither closed it nor sent data without a request.
    pub(super) fn is_open(&self) -> bool {
        let quiet = self.stream.try_read(&mut [0]);
        quiet.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends the message of `call` and waits for its answer.
    pub(super) async fn exchange(&mut self, call: &mut Call<'_>) -> Answer {
        self.out.clear();
        let ticket = self.codec.encode(call.payload, &mut self.out);
        call.mark_sent(self.out.len());
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

    /// Takes it apart, for many messages in flight.
    pub(super) fn into_parts(self) -> (TcpStream, Codec) {
        (self.stream, self.codec)
    }

    async fn read(&mut self) -> Result<(), Failure> {
        self.buffer.clear();
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err(closed());
        }
        self.codec.receive(&self.buffer)
    }
}
