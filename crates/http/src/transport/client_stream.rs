//! A client's connection, with TLS or without.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// What is read from and written to, whatever is beneath it.
#[derive(Debug)]
pub(crate) enum ClientStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl ClientStream {
    /// The socket beneath.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            ClientStream::Plain(stream) => stream,
            ClientStream::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Whether the other end sends no more: it has closed the connection, or only its own side of it. Bytes that it sent
    /// before may still wait here.
    pub(crate) fn is_left(&self) -> bool {
        // Writable too: then the answer is there at once, whether or not something waits to be read.
        let interest = Interest::READABLE | Interest::WRITABLE;
        matches!(self.socket().ready(interest).now_or_never(), Some(Ok(ready)) if ready.is_read_closed())
    }
}

/// Calls the same method on either.
macro_rules! either {
    ($stream:expr, $method:ident($($arg:expr),*)) => {
        match $stream.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).$method($($arg),*),
            ClientStream::Tls(stream) => Pin::new(stream.as_mut()).$method($($arg),*),
        }
    };
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, poll_read(cx, buffer))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            ClientStream::Plain(stream) => stream.is_write_vectored(),
            ClientStream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, poll_shutdown(cx))
    }
}
