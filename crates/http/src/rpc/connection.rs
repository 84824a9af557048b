//! The loop that serves the WebSocket of one connection.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use axum::extract::ws::{CloseFrame, Message as Frame, Utf8Bytes, WebSocket, close_code};
use futures_util::SinkExt;
use futures_util::future::join_all;
use serde_json::Value as Json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Duration, MissedTickBehavior, interval, timeout};

use super::message::{self, Message, Refused, RpcError, reply};
use super::methods::{UnderWay, begin};
use super::session::{Held, Outgoing, RpcReply, RpcSession};
use crate::failure::STOPPING;
use crate::operations::emulators::for_connection;
use crate::sockets::{self, CloseReason};
use crate::transport::activity::StreamControl;
use crate::transport::incoming::Charge;
use crate::transport::streams::OpenStream;

/// The largest number of messages in the queue to the client. A slow client delays only its own messages.
pub(super) const OUT: usize = 64;
/// The longest interval between pings. If connections may be idle only for a short time, the interval is shorter.
const PING: Duration = Duration::from_secs(20);
/// The shortest interval between pings.
const SHORTEST: Duration = Duration::from_millis(10);

/// Serves a connection until either side ends it.
pub(super) async fn run(
    socket: WebSocket,
    session: Arc<RpcSession>,
    outbox: mpsc::Receiver<Outgoing>,
    _open: OpenStream,
    stream_control: StreamControl,
) {
    let stall = session.services.limits.stall;
    let mut connection = RpcConnection { socket, outbox, stream_control, stall, heard: Instant::now() };
    let end = connection.serve(&session).await;
    session.end();
    session.services.operations.end_lockstep(session.number).await;
    if let ConnectionEnd::Fault(reason) = end {
        let RpcConnection { socket, stream_control, .. } = connection;
        sockets::close_unread(socket, reason, &stream_control, &session.services.stopping).await;
    }
}

struct RpcConnection {
    socket: WebSocket,
    outbox: mpsc::Receiver<Outgoing>,
    /// Counts the memory of the messages that arrive, and returns the connection after the WebSocket has released it.
    stream_control: StreamControl,
    /// See [`Limits::stall`](crate::limits::Limits::stall).
    stall: Duration,
    /// When the client last showed that it is there: it sent something, or it read so much that a full socket could
    /// take more.
    heard: Instant,
}

/// Why a connection ends.
enum ConnectionEnd {
    /// The client is gone, does not read, or has got a close frame with the reason.
    Gone,
    /// The client sends something that cannot be received.
    Fault(CloseReason),
}

impl RpcConnection {
    async fn serve(&mut self, session: &Arc<RpcSession>) -> ConnectionEnd {
        let limits = &session.services.limits;
        let mut ping = interval((limits.idle / 4).clamp(SHORTEST, PING));
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut texts = Vec::with_capacity(OUT);
        loop {
            let done = tokio::select! {
                _ = self.outbox.recv_many(&mut texts, OUT) => self.send(texts.drain(..)).await,
                frame = self.socket.recv() => match frame {
                    Some(Ok(frame)) => self.received(session, frame).await,
                    Some(Err(error)) => {
                        Err(sockets::fault(&error, limits.max_body).map_or(ConnectionEnd::Gone, ConnectionEnd::Fault))
                    }
                    None => Err(ConnectionEnd::Gone),
                },
                _ = ping.tick() => {
                    if self.heard.elapsed() >= limits.idle {
                        return ConnectionEnd::Gone;
                    }
                    self.write(Frame::Ping(Default::default())).await
                }
                () = session.services.stopping.wait() => {
                    let reason = Utf8Bytes::from_static(STOPPING);
                    let close = CloseFrame { code: close_code::AWAY, reason };
                    let _ = self.write(Frame::Close(Some(close))).await;
                    Err(ConnectionEnd::Gone)
                }
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    async fn received(&mut self, session: &Arc<RpcSession>, frame: Frame) -> Result<(), ConnectionEnd> {
        self.heard = Instant::now();
        let message = match &frame {
            Frame::Text(text) => message::read(text.as_bytes()),
            Frame::Binary(bytes) => message::read(bytes),
            // The WebSocket library answers pings. After a close frame, the next `recv` ends the connection.
            Frame::Ping(data) | Frame::Pong(data) => {
                self.stream_control.end_control(data.len());
                return Ok(());
            }
            Frame::Close(_) => return Ok(()),
        };
        drop(frame);
        // The charge counts the message's memory until the last of its requests is answered.
        let charge = self.stream_control.end_message();
        match answer(session, message, charge).await {
            Some(refusal) => self.send([refusal.into()]).await,
            None => Ok(()),
        }
    }

    async fn send(&mut self, texts: impl IntoIterator<Item = Outgoing>) -> Result<(), ConnectionEnd> {
        // These values count the memory of the texts until the texts have been written.
        let mut held = Vec::new();
        let socket = &mut self.socket;
        let all = async {
            for outgoing in texts {
                held.push(outgoing.held);
                socket.feed(Frame::Text(outgoing.text.into())).await?;
            }
            socket.flush().await
        };
        in_time(self.stall, all, &self.stream_control, &mut self.heard).await
    }

    async fn write(&mut self, frame: Frame) -> Result<(), ConnectionEnd> {
        in_time(self.stall, self.socket.send(frame), &self.stream_control, &mut self.heard).await
    }
}

/// Waits until `sent` is done. Fails if the socket takes nothing for as long as `stall`. If the socket was full at
/// first, sets `heard` to the time at which it took the rest.
async fn in_time(
    stall: Duration,
    sent: impl Future<Output = Result<(), axum::Error>>,
    stream_control: &StreamControl,
    heard: &mut Instant,
) -> Result<(), ConnectionEnd> {
    let mut sent = pin!(sent);
    let sent = match poll_fn(|context| Poll::Ready(sent.as_mut().poll(context))).await {
        Poll::Ready(sent) => sent,
        Poll::Pending => {
            let sent = loop {
                let writes = stream_control.writes();
                match timeout(stall, sent.as_mut()).await {
                    Ok(sent) => break sent,
                    Err(_) if stream_control.writes() == writes => return Err(ConnectionEnd::Gone),
                    // The client is slow, but it reads.
                    Err(_) => {}
                }
            };
            // The socket took the message because the client reads, so the client is alive, even if it sent nothing.
            *heard = Instant::now();
            sent
        }
    };
    sent.map_err(|_| ConnectionEnd::Gone)
}

/// Begins the requests of a message in order. The reply is sent when all of them are done. If too many requests are
/// already under way, none of the message's requests begins, and the returned reply refuses them all.
async fn answer(session: &Arc<RpcSession>, message: Message, charge: Option<Charge>) -> Option<String> {
    let (items, is_array) = match message {
        Message::One(item) => (vec![item], false),
        Message::Many(items) => (items, true),
    };
    let room = match session.room(items.len()) {
        Ok(room) => room,
        Err(problem) => {
            let refusals = items.into_iter().filter_map(|item| {
                let (id, error) = match item {
                    Ok(request) => (request.id?, problem.clone().into()),
                    Err(Refused { id, error }) => (id, error),
                };
                Some(reply(id, Err(error)))
            });
            return joined(refusals.collect(), is_array);
        }
    };
    // The work of a request with an idempotency key continues after the connection has ended, so it shares the charge.
    let charge = charge.map(Arc::new);
    let mut under_way = Vec::with_capacity(items.len());
    for item in items {
        let (id, work) = match item {
            Ok(mut request) => {
                let id = request.id.take();
                (id, for_connection(session.number, begin(session, request, charge.clone())).await)
            }
            Err(Refused { id, error }) => (Some(id), Err(error)),
        };
        under_way.push(finish(id, work));
    }
    let own = session.clone();
    session.spawn(async move {
        let ended = join_all(under_way);
        let ended = for_connection(own.number, ended).await;
        let (mut replies, mut all_held, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
        for EndedRequest { reply, held, sent } in ended {
            replies.extend(reply);
            all_held.extend(held);
            waiting.extend(sent);
        }
        match joined(replies, is_array) {
            Some(text) => own.reply(Outgoing { text, held: all_held }, (room, charge)).await,
            None => drop((room, charge)),
        }
        for sent in waiting {
            // This fails if the subscription has ended already.
            let _ = sent.send(());
        }
    });
    None
}

struct EndedRequest {
    /// `None` if the request gets no reply.
    reply: Option<Json>,
    /// See [`RpcReply::held`].
    held: Option<Held>,
    /// See [`RpcReply::sent`].
    sent: Option<oneshot::Sender<()>>,
}

/// Finishes a request that was begun or refused. Without an id, it is not answered.
async fn finish(id: Option<Json>, work: Result<UnderWay, RpcError>) -> EndedRequest {
    let ended = match work {
        Ok(work) => work.await,
        Err(error) => Err(error),
    };
    let (result, held, sent) = match ended {
        Ok(RpcReply { result, sent, held }) => (Ok(result), held, sent),
        Err(error) => (Err(error), None, None),
    };
    EndedRequest { reply: id.map(|id| reply(id, result)), held, sent }
}

/// The replies as one message; `None` if there are no replies.
fn joined(mut replies: Vec<Json>, is_array: bool) -> Option<String> {
    if replies.is_empty() {
        return None;
    }
    if is_array {
        return Some(Json::Array(replies).to_string());
    }
    replies.pop().map(|reply| reply.to_string())
}
