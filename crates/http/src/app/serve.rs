//! Puts the services and the routes together and serves them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::extract::{FromRef, MatchedPath, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use framewire_recording::{Recordings, Replays};
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::warn;
use utoipa_axum::router::OpenApiRouter;

use super::dispatch::Dispatcher;
use super::request_id::Ids;
use super::{App, FrontEnd};
use crate::access::gate::Gate;
use crate::compat::{self, CompatServices};
use crate::failure::Failure;
use crate::feeds::registry::Feeds;
use crate::headers::content_type;
use crate::idempotency::Idempotency;
use crate::limits::Limits;
use crate::metrics::Meter;
use crate::operations::Operations;
use crate::operations::budget::ReplyBudget;
use crate::pictures::encoder::{PictureEncoders, ViewerLimit};
use crate::problem::is_under_v1;
use crate::routing::catalog::{self, Catalog};
use crate::routing::declare::PathEffect;
use crate::routing::state::{AppState, Services};
use crate::rpc::local::LocalCalls;
use crate::rpc::routes::RouteMethods;
use crate::storage::{Storage, searches};
use crate::transport::Stopping;
use crate::transport::activity::StreamControl;
use crate::transport::connection::Transport;
use crate::transport::incoming::{BodyReader, Incoming};
use crate::transport::listener::Listener;
use crate::transport::streams::StreamLimit;
use crate::{console, docs, plain, rpc, v1};

/// A server without a socket, for a front end that is not HTTP.
pub struct LocalServer {
    calls: LocalCalls,
    recordings: Storage<Recordings>,
    replays: Arc<Replays>,
    stop: watch::Sender<bool>,
    grace: Duration,
}

impl LocalServer {
    /// A server with these settings.
    #[must_use]
    pub fn new(app: &App) -> LocalServer {
        let (stop, stopped) = watch::channel(false);
        let services = services(app, Stopping::new(stopped));
        let (recordings, replays) = (services.recordings.clone(), services.replays.clone());
        let state = AppState::new(services);
        let described = v1::router().into_openapi();
        let catalog = Arc::new(Catalog::new(&described));
        let router = checked(v1::router(), &catalog, &state).with_state(state.clone());
        let calls = LocalCalls::new(state, Arc::new(RouteMethods::new(router, &described, catalog)));
        LocalServer { calls, recordings, replays, stop, grace: app.limits.grace }
    }

    /// A handle that calls the server's JSON-RPC methods with all rights.
    #[must_use]
    pub fn calls(&self) -> LocalCalls {
        self.calls.clone()
    }

    /// Stops the server, and completes the recordings under way.
    pub async fn close(self) {
        let _ = self.stop.send(true);
        close_storage(&self.recordings, &self.replays, self.grace).await;
    }
}

/// Ends replays, and completes the recordings under way. This takes at most `grace`.
async fn close_storage(recordings: &Storage<Recordings>, replays: &Replays, grace: Duration) {
    let stored = async {
        replays.close().await;
        recordings.close().await;
    };
    if timeout(grace, stored).await.is_err() {
        warn!("recordings or replays under way were cut off");
    }
}

/// Serves `app` on `socket` until `shutdown` completes. Then it still accepts requests for twice [`Limits::last_call`].
/// After that, it finishes the requests under way, for at most [`Limits::grace`], and closes the connections. At the end,
/// it completes the recordings, which may take the same time again. An error on one connection does not affect the
/// others.
///
/// The future is boxed so that the code of the server is compiled as a part of this crate. The crate of the program is
/// optimised less.
pub fn serve<'a>(socket: TcpListener, app: App, shutdown: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
    Box::pin(run(socket, app, shutdown))
}

async fn run(socket: TcpListener, app: App, shutdown: BoxFuture<'_, ()>) {
    let Limits { last_call, grace, .. } = app.limits;
    let (stop, stopped) = watch::channel(false);
    let port = socket.local_addr().map_or(0, |address| address.port());
    let stopping = Stopping::new(stopped);
    let services = services(&app, stopping.clone());
    let (streams, recordings, replays) =
        (services.streams.clone(), services.recordings.clone(), services.replays.clone());
    let meter = services.meter.clone();
    let transport = Arc::new(transport(&app, stopping));
    let dispatcher = Arc::new(dispatcher(&app, port, services));
    let mut listener = Listener::new(socket, transport.clone(), dispatcher, meter);

    listener.accept_until(shutdown).await;
    listener.accept_until(sleep(last_call)).await;
    // In the second period, each reply is the last one on its connection.
    transport.last_call.store(true, Relaxed);
    listener.accept_until(sleep(last_call)).await;
    let (mut connections, _turned_away) = listener.close();
    let _ = stop.send(true);
    let ended = async {
        while connections.join_next().await.is_some() {}
        // WebSockets no longer count as connections, so they are awaited separately.
        streams.all_closed().await;
    };
    if timeout(grace, ended).await.is_err() {
        warn!(
            "requests or WebSockets were cut off after {} s; open connections, not counting WebSockets: {}",
            grace.as_secs(),
            connections.len()
        );
    }
    close_storage(&recordings, &replays, grace).await;
}

fn services(app: &App, stopping: Stopping) -> Services {
    let App { limits, data, .. } = app;
    let data = data.as_deref();
    let operations = Arc::new(Operations {
        emulators: app.emulators.allowing_scripts(app.access.scripts),
        deadline: app.deadline,
        replies: ReplyBudget::new(limits.max_replies),
        files: app.access.files.clone(),
        stopping: stopping.clone(),
    });
    let bodies = Arc::new(BodyReader::new(limits, stopping.clone()));
    let meter = Arc::new(Meter::new(compat::metered_routes()));
    let first_emulator = app.emulators.first().name.clone();
    Services {
        idempotency: Arc::new(Idempotency::new(limits, bodies.clone(), first_emulator)),
        feeds: Arc::new(Feeds::new(operations.clone(), meter.events_missed.clone(), limits.max_watches)),
        streams: StreamLimit::new(limits),
        viewers: ViewerLimit::new(limits.max_viewers),
        encoders: Arc::new(PictureEncoders::new(app.deadline)),
        snapshots: Storage::snapshots(data),
        recordings: Storage::recordings(data),
        uploads: Storage::uploads(app.access.files.as_ref(), data),
        searches: Arc::new(searches()),
        replays: Arc::new(Replays::default()),
        limits: Arc::new(limits.clone()),
        operations,
        bodies,
        meter,
        stopping,
    }
}

fn transport(app: &App, stopping: Stopping) -> Transport {
    Transport {
        limits: app.limits.clone(),
        tls: app.tls.clone(),
        incoming: Incoming::new(&app.limits, app.release_memory),
        deadline: app.deadline,
        trusts_local: app.access.tokens.is_none(),
        log_requests: app.log_requests,
        stopping,
        last_call: AtomicBool::new(false),
    }
}

fn dispatcher(app: &App, port: u16, services: Services) -> Dispatcher {
    let (operations, bodies) = (services.operations.clone(), services.bodies.clone());
    let (meter, idempotency) = (services.meter.clone(), services.idempotency.clone());
    let (router, catalog) = router(AppState::new(services), app.front_end.as_ref());
    Dispatcher {
        gate: Gate::new(&app.access, port),
        ids: Ids::new(),
        compat: CompatServices { operations, bodies: bodies.clone(), max_message: app.limits.max_message },
        router,
        catalog,
        bodies,
        meter,
        idempotency,
        log_requests: app.log_requests,
    }
}

/// Reads the body of a request for a front end, with the limits on size and time that other bodies have.
async fn read_body(bodies: Arc<BodyReader>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    match bodies.read(body).await {
        Ok(body) => next.run(Request::from_parts(head, body.into())).await,
        Err(failure) => failure.answer(head.uri.path()),
    }
}

/// These routes, with [`catalog::check_request`] in front of each of them.
fn checked(routes: OpenApiRouter<AppState>, catalog: &Arc<Catalog>, state: &AppState) -> Router<AppState> {
    let (known, bodies) = (catalog.clone(), Arc::<BodyReader>::from_ref(state));
    let operations = Arc::<Operations>::from_ref(state);
    let check = from_fn(move |path, request, next| {
        catalog::check_request(known.clone(), bodies.clone(), operations.clone(), path, request, next)
    });
    routes.split_for_parts().0.route_layer(check)
}

/// All routes except mGBA-http's, with these services, and the catalog of the routes under `/v1` and of the front end.
pub(crate) fn router(state: AppState, front_end: Option<&FrontEnd>) -> (Router, Arc<Catalog>) {
    let described = v1::router().merge(rpc::router()).into_openapi();
    let mut catalog = Catalog::new(&described);
    if let Some(FrontEnd { path, .. }) = front_end {
        catalog.declare(path, PathEffect::OwnKeys);
    }
    let catalog = Arc::new(catalog);
    let v1 = checked(v1::router(), &catalog, &state);
    let methods = RouteMethods::new(v1.clone().with_state(state.clone()), &described, catalog.clone());
    let methods = Arc::new(methods);
    let rpc = checked(rpc::router(), &catalog, &state).layer(Extension(methods.clone()));
    let further = match front_end {
        Some(front_end) => {
            let bodies = Arc::<BodyReader>::from_ref(&state);
            let read = from_fn(move |request, next| read_body(bodies.clone(), request, next));
            let routes = (front_end.routes)(LocalCalls::new(state.clone(), methods));
            routes.layer(read).layer(from_fn(note_stream))
        }
        None => Router::new(),
    };
    let router = Router::new()
        .merge(further.with_state(()))
        .merge(v1)
        .merge(rpc)
        .merge(plain::router())
        .merge(docs::router())
        .merge(console::router())
        .route_layer(from_fn(note_route))
        .method_not_allowed_fallback(wrong_method)
        .fallback(no_such_path)
        .with_state(state);
    (router, catalog)
}

/// Stores in the reply's extensions which route answered, for the counters.
async fn note_route(path: MatchedPath, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.extensions_mut().insert(path);
    response
}

/// Notes that a front end's event stream is endless, so the server must end it when the client leaves.
async fn note_stream(stream_control: Extension<StreamControl>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if content_type(response.headers()).starts_with("text/event-stream") {
        stream_control.set_endless();
    }
    response
}

async fn no_such_path(request: Request) -> Response {
    Failure::no_such_path(request.uri().path()).answer(request.uri().path())
}

/// The reply to a method that a route does not accept. The server's own routes outside of `/v1` accept only GET and
/// HEAD; a front end answers all methods itself. Under `/v1`, [`v1::explain_method`] completes the reply.
async fn wrong_method(request: Request) -> Response {
    let path = request.uri().path();
    if is_under_v1(path) {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    Failure::wrong_method(path, "GET, HEAD").into_response()
}
