//! The routes for Streamable HTTP, a transport of MCP. In revision 2026-07-28 of the protocol, each request stands
//! alone: it does not belong to a session. A client of an earlier revision opens a session with `initialize`.

use std::sync::Arc;

use ::http::{Extensions, HeaderName, Method, StatusCode};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;

use crate::PATH;
use crate::backend::EndFuture;
use crate::sessions::{Sessions, SessionsError};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The largest size of a request's body, in bytes.
const MAX_BODY: usize = 4 << 20;

/// What the routes need from the server that they are part of.
pub struct HttpHost {
    /// Returns a name for the sender of a request, from the request's extensions. Senders with equal names share
    /// sessions.
    pub sender: Arc<dyn Fn(&Extensions) -> String + Send + Sync>,
    /// Completes when the server stops. Then the sessions end.
    pub stopped: EndFuture<'static>,
}

/// For how long a handler is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerLifetime {
    /// For one request, which stands alone.
    Request,
    /// For all requests of a session.
    Session,
}

/// The routes for handlers of the SDK (the crate `rmcp`). `handler` creates a handler for each request that stands
/// alone, and for each session. The caller must check `Host`, `Origin` and tokens. Call this function within a Tokio
/// runtime.
pub fn router_of<H: ServerHandler>(
    host: HttpHost,
    handler: impl Fn(HandlerLifetime) -> H + Clone + Send + Sync + 'static,
) -> Router {
    let (of_session, of_request) = (handler.clone(), handler);
    let sessions = Arc::new(Sessions::new());
    let mut lasting = config();
    // With a retry time, the SDK sends an event without data, which older clients cannot read.
    lasting.sse_retry = None;
    let cancellation = lasting.cancellation_token.clone();
    let stopped = host.stopped;
    tokio::spawn(async move {
        stopped.await;
        cancellation.cancel();
    });
    let lasting = StreamableHttpService::new(
        move || Ok(of_session(HandlerLifetime::Session)),
        sessions.clone(),
        lasting,
    );
    // Without the legacy mode, this service opens no sessions. It still gets the session manager of the service
    // `lasting`, because the SDK's generic code is compiled only once if both services have the same type.
    let alone = StreamableHttpService::new(
        move || Ok(of_request(HandlerLifetime::Request)),
        sessions.clone(),
        config().with_legacy_session_mode(false),
    );
    let sender = host.sender;
    Router::new().route(
        PATH,
        any(move |request: Request| {
            let (sessions, lasting, alone) = (sessions.clone(), lasting.clone(), alone.clone());
            let sender = sender(request.extensions());
            async move {
                let (kind, request) = match buffered(request).await {
                    Ok(buffered) => buffered,
                    Err(refusal) => return refusal,
                };
                let ends = request.method() == Method::DELETE;
                let in_session = match kind {
                    // For other HTTP methods, the SDK checks the session, after it has checked the protocol's revision.
                    Kind::InSession(id) if ends && !sessions.has(&id, &sender) => {
                        return (StatusCode::NOT_FOUND, SessionsError::Unknown.to_string()).into_response();
                    }
                    Kind::InSession(_) => true,
                    // If there is no room for another session, the client does not get one, and its requests stand
                    // alone.
                    Kind::Initialize => sessions.make_room(&sender).await,
                    Kind::Alone => false,
                };
                if in_session {
                    let response = lasting.handle(request);
                    let mut response = sessions.answer(sender, response).await.map(Body::new);
                    // The session has ended. 202 would mean that it will end later.
                    if ends && response.status() == StatusCode::ACCEPTED {
                        *response.status_mut() = StatusCode::NO_CONTENT;
                    }
                    response
                } else {
                    alone.handle(request).await.map(Body::new)
                }
            }
        }),
    )
}

fn config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_json_response(true)
        .disable_allowed_hosts()
        .disable_allowed_origins()
}

/// How a request relates to sessions.
enum Kind {
    /// It names this session.
    InSession(String),
    /// It may open a session.
    Initialize,
    /// It stands alone.
    Alone,
}

/// The part of a message that decides whether it may open a session.
#[derive(Deserialize)]
struct Message {
    method: String,
}

/// Finds the kind of a request. Reads the body if it is needed for that.
async fn buffered(request: Request) -> Result<(Kind, Request), Response> {
    if let Some(id) = request.headers().get(SESSION) {
        let id = String::from_utf8_lossy(id.as_bytes()).into_owned();
        return Ok((Kind::InSession(id), request));
    } else if request.method() != Method::POST {
        return Ok((Kind::Alone, request));
    }
    let (head, body) = request.into_parts();
    let too_large = |error| {
        let why = format!("the body cannot be read: {error}; at most {MAX_BODY} bytes are accepted");
        (StatusCode::PAYLOAD_TOO_LARGE, why).into_response()
    };
    let bytes = to_bytes(body, MAX_BODY).await.map_err(too_large)?;
    let is_initialize =
        serde_json::from_slice::<Message>(&bytes).is_ok_and(|message| message.method == "initialize");
    let kind = if is_initialize { Kind::Initialize } else { Kind::Alone };
    Ok((kind, Request::from_parts(head, Body::from(bytes))))
}
