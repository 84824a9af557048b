//! WebSockets: how they begin and end, and `sender`, which sends no more than the other end reads.

pub(crate) mod sender;

use std::error::Error as _;

use axum::extract::FromRequestParts;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::header::{SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tokio::time::{Duration, timeout};
use tungstenite::Error as WsError;
use tungstenite::error::ProtocolError;

use crate::failure::Failure;
use crate::problem::Problem;
use crate::transport::Stopping;
use crate::transport::activity::StreamControl;
use crate::transport::closing::linger;
use crate::transport::incoming::OutOfMemory;

/// How long the other end may take to receive a close frame and to answer it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The extractor with which a handler opens a WebSocket. A request that does not begin a WebSocket gets a [`Problem`].
pub(crate) struct Upgrade(pub(crate) WebSocketUpgrade);

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Upgrade, Problem> {
        check_key(&parts.headers)?;
        WebSocketUpgrade::from_request_parts(parts, state).await.map(Upgrade).map_err(|rejection| {
            let path = parts.uri.path();
            let failure = Failure::bad_request(format!(
                "{path} is a WebSocket, and this request does not begin one ({}); use a WebSocket client",
                rejection.body_text().trim_end_matches('.')
            ));
            // A client that asks for another version needs this (RFC 6455, 4.2.2).
            failure.with_header(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")).into()
        })
    }
}

/// What a close frame says: a code of RFC 6455, 7.4.1, and a text.
pub(crate) type CloseReason = (u16, String);

/// The close frame for a client whose message cannot be received; `None` if the client is gone. A message may have
/// at most `largest` bytes.
pub(crate) fn fault(error: &axum::Error, largest: usize) -> Option<CloseReason> {
    match error.source()?.downcast_ref()? {
        WsError::Capacity(_) => {
            let text = format!("a message is larger than the {largest} bytes that are accepted");
            Some((close_code::SIZE, text))
        }
        WsError::Utf8(_) => Some((close_code::INVALID, "a text message is not UTF-8".to_owned())),
        // The client closed the connection, or one of the two ends sent something after a close frame.
        WsError::Protocol(
            ProtocolError::ResetWithoutClosingHandshake
            | ProtocolError::ReceivedAfterClosing
            | ProtocolError::SendAfterClosing,
        ) => None,
        WsError::Protocol(error) => Some((close_code::PROTOCOL, error.to_string())),
        WsError::Io(error) if error.get_ref().is_some_and(|inner| inner.is::<OutOfMemory>()) => {
            Some((close_code::AGAIN, OutOfMemory.to_string()))
        }
        _ => None,
    }
}

/// Refuses a key that is not 16 bytes in base64 (RFC 6455, 4.2.1).
fn check_key(headers: &HeaderMap) -> Result<(), Problem> {
    let key = headers.get(SEC_WEBSOCKET_KEY).map(|key| BASE64_STANDARD.decode(key.as_bytes()));
    if key.is_none_or(|key| key.is_ok_and(|key| key.len() == 16)) {
        return Ok(());
    }
    Err(Problem::bad_request(
        "Sec-WebSocket-Key: 16 random bytes in base64 are accepted; use a WebSocket client",
    ))
}

/// Ends a WebSocket in the middle of a message that the server does not read to its end. Sends the reason. Then reads
/// and discards the rest, so that the reason arrives.
pub(crate) async fn close_unread(
    mut socket: WebSocket,
    (code, reason): CloseReason,
    stream_control: &StreamControl,
    stopping: &Stopping,
) {
    let frame = CloseFrame { code, reason: reason.into() };
    let sent = timeout(CLOSE_TIMEOUT, socket.send(Message::Close(Some(frame)))).await;
    drop(socket);
    if let (Ok(Ok(())), Some(mut stream)) = (sent, stream_control.take_stream()) {
        linger(&mut stream, stopping).await;
    }
}

/// Closes a WebSocket: sends the reason, and reads what the client still sends, so that the reason arrives.
pub(crate) async fn close(mut socket: WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let exchange = async {
        if socket.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = socket.recv().await {}
        }
    };
    let _ = timeout(CLOSE_TIMEOUT, exchange).await;
}
