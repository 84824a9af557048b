//! WebSockets under `/v1`.

use axum::extract::FromRequestParts;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::http::request::Parts;
use tokio::time::{Duration, timeout};

use super::Problem;
use crate::app::Site;
use crate::connection::linger;
use crate::guard::Outflow;

/// How long the other end may take to answer a closing.
const FAREWELL: Duration = Duration::from_secs(1);

/// What a handler takes in order to become a WebSocket; a request that is none gets a [`Problem`].
pub(crate) struct Upgrade(pub(crate) WebSocketUpgrade);

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Upgrade, Problem> {
        WebSocketUpgrade::from_request_parts(parts, state).await.map(Upgrade).map_err(|rejection| {
            let path = parts.uri.path();
            Problem::bad_request(format!(
                "{path} is a WebSocket, and this request does not begin one ({}); use a WebSocket client",
                rejection.body_text().trim_end_matches('.')
            ))
        })
    }
}

/// Whether a message was refused for its size.
pub(crate) fn is_too_large(error: &axum::Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    matches!(source, Some(tungstenite::Error::Capacity(_)))
}

/// Ends a WebSocket whose client is in the middle of a message that is not read: says why, and reads and forgets the rest
/// so that the client can hear it.
pub(crate) async fn close_unread(
    mut socket: WebSocket,
    code: u16,
    reason: String,
    outflow: &Outflow,
    site: &Site,
) {
    let frame = CloseFrame { code, reason: reason.into() };
    let sent = timeout(FAREWELL, socket.send(Message::Close(Some(frame)))).await;
    drop(socket);
    if let (Ok(Ok(())), Some(mut stream)) = (sent, outflow.take_stream()) {
        linger(&mut stream, site).await;
    }
}

/// Ends a WebSocket in good order: says why, and hears the other end out so that it learns of it.
pub(crate) async fn close(mut socket: WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let farewell = async {
        if socket.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = socket.recv().await {}
        }
    };
    let _ = timeout(FAREWELL, farewell).await;
}
