//! Serves one connection from its beginning to its end, and describes the client at the other end ([`Peer`]).

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::Response;
use futures_util::FutureExt;
use hyper::body::Incoming as IncomingBody;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval_at, sleep_until, timeout};

use super::activity::{Activity, Phase};
use super::closing::{Refusal, last_reply, linger};
use super::guard::{Guarded, Verdict, Watchdog};
use super::incoming::{Account, Incoming};
use super::tls::{ClientStream, HANDSHAKE, Tls};
use super::{Stopping, or_never};
use crate::limits::Limits;

/// The size of hyper's buffer: the largest request head, plus what a client may have sent after it.
const BUFFER: usize = 2 * Limits::MAX_HEAD;
/// Additional time after the deadline, so that a reply that is made at the deadline can still be sent.
const LATE_REPLY: Duration = Duration::from_millis(500);

/// The settings and the state that all connections share.
pub(crate) struct Transport {
    pub(crate) limits: Limits,
    /// The certificate for HTTPS. Without one, the server uses HTTP.
    pub(crate) tls: Option<Tls>,
    /// The memory that arriving data uses.
    pub(crate) incoming: Incoming,
    /// How long a request may wait for its emulator.
    pub(crate) deadline: Duration,
    /// Whether clients on this machine may do everything without a token.
    pub(crate) trusts_local: bool,
    pub(crate) log_requests: bool,
    pub(crate) stopping: Stopping,
    /// Whether the server is about to stop. Each reply is then the last one on its connection.
    pub(crate) last_call: AtomicBool,
}

/// Answers the requests of all connections.
pub(crate) trait Handler: Clone + Send + Sync + 'static {
    /// Answers a request that arrived at `start`.
    fn answer(
        &self,
        peer: &Peer,
        activity: &Arc<Activity>,
        request: Request<IncomingBody>,
        start: Instant,
    ) -> impl Future<Output = Answer> + Send;
}

pub(crate) struct Answer {
    pub(crate) response: Response,
    /// Whether the request was refused before its body was read.
    pub(crate) refused: bool,
}

/// Serves `socket` until either side ends it. When the server stops, an idle connection ends at once, and a busy one
/// after its request. If only a part of a request's head has arrived, the client gets a 408.
pub(crate) async fn run<H: Handler>(socket: TcpStream, peer: Peer, transport: Arc<Transport>, handler: H) {
    // Otherwise, a reply could wait 40 ms for the acknowledgement of the reply before it.
    let _ = socket.set_nodelay(true);
    let Some(mut stream) = secure(socket, &transport).await else { return };
    // hyper writes the date into each response and panics at a date before 1970.
    if SystemTime::now() < SystemTime::UNIX_EPOCH {
        last_reply(&mut stream, Refusal::CLOCK, false, &transport).await;
        return;
    }
    let trusted = peer.is_local() && transport.trusts_local;
    let account = Account::new(transport.incoming.clone(), peer.origin(), trusted);
    let activity = Arc::new(Activity::new(peer.is_local(), account));
    let verdict = serve(stream, peer, &transport, &handler, &activity).await;
    let Some(mut stream) = activity.take_stream() else {
        return; // the connection became a WebSocket
    };
    match verdict {
        None if activity.phase() == Phase::Closing => linger(&mut stream, &transport.stopping).await,
        None | Some(Verdict::Idle | Verdict::Left) => {}
        // Otherwise the system would try to send the rest of the reply for minutes.
        Some(Verdict::Stalled) => {
            let _ = stream.socket().set_zero_linger();
        }
        Some(Verdict::Malformed) => {
            let _ = stream.shutdown().await;
            linger(&mut stream, &transport.stopping).await;
        }
        Some(Verdict::Refused(refusal)) => {
            last_reply(&mut stream, refusal, activity.is_under_v1(), &transport).await
        }
    }
}

/// Performs the TLS handshake, if this server has a certificate. A client that uses plain HTTP then gets an error.
async fn secure(socket: TcpStream, transport: &Transport) -> Option<ClientStream> {
    let Some(tls) = &transport.tls else { return Some(ClientStream::Plain(socket)) };
    let mut first = [0];
    let begin = timeout(transport.limits.head, socket.peek(&mut first));
    let begun = tokio::select! {
        begun = begin => begun.ok()?.ok()?,
        () = transport.stopping.wait() => return None,
    };
    if begun == 1 && first != [HANDSHAKE] {
        last_reply(&mut ClientStream::Plain(socket), Refusal::HTTPS_ONLY, false, transport).await;
        return None;
    }
    let shake = timeout(transport.limits.head, tls.acceptor().accept(socket));
    let shaken = tokio::select! {
        shaken = shake => shaken,
        () = transport.stopping.wait() => return None,
    };
    shaken.ok()?.ok().map(|stream| ClientStream::Tls(Box::new(stream)))
}

/// Serves the requests of one connection until it ends. Returns why the server ends it; `None` if hyper has ended it in
/// the normal way.
async fn serve<H: Handler>(
    stream: ClientStream,
    peer: Peer,
    transport: &Transport,
    handler: &H,
    activity: &Arc<Activity>,
) -> Option<Verdict> {
    let peer = &peer;
    let service = service_fn(move |request| async move {
        Ok::<_, Infallible>(answer(transport, handler, peer, activity, request).await)
    });
    let connection = http1::Builder::new()
        .max_buf_size(BUFFER)
        // A client may close its sending side (as `nc -N` does) and still wait for the reply.
        .half_close(true)
        .serve_connection(TokioIo::new(Guarded::new(stream, activity.clone())), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    // `fuse`, because the signal is handled only once.
    let mut stopped = std::pin::pin!(transport.stopping.wait().fuse());
    let limits = &transport.limits;
    let mut watchdog = Watchdog::new(limits);
    let mut ticks = interval_at(tokio::time::Instant::now() + watchdog.tick, watchdog.tick);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let time_limit = transport.deadline + LATE_REPLY;
    // When to end the work for a client that has left; `None` if the client is still there.
    let mut leave: Option<Instant> = None;
    loop {
        tokio::select! {
            biased;
            end = connection.as_mut() => {
                let is_malformed = end.is_err_and(|error| error.is_parse());
                return match activity.refusal() {
                    Some(refusal) => Some(Verdict::Refused(refusal)),
                    None if is_malformed => Some(Verdict::Malformed),
                    None => None,
                };
            }
            () = stopped.as_mut() => {
                if activity.phase() == Phase::Head {
                    return Some(Verdict::Refused(Refusal::STOPPING));
                }
                connection.as_mut().graceful_shutdown();
            }
            _ = ticks.tick() => {
                if let Some(verdict) = watchdog.judge(activity, limits) {
                    return Some(verdict);
                }
                leave = activity.stays_until(time_limit);
            }
            () = or_never(leave.map(|leave| sleep_until(leave.into()))) => {
                // Another request may have begun since.
                leave = activity.stays_until(time_limit);
                if leave.is_some_and(|leave| leave <= Instant::now()) {
                    return Some(Verdict::Left);
                }
            }
        }
    }
}

async fn answer<H: Handler>(
    transport: &Transport,
    handler: &H,
    peer: &Peer,
    activity: &Arc<Activity>,
    request: Request<IncomingBody>,
) -> Response {
    let start = Instant::now();
    activity.begin_request(start);
    let Answer { mut response, refused } = handler.answer(peer, activity, request, start).await;
    let status = response.status();
    // After an upgrade, the connection is no longer HTTP.
    if status == StatusCode::SWITCHING_PROTOCOLS {
        activity.upgrade();
        return response;
    }
    // In these cases, the server may not have read the whole body.
    let unread = refused
        || activity.is_arriving()
        || activity.is_cut_short()
        || matches!(status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT);
    if unread || transport.last_call.load(Relaxed) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    activity.end_request(unread);
    response
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// IPv4 addresses are never in the form of IPv6 addresses (`::ffff:10.0.0.1`).
    address: IpAddr,
    pub(crate) tls: bool,
}

impl Peer {
    pub(crate) fn new(address: IpAddr, tls: bool) -> Peer {
        Peer { address: address.to_canonical(), tls }
    }

    /// Whether the client is on this machine and uses a loopback address.
    pub(crate) fn is_local(&self) -> bool {
        self.address.is_loopback()
    }

    /// The address under which limits count the client. For IPv6, it is the /64 network, because one household or
    /// machine has a whole network (RFC 6177).
    pub(crate) fn origin(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(_) => self.address,
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(network.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::new(address.parse().unwrap(), false)
    }

    #[test]
    fn all_addresses_of_an_ipv6_network_count_as_one_client() {
        assert_eq!(peer("2001:db8::1").origin(), peer("2001:db8::ffff:1").origin());
        assert_ne!(peer("2001:db8::1").origin(), peer("2001:db8:0:1::1").origin());
        assert_ne!(peer("10.0.0.1").origin(), peer("10.0.0.2").origin());
        assert_eq!(peer("::ffff:10.0.0.1").origin(), peer("10.0.0.1").origin());
    }
}
