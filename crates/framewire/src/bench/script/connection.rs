use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::time::Duration;

use framewire_loadtest::{Call, Failure};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::dialect::{Answer, Codec};
use super::{Dialect, Options};

/// The longest time for connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// The size of the buffer for a read, in bytes.
const PIECE: usize = 16 * 1024;

/// A connection that carries one message at a time.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    /// Whether the last exchange failed.
    is_broken: bool,
    codec: Codec,
    out: Vec<u8>,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects, and exchanges the greeting if the dialect has one.
    pub(super) async fn open(address: &str, dialect: &Dialect, options: &Options) -> Result<Self, Failure> {
        let connected = timeout(CONNECT, TcpStream::connect(address)).await;
        let stream = connected.map_err(|_| Failure::TimedOut)??;
        stream.set_nodelay(!options.nagle)?;
        let peer = stream.peer_addr()?;
        let mut connection = Connection {
            stream,
            peer,
            is_broken: false,
            codec: dialect.codec(),
            out: Vec::new(),
            buffer: Vec::with_capacity(PIECE),
        };
        if let Some(greeting) = connection.codec.greeting() {
            connection.stream.write_all(&greeting).await?;
            while !connection.codec.greeted() {
                connection.read().await?;
            }
        }
        Ok(connection)
    }

    /// Whether the connection can be used: the peer has not closed it, and has not sent data that nobody requested. In
    /// [`Dialect::Unframed`], such data is allowed, and is taken for the next reply.
    pub(super) fn is_open(&self) -> bool {
        if self.codec.has_surplus() {
            return false;
        }
        match SockRef::from(&self.stream).peek(&mut [MaybeUninit::uninit()]) {
            Ok(0) => false,
            // Only `Dialect::Unframed` limits how much is read at once.
            Ok(_) => self.codec.longest_read().is_some(),
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Sends the message of `call` and waits for its answer.
    pub(super) async fn exchange(&mut self, call: &mut Call<'_>) -> Answer {
        self.out.clear();
        let ticket = self.codec.encode(call.payload, &mut self.out);
        call.mark_sent(0);
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

    /// Makes sure that the `connect` in [`exchange_again`](Self::exchange_again) fails, as on a blocking socket. This
    /// socket does not block, so its first `connect` returned before the connection was established. On Linux, a second
    /// `connect` then reports the success of the first, and only a third one fails. So this function makes the second
    /// call. On other systems, the second `connect` already fails, and this function does nothing.
    pub(super) fn settle(&self) -> io::Result<()> {
        if cfg!(target_os = "linux") {
            SockRef::from(&self.stream).connect(&self.peer.into())
        } else {
            Ok(())
        }
    }

    /// Like [`exchange`](Self::exchange), but may be called again after a failure. Then it tries to connect the same
    /// socket again, as the strategy `pool-keep-broken` prescribes, even though operating systems refuse this.
    pub(super) async fn exchange_again(&mut self, call: &mut Call<'_>) -> Answer {
        if self.is_broken {
            SockRef::from(&self.stream).connect(&self.peer.into())?;
            self.is_broken = false;
        }
        let answer = self.exchange(call).await;
        self.is_broken = answer.is_err();
        answer
    }

    /// Closes the connection without a reset.
    pub(super) async fn close(mut self) {
        // The peer may be gone already.
        let _ = self.stream.shutdown().await;
    }

    /// The stream and the codec, for a pipeline with many messages in flight.
    pub(super) fn into_parts(self) -> (TcpStream, Codec) {
        (self.stream, self.codec)
    }

    async fn read(&mut self) -> Result<(), Failure> {
        self.buffer.clear();
        let limit = self.codec.longest_read().unwrap_or(u64::MAX);
        if (&mut self.stream).take(limit).read_buf(&mut self.buffer).await? == 0 {
            return Err(Failure::Reset);
        }
        self.codec.receive(&self.buffer)
    }
}
