//! The life of one connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::header::CONNECTION;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval_at, sleep, sleep_until, timeout};
use tower::ServiceExt;
use tracing::{Level, enabled, info};

use super::client_stream::Stream;
use super::guard::{Activity, Guarded, Outflow, Refusal, Verdict, Watchdog};
use super::incoming::{Account, OutOfMemory};
use super::streams::Client;
use super::strict;
use super::tls::HANDSHAKE;
use crate::access::caller::{Caller, Peer, Rights};
use crate::access::gate::{Audience, Entry, Visit};
use crate::access::login::{LOGOUT, page, wants_page};
use crate::access::pages::tell_page;
use crate::access::shield::shield;
use crate::app::Site;
use crate::app::request_id::{RequestId, X_REQUEST_ID};
use crate::app::router;
#[cfg(feature = "otlp")]
use crate::app::span;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::metrics::Answered;
use crate::problem::{MEDIA_TYPE, Problem};
use crate::{compat, idempotency, v1};

/// Largest request head plus what a client may have sent behind it, in hyper's buffer.
const BUFFER: usize = 2 * Limits::MAX_HEAD;

/// How much a client that was refused may still send before it must read.
const LINGER_BYTES: usize = 64 * 1024 * 1024;
/// And for how long.
const LINGER: Duration = Duration::from_secs(5);
/// And once the server is told to stop.
const LAST_LINGER: Duration = Duration::from_millis(100);

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) site: Arc<Site>,
    pub(crate) router: Router,
    /// The server is stopping: a reply is the last one on its connection.
    pub(crate) last_call: AtomicBool,
}

/// Serves `socket` until either side ends it. Once `stop` turns true, it ends at once or after the request under way.
pub(crate) async fn run(socket: TcpStream, peer: Peer, shared: Arc<Shared>, stop: watch::Receiver<bool>) {
    // A reply that waits for its predecessor's acknowledgement would arrive 40 ms late.
    let _ = socket.set_nodelay(true);
    let Some(stream) = secure(socket, &shared.site).await else { return };
    let site = &shared.site;
    let trusted = peer.is_local() && site.app.access.tokens.is_none();
    let account = Account::new(site.incoming.clone(), peer.origin(), trusted);
    let activity = Arc::new(Activity::new(peer.is_local(), account));
    let verdict = serve(stream, peer, &shared, &activity, stop).await;
    let Some(mut stream) = activity.take_stream() else {
        return; // upgraded to something else
    };
    match verdict {
        None if activity.is_closing() => linger(&mut stream, &shared.site).await,
        None | Some(Verdict::Idle | Verdict::Left) => {}
        // The system would go on offering the rest of the reply for minutes.
        Some(Verdict::Stalled) => {
            let _ = stream.socket().set_zero_linger();
        }
        Some(Verdict::Malformed) => {
            let _ = stream.shutdown().await;
            linger(&mut stream, &shared.site).await;
        }
        Some(Verdict::Refused(refusal)) => {
            last_reply(&mut stream, refusal, activity.is_under_v1(), &shared.site).await
        }
    }
}

/// Agrees with the client on TLS, if this server speaks that. Whoever speaks plain HTTP then is told so.
async fn secure(mut socket: TcpStream, site: &Site) -> Option<Stream> {
    let Site { app, .. } = site;
    let Some(tls) = &app.tls else { return Some(Stream::Plain(socket)) };
    let mut first = [0];
    let begin = timeout(app.limits.head, socket.peek(&mut first));
    let begun = tokio::select! {
        begun = begin => begun.ok()?.ok()?,
        () = site.stopped() => return None,
    };
    if begun == 1 && first != [HANDSHAKE] {
        last_reply(&mut socket, Refusal::HTTPS_ONLY, false, site).await;
        return None;
    }
    let shake = timeout(app.limits.head, tls.acceptor().accept(socket));
    let shaken = tokio::select! {
        shaken = shake => shaken,
        () = site.stopped() => return None,
    };
    shaken.ok()?.ok().map(|stream| Stream::Tls(Box::new(stream)))
}

async fn serve(
    stream: Stream,
    peer: Peer,
    shared: &Arc<Shared>,
    activity: &Arc<Activity>,
    mut stop: watch::Receiver<bool>,
) -> Option<Verdict> {
    let service = service_fn(|request| {
        let (shared, activity) = (shared.clone(), activity.clone());
        async move { Ok::<_, Infallible>(answer(&shared, &peer, &activity, request).await) }
    });
    let connection = http1::Builder::new()
        .max_buf_size(BUFFER)
        // A client may say that it sends no more (as `nc -N` does) and wait for the reply.
        .half_close(true)
        .serve_connection(TokioIo::new(Guarded::new(stream, activity.clone())), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let limits = &shared.site.app.limits;
    let mut watchdog = Watchdog::new(limits);
    let mut ticks = interval_at(tokio::time::Instant::now() + watchdog.tick(), watchdog.tick());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // When to end what is done for a client that has left.
    let mut leave = None;
    loop {
        tokio::select! {
            biased;
            end = connection.as_mut() => {
                let malformed = end.is_err_and(|error| error.is_parse()).then_some(Verdict::Malformed);
                return activity.refusal().map(Verdict::Refused).or(malformed);
            }
            Ok(()) = stop.changed() => match activity.is_in_head() {
                true => return Some(Verdict::Refused(Refusal::STOPPING)),
                false => connection.as_mut().graceful_shutdown(),
            },
            _ = ticks.tick() => {
                if let Some(verdict) = watchdog.judge(activity, limits) {
                    return Some(verdict);
                }
                leave = watchdog.leave(activity, shared.site.app.deadline);
            }
            () = until(leave) => {
                // Another request may have begun since.
                leave = watchdog.leave(activity, shared.site.app.deadline);
                if leave.is_some_and(|leave| leave <= Instant::now()) {
                    return Some(Verdict::Left);
                }
            }
        }
    }
}

/// Ends at that time, or never.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

async fn answer(
    shared: &Shared,
    peer: &Peer,
    activity: &Arc<Activity>,
    request: Request<Incoming>,
) -> Response {
    let start = Instant::now();
    activity.begin_request(start);
    let site = &shared.site;
    let _in_flight = site.meter.begin();
    let id = site.ids.of(request.headers());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let place = compat::find(&path);
    #[cfg(feature = "otlp")]
    let span = span::begin(&method, &path, &id, request.headers());
    let admitted = admit(shared, peer, activity, place, &id, request);
    #[cfg(feature = "otlp")]
    let admitted = tracing::Instrument::instrument(admitted, span.clone());
    let (mut response, refused) = match admitted.await {
        Ok(response) if response.status() == StatusCode::METHOD_NOT_ALLOWED => {
            (v1::explain_method(&path, response), false)
        }
        Ok(response) => (response, false),
        Err(response) => (response, true),
    };
    let status = response.status();
    let by = match place.and_then(|place| place.number(&method)) {
        _ if refused => Answered::Nobody,
        Some(number) => Answered::Compat(number),
        None => response.extensions_mut().remove().map_or(Answered::Nobody, Answered::Own),
    };
    let time = start.elapsed();
    site.meter.count(&by, &method, status, time);
    #[cfg(feature = "otlp")]
    span::end(&span, &by, &method, status);
    if site.app.log_requests && enabled!(target: "framewire::http", Level::INFO) {
        let (micros, id) = (time.as_micros() as u64, id.as_str());
        info!(target: "framewire::http", %method, path, status = status.as_u16(), micros, id);
    }
    // What follows is no request any more, and this connection's end none of HTTP.
    if status == StatusCode::SWITCHING_PROTOCOLS {
        activity.upgrade();
        return response;
    }
    // With these the rest of the body is still to come, and nobody will read it.
    let unread = refused
        || activity.is_cut_short()
        || matches!(status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT);
    if unread || shared.last_call.load(Relaxed) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response.headers_mut().insert(X_REQUEST_ID, id.into_header());
    activity.end_request(unread);
    response
}

/// Answers a request, or refuses it before its body is read: if it can be understood in two ways, comes from a foreign web
/// page, or shows no token where one is needed.
async fn admit(
    shared: &Shared,
    peer: &Peer,
    activity: &Arc<Activity>,
    place: Option<&'static compat::Place>,
    id: &RequestId,
    mut request: Request<Incoming>,
) -> Result<Response, Response> {
    let Shared { site, router, .. } = shared;
    let any_name = place.is_some() || routes::goes_by_any_name(request.uri().path());
    let visit =
        Visit { peer, method: request.method(), target: request.uri(), any_name, headers: request.headers() };
    let entry = strict::check(request.version(), request.uri(), request.headers())
        .and_then(|()| site.gate.enter(visit));
    let (mut caller, audience) = match entry {
        Err(failure) => return Err(refuse(failure, &visit)),
        Ok(Entry::Question(origin)) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            shield(response.headers_mut(), false);
            tell_page(origin, response.headers_mut());
            return Ok(response);
        }
        Ok(Entry::Login) => {
            let path = visit.path().to_owned();
            if let Err(failure) = idempotency::key(visit.method, visit.path(), visit.headers) {
                return Err(refuse(failure, &visit));
            }
            let login = site.gate.login(peer, request.map(Body::new), site).await;
            let mut response = login.unwrap_or_else(|failure| failure.answer(&path));
            shield(response.headers_mut(), false);
            return Ok(response);
        }
        Ok(Entry::Request(caller, audience)) => (caller, audience),
    };
    activity.introduce(caller.rights == Rights::Full);
    let length = request.body().size_hint().lower();
    // A larger one is refused where it would be read.
    if let Some(length) = usize::try_from(length).ok().filter(|length| *length <= site.app.limits.max_body)
        && activity.expect_body(length).is_err()
    {
        return Err(refuse(Failure::busy(OutOfMemory.to_string()), &visit));
    }
    caller.trace = id.to_pass_on(enabled!(target: "framewire::http", Level::DEBUG));
    let key = idempotency::key(request.method(), request.uri().path(), request.headers());
    let mut response = match (key, place) {
        (Err(failure), _) => failure.answer(visit.path()),
        (Ok(_), None) if *request.method() == Method::POST && request.uri().path() == LOGOUT => {
            site.gate.logout(visit)
        }
        (Ok(key), _) => {
            if place.is_none() {
                request.extensions_mut().insert(Client(peer.origin()));
                request.extensions_mut().insert(Outflow::new(activity.clone()));
            }
            let request = request.map(Body::new);
            match key {
                None => respond(site, router, place, caller, request).await,
                Some(key) => {
                    let activity = activity.clone();
                    respond_once(site, router, place, caller, key, request, activity).await
                }
            }
        }
    };
    shield(response.headers_mut(), !matches!(audience, Audience::Own));
    if let Audience::Page(origin) = audience {
        tell_page(&origin, response.headers_mut());
    }
    Ok(response)
}

/// Answers a request that was let in.
async fn respond(
    site: &Site,
    router: &Router,
    place: Option<&'static compat::Place>,
    caller: Caller,
    mut request: Request<Body>,
) -> Response {
    match place {
        Some(place) => compat::answer(site, place, &caller, request).await,
        None => {
            request.extensions_mut().insert(caller);
            let Ok(response) = router.clone().oneshot(request).await;
            response
        }
    }
}

/// Answers a request that was let in and has an `Idempotency-Key`. The connection's activity counts its body.
async fn respond_once(
    site: &Arc<Site>,
    router: &Router,
    place: Option<&'static compat::Place>,
    caller: Caller,
    key: String,
    request: Request<Body>,
    activity: Arc<Activity>,
) -> Response {
    let path = request.uri().path().to_owned();
    let (own, router, sender) = (site.clone(), router.clone(), caller.clone());
    let work = async move |request| respond(&own, &router, place, sender, request).await;
    let answered = idempotency::once(site, &caller, key, request, activity, work).await;
    answered.unwrap_or_else(|failure| failure.answer(&path))
}

/// The answer to a request that is not let in. A person who only has to log in gets the page for it.
fn refuse(failure: Failure, visit: &Visit<'_>) -> Response {
    let says = failure.message().to_owned();
    let mut response = failure.answer(visit.path());
    if response.status() == StatusCode::UNAUTHORIZED && wants_page(visit) {
        response = page(response, &says, visit.target.path_and_query().map_or("/", PathAndQuery::as_str));
    }
    shield(response.headers_mut(), false);
    response
}

/// Sends a reply outside of hyper and makes sure that it arrives. Under `/v1` it is a problem.
pub(crate) async fn last_reply(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    refusal: Refusal,
    under_v1: bool,
    site: &Site,
) {
    let Refusal { status, reason, headers, .. } = refusal;
    let message = refusal.text(&site.app.limits);
    if site.app.log_requests {
        info!(target: "framewire::http", status, "turned away: {message}");
    }
    let (kind, message) = match StatusCode::from_u16(status).ok().filter(|_| under_v1) {
        Some(status) => (MEDIA_TYPE, Problem::new(status, message).to_json()),
        None => ("text/plain; charset=utf-8", message.into_owned()),
    };
    let reply = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n{headers}\
         x-content-type-options: nosniff\r\nconnection: close\r\n\r\n{message}",
        message.len()
    );
    let sent = async {
        stream.write_all(reply.as_bytes()).await?;
        stream.shutdown().await
    };
    if let Ok(Ok(())) = timeout(LINGER, sent).await {
        linger(stream, site).await;
    }
}

/// Reads and forgets what a client still sends: closing over unread bytes would reset the connection, and the client
/// might lose the reply that lies in its own buffer.
pub(crate) async fn linger(stream: &mut (impl AsyncRead + Unpin), site: &Site) {
    let drain = async {
        let mut buffer = vec![0; 64 * 1024];
        let mut left = LINGER_BYTES;
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            left = left.saturating_sub(count);
            if left == 0 {
                return;
            }
        }
    };
    let end = async {
        site.stopped().await;
        sleep(LAST_LINGER).await;
    };
    tokio::select! {
        _ = timeout(LINGER, drain) => {}
        () = end => {}
    }
}
