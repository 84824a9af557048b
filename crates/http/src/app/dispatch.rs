//! Handles a request: finds out who sent it, decides whether it is accepted, and passes it to its route.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as _, Incoming};
use tower::ServiceExt;
use tracing::{Level, enabled, info};

use super::request_id::{Ids, RequestId, X_REQUEST_ID};
#[cfg(feature = "otlp")]
use super::span;
use crate::access::caller::{Caller, Rights};
use crate::access::gate::{Admission, CorsPolicy, Gate, RequestHead};
use crate::access::login::{login_page, wants_page};
use crate::access::pages::allow_page;
use crate::compat::{self, CompatServices, RoutesAt};
use crate::failure::Failure;
use crate::headers::add_security_headers;
use crate::idempotency::{self, Idempotency};
use crate::metrics::{Answered, Meter};
use crate::plain;
use crate::routing::catalog::Catalog;
use crate::transport::activity::{Activity, StreamControl};
use crate::transport::connection::{Answer, Handler, Peer};
use crate::transport::framing;
use crate::transport::incoming::{BodyReader, FREE};
use crate::v1;

pub(crate) struct Dispatcher {
    pub(super) gate: Gate,
    /// Gives ids to requests that come without one.
    pub(super) ids: Ids,
    pub(super) compat: CompatServices,
    /// All routes except mGBA-http's.
    pub(super) router: Router,
    pub(super) catalog: Arc<Catalog>,
    pub(super) bodies: Arc<BodyReader>,
    pub(super) meter: Arc<Meter>,
    pub(super) idempotency: Arc<Idempotency>,
    pub(super) log_requests: bool,
}

/// mGBA-http's routes at the path of a request, if there are any.
type CompatRoutes = Option<&'static RoutesAt>;

impl Handler for Arc<Dispatcher> {
    async fn answer(
        &self,
        peer: &Peer,
        activity: &Arc<Activity>,
        request: Request<Incoming>,
        start: Instant,
    ) -> Answer {
        let _in_flight = self.meter.in_flight.begin();
        let id = self.ids.of(request.headers());
        let (method, target) = (request.method().clone(), request.uri().clone());
        let path = target.path();
        let routes = compat::find(path);
        #[cfg(feature = "otlp")]
        let span = span::begin(&method, path, &id, request.headers());
        let admitted = self.admit(peer, activity, routes, &id, request);
        #[cfg(feature = "otlp")]
        let admitted = tracing::Instrument::instrument(admitted, span.clone());
        let (mut response, refused) = match admitted.await {
            Ok(response) => (response, false),
            Err(response) => (response, true),
        };
        let status = response.status();
        let by = match routes.and_then(|routes| routes.number(&method)) {
            _ if refused => Answered::NoRoute,
            Some(number) => Answered::Compat(number),
            // `note_route` has stored the route's `MatchedPath` in the extensions of the reply.
            None => response.extensions_mut().remove().map_or(Answered::NoRoute, Answered::Own),
        };
        let time = start.elapsed();
        self.meter.count(&by, &method, status, time);
        #[cfg(feature = "otlp")]
        span::end(&span, self.meter.route(&by), &method, status);
        if self.log_requests && enabled!(target: "framewire::http", Level::INFO) {
            let (micros, id) = (time.as_micros() as u64, id.as_str());
            info!(target: "framewire::http", %method, path, status = status.as_u16(), micros, id);
        }
        if status != StatusCode::SWITCHING_PROTOCOLS {
            response.headers_mut().insert(X_REQUEST_ID, id.into_header());
        }
        Answer { response, refused }
    }
}

impl Dispatcher {
    /// Answers a request. `Err` is the reply to a request that was refused before its body was read: for example,
    /// because its framing is ambiguous, because it comes from a foreign web page, or because it lacks a required
    /// token.
    async fn admit(
        self: &Arc<Dispatcher>,
        peer: &Peer,
        activity: &Arc<Activity>,
        routes: CompatRoutes,
        id: &RequestId,
        request: Request<Incoming>,
    ) -> Result<Response, Response> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        let head = RequestHead {
            peer,
            method: &parts.method,
            target: &parts.uri,
            any_name: routes.is_some() || plain::accepts_any_host_name(path),
            headers: &parts.headers,
        };
        let refused = |failure| refuse(failure, &head);
        framing::check(parts.version, &parts.uri, &parts.headers).map_err(refused)?;
        let (mut caller, cors) = match self.gate.enter(head).map_err(refused)? {
            Admission::Preflight(origin) => {
                let mut response = StatusCode::NO_CONTENT.into_response();
                add_security_headers(response.headers_mut(), false);
                allow_page(origin, response.headers_mut());
                return Ok(response);
            }
            Admission::Login => {
                // A login does not accept an `Idempotency-Key`.
                idempotency::key(&head, || false).map_err(refused)?;
                let path = path.to_owned();
                let request = Request::from_parts(parts, Body::new(body));
                let login = Box::pin(self.gate.login(peer, request, &self.bodies)).await;
                let mut response = login.unwrap_or_else(|failure| failure.answer(&path));
                add_security_headers(response.headers_mut(), false);
                return Ok(response);
            }
            Admission::Request(caller, cors) => (caller, cors),
        };
        // The operations of mGBA-http's routes are checked later.
        if routes.is_none() && !head.is_logout() {
            self.catalog.check_rights(caller.rights, head.method, path).map_err(refused)?;
        }
        activity.note_accepted(caller.rights == Rights::Full);
        // A body that is larger than the limit is refused later, where it is read.
        let length = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if length <= self.bodies.limit {
            activity.expect_body(length).map_err(|error| refused(Failure::busy(error.to_string())))?;
        }
        let body = self.small_rest(activity, &parts.headers, body).await;
        // The emulator's log gets the ids that clients chose; at the level `debug`, also those that the server made.
        caller.trace = id.to_pass_on(enabled!(target: "framewire::http", Level::DEBUG));
        let takes_key = || match routes {
            Some(_) => *head.method == Method::POST,
            None => !head.has_session_path() && self.catalog.takes_key(head.method, path),
        };
        let mut response = match (idempotency::key(&head, takes_key), body) {
            (Err(failure), _) | (_, Err(failure)) => failure.answer(path),
            (Ok(_), Ok(_)) if head.is_logout() => self.gate.logout(head),
            (Ok(key), Ok(body)) => match (key, routes) {
                (None, Some(routes)) => self.compat.answer(routes, &caller, &parts, body).await,
                (key, _) => {
                    let mut request = Request::from_parts(parts, body);
                    if routes.is_none() {
                        request.extensions_mut().insert(StreamControl::new(activity.clone()));
                    }
                    // The futures are boxed because they are large, and hyper copies the whole future of each request.
                    match key {
                        None => Box::pin(self.respond(routes, caller, request)).await,
                        Some(key) => {
                            Box::pin(self.respond_once(routes, caller, key, request, activity.clone())).await
                        }
                    }
                }
            },
        };
        add_security_headers(response.headers_mut(), !matches!(cors, CorsPolicy::Own));
        if let CorsPolicy::Page(origin) = cors {
            allow_page(&origin, response.headers_mut());
        }
        Ok(response)
    }

    /// If a small body has not arrived yet, reads it. Without this, a route that refuses the request before it reads
    /// the body would end the connection, because the rest of the body could not be skipped.
    async fn small_rest(
        &self,
        activity: &Activity,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<Body, Failure> {
        let limit = FREE.min(self.bodies.limit) as u64;
        let is_small = body.size_hint().upper().is_some_and(|length| length <= limit);
        // A client that sends `Expect` sends no body if the request is refused.
        if activity.is_arriving() && is_small && !headers.contains_key(EXPECT) {
            return Ok(self.bodies.read(Body::new(body)).await?.into());
        }
        Ok(Body::new(body))
    }

    async fn respond(&self, routes: CompatRoutes, caller: Caller, mut request: Request<Body>) -> Response {
        if let Some(routes) = routes {
            let (head, body) = request.into_parts();
            return self.compat.answer(routes, &caller, &head, body).await;
        }
        request.extensions_mut().insert(caller);
        let target = request.uri().clone();
        let Ok(mut response) = self.router.clone().oneshot(request).await;
        if response.status() == StatusCode::NOT_MODIFIED {
            // For HEAD, axum adds the length of the empty body. In a 304, this header would mean the file's length.
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return v1::explain_method(target.path(), response);
        }
        response
    }

    /// Answers an accepted request that has an `Idempotency-Key`. `activity` counts the memory of the request's body.
    async fn respond_once(
        self: &Arc<Dispatcher>,
        routes: CompatRoutes,
        caller: Caller,
        key: String,
        request: Request<Body>,
        activity: Arc<Activity>,
    ) -> Response {
        let path = request.uri().path().to_owned();
        let (dispatcher, sender) = (self.clone(), caller.clone());
        let work = async move |request| dispatcher.respond(routes, sender, request).await;
        let answered = self.idempotency.once(&caller, key, request, activity, work).await;
        answered.unwrap_or_else(|failure| failure.answer(&path))
    }
}

/// The reply to a request that is not accepted. A person who only has to log in gets the login page.
fn refuse(failure: Failure, head: &RequestHead<'_>) -> Response {
    let reason = failure.message().to_owned();
    let mut response = failure.answer(head.path());
    if response.status() == StatusCode::UNAUTHORIZED && wants_page(head) {
        let next = head.target.path_and_query().map_or("/", PathAndQuery::as_str);
        response = login_page(response, &reason, next);
    }
    add_security_headers(response.headers_mut(), false);
    response
}
