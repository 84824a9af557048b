use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::connector::{Connector, Stream};
use super::response::{Head, Parser, Step};
use crate::target::{Call, Failure};

/// The size of the buffer for a read, in bytes.
const PIECE: usize = 16 * 1024;

/// One connection to a server, for one HTTP/1.1 request at a time.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    /// Bytes that were read and not used yet. After a response, the bytes that the server sent after it.
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(connector: &Connector) -> io::Result<Connection> {
        Ok(Connection { stream: connector.connect().await?, buffer: Vec::with_capacity(PIECE) })
    }

    /// Returns the connection, unless the server has closed it or sent data without a request.
    pub(super) fn if_open(mut self) -> Option<Connection> {
        if !self.buffer.is_empty() {
            return None;
        }
        let mut byte = [0];
        let mut context = Context::from_waker(Waker::noop());
        let quiet =
            Pin::new(&mut self.stream).poll_read(&mut context, &mut ReadBuf::new(&mut byte)).is_pending();
        if quiet { Some(self) } else { None }
    }

    /// Sends a request, and puts the body of the response into the call's reply. Reads while it sends, because a server
    /// can answer before it has read the whole request. `bodiless` is true if the request is a HEAD.
    pub(super) async fn exchange(
        &mut self,
        request: &[u8],
        call: &mut Call<'_>,
        bodiless: bool,
    ) -> Result<Head, Failure> {
        let mut parser = Parser::new(bodiless);
        let (mut rest, mut sent) = (request, None);
        let answer = poll_fn(|context| {
            if sent.is_none()
                && let Poll::Ready(result) = self.poll_send(&mut rest, context)
            {
                sent = Some(result);
            }
            self.poll_receive(&mut parser, call, context)
        });
        let answer = answer.await;
        match sent {
            Some(Ok(())) => answer,
            Some(Err(error)) if answer.is_err() => Err(error.into()),
            // A part of the request is missing, so the connection cannot be used again.
            _ => answer.map(|head| Head { keep_alive: false, ..head }),
        }
    }

    /// Sends the rest of a request.
    fn poll_send(&mut self, rest: &mut &[u8], context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = Pin::new(&mut self.stream);
        while !rest.is_empty() {
            let count = ready!(stream.as_mut().poll_write(context, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *rest = &rest[count..];
        }
        // With TLS, the stream keeps data that did not fit into the socket's buffer.
        stream.poll_flush(context)
    }

    /// Reads a response, and puts its body into the call's reply.
    fn poll_receive(
        &mut self,
        parser: &mut Parser,
        call: &mut Call<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Head, Failure>> {
        loop {
            let count = ready!(pin!(self.stream.read_buf(&mut self.buffer)).poll(context))?;
            if count == 0 {
                return Poll::Ready(parser.closed());
            }
            call.mark_received(count);
            if let Step::Done(head) = parser.step(&mut self.buffer, call.reply)? {
                return Poll::Ready(Ok(head));
            }
            self.buffer.reserve(PIECE);
        }
    }
}
