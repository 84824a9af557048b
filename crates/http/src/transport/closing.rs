//! How connections are ended so that the client gets the last reply.

use std::time::Duration;

use axum::http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{sleep, timeout};
use tracing::info;

use super::connection::Transport;
use super::refusal::Refusal;
use crate::problem::{MEDIA_TYPE, Problem};
use crate::stopping::Stopping;

/// How much a client that was refused may still send before it must read.
const LINGER_BYTES: usize = 64 * 1024 * 1024;
/// And for how long.
const LINGER: Duration = Duration::from_secs(5);
/// And once the server stops.
const LAST_LINGER: Duration = Duration::from_millis(100);

/// Sends a reply outside of hyper and makes sure that it arrives. Under `/v1` it is a problem.
pub(crate) async fn last_reply(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    refusal: Refusal,
    under_v1: bool,
    transport: &Transport,
) {
    let Refusal { status, reason, headers, .. } = refusal;
    let message = refusal.text(&transport.limits);
    if transport.log_requests {
        info!(target: "framewire::http", status, "turned away: {message}");
    }
    let (kind, message) = match StatusCode::from_u16(status) {
        Ok(status) if under_v1 => (MEDIA_TYPE, Problem::new(status, message).to_json()),
        _ => ("text/plain; charset=utf-8", message.into_owned()),
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
        linger(stream, &transport.stopping).await;
    }
}

/// Reads and forgets what a client still sends: closing over unread bytes would reset the connection, and the client
/// might lose the reply that lies in its own buffer.
pub(crate) async fn linger(stream: &mut (impl AsyncRead + Unpin), stopping: &Stopping) {
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
        stopping.wait().await;
        sleep(LAST_LINGER).await;
    };
    tokio::select! {
        _ = timeout(LINGER, drain) => {}
        () = end => {}
    }
}
